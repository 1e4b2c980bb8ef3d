"""``python -m e2e.job_scenarios.kills``: kills ours by SIGKILL at any moment of any scenario; nothing must come of it.

Scenarios are played once undisturbed, which gives the state of each after each stimulus; then again and again while the
controller is killed and started, at random moments and right after it has written something. A script gives its next
stimulus only once the state is that of the undisturbed run, and the last state is compared as well. States hold Jobs,
statuses and pods without times and events (``trace.state_of``): a restart forgets backoffs (B5), and events in flight.

An API server does some things in two steps, and stops between them when who asked goes away: a pod without a node is
marked as being deleted and stays, a quota is charged for a pod that is not made. Other controllers of a control plane
put that right, pod garbage collection and the quota's; their parts are played here.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from e2e.controlplane.client import Json, StatusError
from e2e.job_scenarios import groups
from e2e.job_scenarios.playing import CatchUpFor, Played, play
from e2e.job_scenarios.scenario import SCENARIOS, Scenario
from e2e.job_scenarios.side import KINDS, Side
from e2e.job_scenarios.sightings import Place
from e2e.job_scenarios.stage import CatchUp, Stage
from e2e.job_scenarios.trace import state_of

_CATCH_UP_SECONDS = 100.0
_LONGEST_LIFE_SECONDS = 4.0
_MOST_WRITES = 40
_CLEAN_UP_SECONDS = 5.0
_LOG_SHOWN = 4000

States = defaultdict[str, list[tuple[str, ...]]]
"""By scenario, its state before each step and at its end."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a campaign has shown."""

    kills: int
    played: int
    problems: tuple[str, ...]
    """What differs from the undisturbed run, or went wrong."""

    @property
    def text(self) -> str:
        """For people."""
        return "\n".join(
            (*self.problems, f"{self.kills} kills, {self.played} scenarios, {len(self.problems)} problems")
        )


async def campaign(chosen: Sequence[Scenario], *, kills: int, seed: int) -> Outcome:
    """Play these scenarios until the controller has been killed so often."""
    chance = random.Random(seed)
    states: States = defaultdict(list)
    done = played = 0
    async with Side.start("kills", KINDS["ours"]) as side:
        problems = _problems(await play(side, chosen, catch_up=_recording(states)))
        able = [one for one in chosen if not any(text.startswith(f"{one.name}:") for text in problems)]
        while able and done < kills:
            killer = asyncio.create_task(_kill(side, chance, kills - done), name="killer")
            cleaner = asyncio.create_task(_clean_up(side), name="cleaner")
            found = await play(side, able, catch_up=_demanding(states), suffix=f"-{done}")
            killer.cancel()
            cleaner.cancel()
            await asyncio.wait([cleaner])
            if not cleaner.cancelled():
                cleaner.result()  # it never ends by itself: it has failed, and scenarios may have waited in vain
            done += await killer
            played += len(found)
            problems += _problems(found)
        if "Traceback" in side.controller.log.read_text(errors="replace"):
            problems.append("its log has a traceback:\n" + side.controller.last_words(_LOG_SHOWN))
    return Outcome(done, played, tuple(problems))


async def _kill(side: Side, chance: random.Random, most: int) -> int:
    """Kill and start it until cancelled, at most so often; return how often that was."""
    done = 0
    try:
        while done < most:
            if chance.random() < 0.5:
                await asyncio.sleep(chance.uniform(0.0, _LONGEST_LIFE_SECONDS))
            else:
                await side.sightings.controller_writes(
                    chance.randint(1, _MOST_WRITES), seconds=2 * _LONGEST_LIFE_SECONDS
                )
            await side.controller.kill()
            side.controller.start()
            done += 1
    except asyncio.CancelledError:
        if not side.controller.is_running:
            side.controller.start()
    return done


async def _clean_up(side: Side) -> None:
    """What two looks in a row have shown to be left half done is finished."""
    gone: set[str] = set()
    overdrawn: dict[str, int] = {}
    while True:
        pods: list[Json] = (await side.client.get("/api/v1/pods"))["items"]
        gone = await _collect_pods(side, [pod for pod in pods if _is_left_over(pod)], gone)
        overdrawn = await _recount_quotas(side, Counter(pod["metadata"]["namespace"] for pod in pods), overdrawn)
        await asyncio.sleep(_CLEAN_UP_SECONDS)


async def _collect_pods(side: Side, left: list[Json], before: set[str]) -> set[str]:
    """Delete pods that nobody will: going, without a node, held by no finalizer. Returns those seen now."""
    seen = {pod["metadata"]["uid"]: pod["metadata"] for pod in left}
    for uid in before & set(seen):
        path = f"/api/v1/namespaces/{seen[uid]['namespace']}/pods/{seen[uid]['name']}"
        with suppress(StatusError):  # it has gone
            await side.client.call("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
    return set(seen)


async def _recount_quotas(side: Side, pods: Counter[str], before: dict[str, int]) -> dict[str, int]:
    """Lower the use of quotas that are charged for more pods than there are. Returns those seen now, by their paths."""
    seen: dict[str, int] = {}
    for quota in (await side.client.get("/api/v1/resourcequotas"))["items"]:
        namespace, used = quota["metadata"]["namespace"], int(quota.get("status", {}).get("used", {}).get("pods", 0))
        path = f"/api/v1/namespaces/{namespace}/resourcequotas/{quota['metadata']['name']}/status"
        if used > pods[namespace]:
            seen[path] = used
        if path in seen and before.get(path) == used:
            version = {"resourceVersion": quota["metadata"]["resourceVersion"]}
            with suppress(StatusError):  # it was charged again meanwhile
                await side.client.merge(path, {"metadata": version, "status": {"used": {"pods": str(pods[namespace])}}})
    return seen


def _is_left_over(pod: Json) -> bool:
    metadata = pod["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("finalizers") and not pod["spec"].get("nodeName")


def _recording(states: States) -> CatchUpFor:
    """Notes the state before each step of the undisturbed run."""

    def for_one(one: Scenario) -> CatchUp:
        async def note(stage: Stage) -> None:
            states[one.name].append(_state(stage, stage.place))

        return note

    return for_one


def _demanding(states: States) -> CatchUpFor:
    """Waits until the state before each step is that of the undisturbed run."""

    def for_one(one: Scenario) -> CatchUp:
        async def demand(stage: Stage) -> None:
            wanted = states[one.name][len(stage.steps)]

            def is_so(place: Place) -> bool:
                return _state(stage, place) == wanted

            try:
                await stage.until_caught_up(is_so, seconds=_CATCH_UP_SECONDS)
            except TimeoutError:
                shown = "\n".join(("wanted:", *wanted, "is:", *_state(stage, stage.place)))
                raise TimeoutError(f"the state is another\n{shown}") from None

        return demand

    return for_one


def _state(stage: Stage, place: Place) -> tuple[str, ...]:
    """Each round has namespaces of its own, which messages name."""
    return tuple(line.replace(f"{stage.namespace}/", "") for line in state_of(place))


def _problems(played: Sequence[Played]) -> list[str]:
    return [f"{one.scenario.name}: {one.problem}" for one in played if one.problem]


def main() -> int:
    """Run the command; the exit code is 1 if something came of a kill."""
    options = _arguments()
    assert groups.__all__
    chosen = [one for one in SCENARIOS.values() if one.is_for_kills]
    chosen = [one for one in chosen if not options.names or one.name in options.names or one.group in options.names]
    outcome = asyncio.run(campaign(chosen, kills=options.kills, seed=options.seed))
    print(outcome.text)
    return 1 if outcome.problems else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.job_scenarios.kills", description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios or groups (all that can be killed)")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
