"""Who writes must hold the Lease: what each process may have written when (D28). Pure.

Processes are told apart by what they call themselves in each request (``own_machine``), which is how the Lease begins
to name its holder. Not here: how long a new leader waits before it moves Jobs (``rules_moves``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Request, Version
from e2e.chaos.own_machine import machine_of
from e2e.chaos.story import HOLD_UP, LATE_SECONDS, MANAGEMENT, Story
from mirror.model import names

_SLOW = "slow"
"""What holds requests up, by less than ``LATE_SECONDS``."""
_HOLD_UP_ALL = "freeze kube-apiserver"
"""Who is frozen reads later what had come before."""


def writes_come_in_turn(story: Story) -> Verdicts:
    """D28: what is done for a process to a copy or a source came before its Lease was over, or another's had begun."""
    turns = _Turns(story)
    for asked in story.requests:
        if not asked.process or asked.code >= HTTPStatus.BAD_REQUEST:
            continue
        until = turns.end(asked, asked.received + LATE_SECONDS)
        if until is None or until < asked.received:  # the history may have its last renewal late
            until = turns.end(asked, story.known_by(MANAGEMENT, asked.received))
        said = f"{asked.process} did {asked.verb} to {asked.resource} {asked.key} on {asked.cluster}"
        if until is None:
            yield Breach("in-turn", asked.received, f"{said} and had never held the Lease")
        elif asked.received > _held_up(story, asked, until):
            yield Breach("in-turn", asked.received, f"{said} {asked.received - until:.1f} s after its Lease")
        else:
            yield None


@dataclass(slots=True)
class _Renewal:
    """A version of the Lease that names a process."""

    at: float
    until: float
    """When it is over if nothing comes of it: a renewal, or somebody else."""
    taken_at: float = float("inf")
    """When the history has the next version, if that names another process."""


class _Turns:
    """When each process held the Lease of the managers, by the management cluster's order of writes."""

    def __init__(self, story: Story) -> None:
        self._renewals: defaultdict[str, list[_Renewal]] = defaultdict(list)
        holder = ""
        for version in story.management:
            if (renewed := _renewed(story, version)) is None:
                continue
            process, renewal = renewed
            if process != holder and holder:
                self._renewals[holder][-1].taken_at = version.at
            holder = process
            self._renewals[process].append(renewal)

    def end(self, asked: Request, by: float) -> float | None:
        """Until when who sent this might write, by what the history has by then; None: it never held the Lease."""
        renewals = self._renewals[asked.process]
        number = bisect_right(renewals, by, key=lambda one: one.at)
        if not number:
            return None
        last = renewals[number - 1]
        return min(last.until, last.taken_at + LATE_SECONDS)


def _renewed(story: Story, version: Version) -> tuple[str, _Renewal] | None:
    """Whom a version of the managers' Lease names, and for how long; None: it is none of it, or names nobody.

    What it says is by its holder's clock, which is not the clusters'.
    """
    if version.resource != "leases" or version.body is None or version.key.partition("/")[2] != names.LEASE:
        return None
    spec = version.body.get("spec", {})
    if not (holder := str(spec.get("holderIdentity") or "")) or "renewTime" not in spec:
        return None
    process = holder.rpartition("_")[0]
    since = story.stored_since(MANAGEMENT, version.at) - LATE_SECONDS
    for name, began, ended in story.broken(machine_of(process)):
        if name in HOLD_UP and began <= version.at and since <= ended + LATE_SECONDS:
            since = min(since, began - LATE_SECONDS)  # it was sent before, by the clock of then
    ahead = min(story.ahead_between(machine_of(process), since, version.at))
    renewed_at = min(version.at, datetime.fromisoformat(spec["renewTime"]).timestamp() - ahead)
    return process, _Renewal(version.at, renewed_at + spec["leaseDurationSeconds"])


def _held_up(story: Story, asked: Request, until: float) -> float:
    """When what was sent in a turn that ends then may have come at the latest."""
    way = machine_of(asked.process) if asked.cluster == MANAGEMENT else f"way to {asked.cluster}"
    latest = until
    for began, ended in sorted(story.hold_ups(way, asked.cluster)):
        if began <= latest <= ended + LATE_SECONDS:
            latest = ended + LATE_SECONDS
    is_slow = any(name == _SLOW and began <= latest <= ended + LATE_SECONDS for name, began, ended in story.broken(way))
    return latest + LATE_SECONDS if is_slow else latest
