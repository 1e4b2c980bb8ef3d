"""``python -m e2e.kind_wave --seed 14 --kills 50``: a wave of all kinds in which the manager is killed at any moment.

Jobs and every kind that ``MIRROR_E2E_KINDS`` chooses (``--kinds`` sets it) come in on real control planes, run by their
real controllers (Ray's: by a player). Some are suspended first, some are deleted, and in the middle a kind's definition
goes and comes back, on a worker and later on the management cluster. Each must have one mirror in all its life, and its
own end, or run if it never ends; what went with a definition has failed as lost, or is gone with its mirror.
``test_kind_faults`` does a small one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from e2e import operators
from e2e.controlplane.client import StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.provider import Binaries, control_planes
from e2e.jobs import Scene, is_complete, is_over, job, uid, until
from e2e.lives import JOB_SET, Kind, Lives, end
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder
from e2e.waves import sources
from mirror.kube.resources import JOBS

OBJECTS_PER_KILL = 4
"""Of each kind."""
_WAIT_SECONDS = 300.0
_LONGEST_SECONDS = 1.5
"""Between two kills, and before a user's second thought."""
_AWAY_SECONDS = 3.0
"""As long a definition is not there."""
_MAKERS = {"JobSet": {"TrainJob"}, "TaskRun": {"PipelineRun"}, "RayCluster": {"RayJob", "RayService"}}
"""Whose controllers make objects of a kind: without its definition those would fail."""


class Fate(Enum):
    """What its user does with it."""

    RUNS = "runs"
    IS_HELD = "is created suspended, and resumed"
    IS_DELETED = "is deleted, whatever it does then"


@dataclass(frozen=True, slots=True)
class One:
    """One that came in."""

    lives: Lives
    name: str
    uid: str
    exit_code: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class Upheaval:
    """A definition that goes and comes back."""

    kind: Kind
    where: str
    """A worker; empty: the management cluster."""


async def play(
    management: ControlPlane,
    workers: dict[str, ControlPlane],
    scene: Scene,
    *,
    kinds: Sequence[Kind],
    kills: int,
    seed: int,
) -> Counter[str]:
    """Let a wave come in while the manager is killed so often; what became of how many objects.

    Raises:
        AssertionError: one did not end as it had to, or had not the mirrors that it may have had.
    """
    chance = random.Random(seed)
    settings = {"kinds": [str(kind) for kind in kinds], "leaderElection": {"enabled": False}}
    chosen = {str(kind) for kind in kinds}
    there, here = chance.sample([kind for kind in kinds if not _MAKERS.get(str(kind), set()) & chosen], 2)
    upheavals = {kills // 3: Upheaval(there, chance.choice(list(workers))), 2 * kills // 3: Upheaval(here, "")}
    async with (
        ManagerProcess.start(management, workers, settings=settings) as manager,
        Recorder.watching(workers.values(), scene.namespace, kinds=[JOBS, *(kind.resource for kind in kinds)]) as seen,
    ):
        exit_codes = {f"wave-{number}": int(chance.random() < 0.2) for number in range(OBJECTS_PER_KILL * kills)}
        views = [Lives(scene, kind, manager.managed_by) for kind in kinds]
        came: list[One] = []
        turns = [asyncio.Event() for _ in range(kills)]
        async with asyncio.TaskGroup() as scope:
            scope.create_task(_come_in(exit_codes, views, manager, chance, came, turns), name="wave")
            for number in range(kills):
                turns[number].set()
                if upheaval := upheavals.get(number):
                    scope.create_task(_take_away(scene, upheaval), name=f"{upheaval.kind} goes")
                await asyncio.sleep(chance.uniform(0.0, _LONGEST_SECONDS))  # the moment
                await manager.kill()
                manager.launch()
                if number % 3 or number == kills - 1:  # else it is killed while it begins
                    await manager.wait_until_ready()
        found = await _judge(came, list(upheavals.values()), seen)
        jobs = await until(
            partial(sources, scene), lambda jobs: all(map(is_over, jobs.values())), seconds=_WAIT_SECONDS
        )
        assert {name: int(not is_complete(one)) for name, one in jobs.items()} == exit_codes
        assert {len(seen.by_source()[uid(one)]) for one in jobs.values()} == {1}
        await manager.stop()
    return found + Counter({"Job ended": len(jobs)})


async def _take_away(scene: Scene, upheaval: Upheaval) -> None:
    client, resource = scene.client_of(upheaval.where) if upheaval.where else scene.client, upheaval.kind.resource
    try:
        await operators.undefine(client, resource)
        await asyncio.sleep(_AWAY_SECONDS)
    finally:
        await operators.define(client, resource)


async def _come_in(
    exit_codes: dict[str, int],
    views: Sequence[Lives],
    manager: ManagerProcess,
    chance: random.Random,
    came: list[One],
    turns: Sequence[asyncio.Event],
) -> None:
    """Create them, an equal part before each kill."""
    async with asyncio.TaskGroup() as scope:
        for number, (name, code) in enumerate(exit_codes.items()):
            await turns[number // OBJECTS_PER_KILL].wait()
            run_for = f"{chance.randrange(100, 1500)}ms"
            await views[0].scene.create(job(name, manager.managed_by, run_for=run_for, exit_code=code))
            for lives in views:
                fate = chance.choices(list(Fate), weights=(6, 2, 2))[0]
                held = lives.kind.held if fate is Fate.IS_HELD else {}
                create = partial(lives.create, _name(lives.kind, name), run_for=run_for, exit_code=code, **(held or {}))
                made = await until(create, seconds=_WAIT_SECONDS)  # again, where its definition is away
                one = One(lives, made["metadata"]["name"], uid(made), code, fate if held is not None else Fate.RUNS)
                came.append(one)
                if one.fate is not Fate.RUNS:
                    scope.create_task(_think_again(one, chance.uniform(0.0, _LONGEST_SECONDS)), name=str(one))


def _name(kind: Kind, name: str) -> str:
    """JobSets have the Jobs' names; of other kinds they would want the JobSets' children and Services."""
    return name if kind is JOB_SET else f"{kind}-{name}".lower()


async def _think_again(one: One, seconds: float) -> None:
    """Resume it, or delete it, a moment later; it may have gone with its definition."""
    await asyncio.sleep(seconds)
    try:
        if one.fate is Fate.IS_DELETED:
            await one.lives.delete(one.name)
        else:
            await one.lives.set_policy(one.lives.kind.released, one.name)
    except StatusError as error:
        if error.status != 404:
            raise


async def _judge(came: Sequence[One], upheavals: Sequence[Upheaval], seen: Recorder) -> Counter[str]:
    found = Counter[str]()
    for one in came:
        found[await _become(one, upheavals)] += 1
        _judge_mirrors(one, upheavals, seen)
    return found


async def _become(one: One, upheavals: Sequence[Upheaval]) -> str:
    """Wait for what has to become of it; what did, for the summary."""
    lives, kind = one.lives, one.lives.kind
    concerned = {upheaval.where for upheaval in upheavals if upheaval.kind is kind}

    def is_settled(found: object) -> bool:
        source = found if isinstance(found, dict) and uid(found) == one.uid else None
        if one.fate is Fate.IS_DELETED:
            return source is None
        if source is None:
            return "" in concerned
        return lives.is_over(source) or (not kind.ends and bool(kind.is_running(source)))

    source = await until(
        partial(lives.source, one.name), is_settled, seconds=_WAIT_SECONDS, describe=partial(lives.describe, one.name)
    )
    if source is None or uid(source) != one.uid:
        await lives.until_no_mirror(one.name)
        return f"{kind} deleted" if one.fate is Fate.IS_DELETED else f"{kind} gone with its definition"
    if not kind.ends:
        return f"{kind} runs"
    if any(concerned) and end(source, kind.failed).get("reason") == "MirrorLost":
        return f"{kind} lost with its definition"
    assert end(source, kind.failed if one.exit_code else kind.succeeded), await lives.describe(one.name)
    return f"{kind} ended"


def _judge_mirrors(one: One, upheavals: Sequence[Upheaval], seen: Recorder) -> None:
    """At most one at any time; one in all, unless it was deleted first or lost what nobody had seen to start."""
    concerned = {upheaval.where for upheaval in upheavals if upheaval.kind is one.lives.kind}
    count = len(seen.by_source().get(one.uid, ()))
    least = 0 if one.fate is Fate.IS_DELETED or "" in concerned else 1
    assert seen.most_at_once.get(one.uid, 0) <= 1, f"{one.lives.kind} {one.name}: mirrors at once"
    assert least <= count, f"{one.lives.kind} {one.name}: no mirror"
    assert count <= 1 or any(concerned), f"{one.lives.kind} {one.name}: {count} mirrors"


async def _run(kills: int, seed: int) -> str:
    # Which kinds there are is settled when this is imported.
    from e2e import kind_choice

    async with control_planes(workers=2, provider=Binaries()) as planes:
        workers = dict(planes.workers)
        scene = Scene(planes.management, workers, "wave")
        for place in ("", *workers):
            await scene.make_namespace(place)
        clusters, chosen = (planes.management, *workers.values()), kind_choice.operators()
        async with operators.running(*clusters, operators=chosen, planes_end=True):
            started = time.monotonic()
            found = await play(planes.management, workers, scene, kinds=kind_choice.CHOSEN, kills=kills, seed=seed)
            seconds = time.monotonic() - started
        await scene.close()
    listed = "\n".join(f"  {count:5} {what}" for what, count in sorted(found.items()))
    return (
        f"{found.total()} objects, {kills} kills, seed {seed}, in {seconds:.0f} s; no more than one mirror:\n{listed}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="how often the manager is killed")
    parser.add_argument("--seed", type=int, default=14, help="of what is random: moments, ends, how long pods run")
    parser.add_argument("--kinds", default="all", help="names with commas, or all; JobSet and MPIJob always are")
    options = parser.parse_args()
    os.environ["MIRROR_E2E_KINDS"] = options.kinds
    try:
        print(asyncio.run(_run(options.kills, options.seed)))
    except (AssertionError, ExceptionGroup, TimeoutError) as failure:
        print(f"seed {options.seed}: {failure}", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
