"""How Jobs end badly, and what happens to mirrors on the worker."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from e2e.controlplane.client import Json
from e2e.jobs import is_failed, job, runs
from e2e.troubles.stage import JOB, Play, Sight, is_so, over, says


async def deadline(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(activeDeadlineSeconds=1))
    yield Sight("The Job is not done by its deadline", is_so("Failed", "DeadlineExceeded"))
    await play.create_anew(play.job(run_for="100ms", activeDeadlineSeconds=600))
    yield over(is_so("Complete"))


async def backoff_limit(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create(play.job(run_for="100ms", exit_code=3, backoffLimit=0))
    yield Sight("Pods fail too often", is_so("Failed", "BackoffLimitExceeded"))
    await play.create_anew(play.job(run_for="100ms"))
    yield over(is_so("Complete"))


async def failure_policy(play: Play) -> AsyncGenerator[Sight, None]:
    rule: Json = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    named = {"worker-selector": "region=eu", "pod-failure-policy-rule-names": '{"0": "NoLicence"}'}
    body = play.job(run_for="100ms", exit_code=42, podFailurePolicy={"rules": [rule]}, annotations=named)
    await play.create(body)
    yield Sight("A rule of podFailurePolicy ends the Job", is_failed)
    await play.create_anew(play.job(run_for="100ms"))
    yield over(is_so("Complete"))


async def mirror_deleted(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create()
    await play.scene.source_until(JOB, runs())
    await play.on().delete(f"{play.scene.jobs('east')}/{JOB}")
    yield Sight("Somebody deletes the mirror", is_so("Failed", "MirrorLost"))
    await play.create_anew(play.job(run_for="100ms"))
    yield over(is_so("Complete"))


async def mirror_edited(play: Play) -> AsyncGenerator[Sight, None]:
    """Put right twice, then reported: two controllers must not fight."""
    await play.create(play.job(labels={"team": "a"}))
    await play.scene.source_until(JOB, runs())
    mirror = f"{play.scene.jobs('east')}/{JOB}"
    for turn in range(3):
        await play.scene.mirror_until("east", JOB, lambda found: found and found["metadata"]["labels"]["team"] == "a")
        await play.on().merge(mirror, {"metadata": {"labels": {"team": f"b-{turn}"}}})
    yield Sight("Something on the worker undoes changes of the mirror", says("ChangeReverted"))
    await play.on().merge(mirror, {"metadata": {"labels": {"team": "a"}}})
    yield over()


async def name_taken(play: Play) -> AsyncGenerator[Sight, None]:
    await play.on().create(play.scene.jobs("east"), job(JOB, run_for="never"))
    await play.create()
    yield Sight("The worker has another Job of this name", says("RefusedByWorkers", "name is taken"))
    await play.on().delete(f"{play.scene.jobs('east')}/{JOB}")
    yield over()


async def previous_mirror(play: Play) -> AsyncGenerator[Sight, None]:
    await play.create()
    await play.scene.mirror_until("east", JOB, lambda found: bool(found))
    mirror = f"{play.scene.jobs('east')}/{JOB}"
    await play.on().merge(mirror, {"metadata": {"finalizers": ["example.com/audit"]}})
    await play.scene.delete(JOB)
    await play.scene.mirror_until("east", JOB, lambda found: bool(found and found["metadata"].get("deletionTimestamp")))
    await play.create()
    yield Sight("The mirror of an earlier Job is still there", says("PreviousMirrorExists", "example.com/audit"))
    await play.on().merge(mirror, {"metadata": {"finalizers": None}})
    yield over()


STORIES = (deadline, backoff_limit, failure_policy, mirror_deleted, mirror_edited, name_taken, previous_mirror)
