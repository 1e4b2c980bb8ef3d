"""What a scenario is, and the list of all of them: a script for one namespace, with the facts that it is about.

Scripts are in ``groups``, one module per theme; importing that package fills the list.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from e2e.job_scenarios.stage import Stage

Script = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One script."""

    name: str
    """Also the namespace it is played in."""
    group: str
    cites: str
    """Rules of the reference, upstream's tests."""
    play: Script
    has_outage: bool
    """Played apart, since it stops the controller of everybody."""
    is_for_kills: bool
    has_gangs: bool
    """Played apart, on sides with gang scheduling."""
    tells_pods_apart: bool
    """False where the controller chooses among equal pods, so that two runs may choose differently."""


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    cites: str,
    *,
    has_outage: bool = False,
    is_for_kills: bool = True,
    has_gangs: bool = False,
    tells_pods_apart: bool = True,
) -> Callable[[Script], Script]:
    """Put a script on the list; its name in words is the scenario's.

    Args:
        cites: what it is about.
        has_outage: it uses ``Stage.outage``.
        is_for_kills: False when it acts during a backoff, which a restart forgets (B5), looks at events, which may die
            with the controller, or at what lasts too short to be waited for while the controller is killed, or
            has a deadline, which passes while kills stretch the script, or needs two writes to be met by one sync: a
            controller that starts between them judges by the first.
        has_gangs: see ``Scenario``. Kills are for the others.
        tells_pods_apart: see ``Scenario``.
    """

    def register(play: Script) -> Script:
        name = play.__name__.replace("_", "-")
        assert name not in SCENARIOS, name
        group = play.__module__.rpartition(".")[2]
        takes_kills = is_for_kills and not has_outage and not has_gangs
        SCENARIOS[name] = Scenario(name, group, cites, play, has_outage, takes_kills, has_gangs, tells_pods_apart)
        return play

    return register
