"""Indexed Jobs, and those whose size changes (A7, A11, T7, I1, I2, U3)."""

from __future__ import annotations

from e2e.controlplane.client import Json
from e2e.job_scenarios.bodies import INDEX, TRACKING, controlled_by, lone_pod
from e2e.job_scenarios.bodies import indexed as indexed_job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has


@scenario("chain 4; TestIndexedJob, indexed job completed")
async def three_indexes(stage: Stage) -> None:
    """Successes are counted by index, in one write each."""
    await stage.create(indexed_job(3))
    zero, one, two = await stage.pods(3)
    await stage.succeed(two)
    await stage.succeed(zero, one)
    await stage.until(has("Complete"))


@scenario("A7: the lowest indexes first; I1")
async def five_indexes_two_at_a_time(stage: Stage) -> None:
    """completedIndexes grows as ``0``, ``0,1``, ``0-2`` and so on."""
    await stage.create(indexed_job(5, 2))
    for _ in range(4):
        first, *_ = await stage.pods(2)
        await stage.succeed(first)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("A7, B4; indexed job some failed pods", is_for_kills=False)
async def a_failed_index_is_run_again(stage: Stage) -> None:
    """Its replacement has the same index and comes after the backoff."""
    await stage.create(indexed_job(2))
    zero, one = await stage.pods(2)
    await stage.fail(zero)
    await stage.succeed(one)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("A11: env in every container, unless named already")
async def index_in_the_environment(stage: Stage) -> None:
    """Init containers too; a variable of that name stays as it is."""
    pod = {
        "containers": [
            {"name": "c", "image": "i", "env": [{"name": "OTHER", "value": "1"}]},
            {"name": "d", "image": "i", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]},
        ],
        "initContainers": [{"name": "init", "image": "i"}],
    }
    await stage.create(indexed_job(2, pod=pod))
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("A11: the index survives in a long name; C3")
async def a_long_name_with_indexes(stage: Stage) -> None:
    """The Job's part is cut, the index is not."""
    name = "a-job-with-a-name-that-is-nearly-as-long-as-any-name-of-one"
    await stage.create(indexed_job(2, name=name))
    await stage.pods(2, name)


@scenario("A11: a template with a hostname and a subdomain")
async def a_template_with_a_hostname(stage: Stage) -> None:
    """The hostname is that of the index whatever the template says."""
    await stage.create(indexed_job(1, pod={"hostname": "mine", "subdomain": "sub"}))
    await stage.pods(1)


@scenario("A11: a template that names an index itself")
async def a_template_with_an_index(stage: Stage) -> None:
    """Annotation and label are the controller's."""
    await stage.create(indexed_job(1, template={"annotations": {INDEX: "7"}, "labels": {INDEX: "7"}}))
    await stage.pods(1)


@scenario("U3, I2; TestElasticIndexedJob: scale up")
async def more_indexes(stage: Stage) -> None:
    """New indexes start at once, the finished stay."""
    await stage.create(indexed_job(2))
    zero, _ = await stage.pods(2)
    await stage.succeed(zero)
    await stage.change(completions=4, parallelism=4)
    await stage.succeed(*await stage.pods(3))
    await stage.until(has("Complete"))


@scenario("chain 13; A3, I2; TestElasticIndexedJob: scale down")
async def fewer_indexes(stage: Stage) -> None:
    """Finished indexes beyond the end are forgotten, running ones are deleted without being counted."""
    await stage.create(indexed_job(4))
    pods = await stage.pods(4)
    await stage.succeed(pods[0], pods[3])
    await stage.change(completions=2, parallelism=2)
    await stage.gone(pods[2])
    await stage.succeed(pods[1])
    await stage.until(has("Complete"))


@scenario("I2; TestElasticIndexedJob: finishes, scale down, scale up")
async def a_forgotten_index_runs_again(stage: Stage) -> None:
    """Scaling up does not bring back what scaling down has dropped."""
    await stage.create(indexed_job(3))
    pods = await stage.pods(3)
    await stage.succeed(pods[2])
    await stage.change(completions=2, parallelism=2)
    await stage.change(completions=3, parallelism=3)
    await stage.succeed(*await stage.pods(3))
    await stage.until(has("Complete"))


@scenario("TestElasticIndexedJob: scale down to 0")
async def down_to_no_indexes(stage: Stage) -> None:
    """The Job completes when its pods are gone."""
    await stage.create(indexed_job(2))
    pods = await stage.pods(2)
    await stage.run(*pods)
    await stage.change(completions=0, parallelism=0)
    await stage.gone(*pods)
    await stage.until(has("Complete"))


@scenario("A3: duplicate index, index out of range, no index")
async def pods_with_impossible_indexes(stage: Stage) -> None:
    """Surplus of that kind is deleted even when the number is right (A3)."""
    made = await stage.create(indexed_job(2))
    await stage.pods(2)
    await stage.run(*await stage.pods(2))
    async with stage.stimulus("intruders"):
        for name, index in (("twice", "0"), ("beyond", "5"), ("text", "x"), ("none", None)):
            await stage.create_pod(_intruder(stage, made, name, index))


@scenario("Q16, T5: such pods end; indexed job with indexes outside of range")
async def impossible_indexes_that_ended(stage: Stage) -> None:
    """They never count, but lose the finalizer."""
    made = await stage.create(indexed_job(3, 1))
    await stage.pods(1)
    async with stage.stimulus("ended intruders"):
        for name, index in (("beyond", "5"), ("none", None)):
            await stage.create_pod(_intruder(stage, made, name, index), {"phase": "Succeeded"})
        await stage.create_pod(_intruder(stage, made, "far", "9"), {"phase": "Failed"})


@scenario("T4, Q16; indexed job repeated completed index, in the same sync", is_for_kills=False)
async def an_index_that_succeeds_twice(stage: Stage) -> None:
    """It counts once."""
    made = await stage.create(indexed_job(2, 1))
    (zero,) = await stage.pods(1)
    async with stage.stimulus("twice"):
        await stage.create_pod(_intruder(stage, made, "twice", "0"), {"phase": "Succeeded"})
        await stage.succeed(zero)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("U1: parallelism alone may change")
async def parallelism_of_an_indexed_job(stage: Stage) -> None:
    """Down: the surplus goes; up: the lowest free indexes come."""
    await stage.create(indexed_job(4, 3))
    pods = await stage.pods(3)
    await stage.run(pods[0])
    await stage.run(pods[2])
    await stage.change(parallelism=2)
    await stage.until(counts(active=2))
    await stage.gone(pods[1])
    await stage.change(parallelism=4)
    await stage.pods(4)


@scenario("I1: runs of two and three, gaps")
async def scattered_indexes(stage: Stage) -> None:
    """1, 3, 4, 6, 7, 8 are written as ``1,3,4,6-8``."""
    await stage.create(indexed_job(10))
    pods = await stage.pods(10)
    await stage.succeed(*(pods[index] for index in (1, 3, 4, 6, 7, 8)))


def _intruder(stage: Stage, owner: Json, name: str, index: str | None) -> Json:
    """A pod that belongs to the Job but was not made by the controller."""
    labels = stage.job()["spec"]["template"]["metadata"]["labels"]
    annotations = {} if index is None else {INDEX: index}
    return lone_pod(name, labels=labels, annotations=annotations, finalizers=[TRACKING], owner=controlled_by(owner))
