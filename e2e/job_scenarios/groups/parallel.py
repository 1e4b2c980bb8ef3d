"""Jobs of several pods: fixed numbers of completions, work queues, changing parallelism (4.6)."""

from __future__ import annotations

from e2e.job_scenarios.bodies import job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has


@scenario("chain 3; TestParallelJobWithCompletions")
async def three_completions_two_at_a_time(stage: Stage) -> None:
    """The third pod comes before the first success is written."""
    await stage.create(job(completions=3, parallelism=2))
    first, _ = await stage.pods(2)
    await stage.succeed(first)
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("chain 2; A2; TestParallelJob, WQ job finishing")
async def a_work_queue(stage: Stage) -> None:
    """After the first success nobody is replaced."""
    await stage.create(job(parallelism=3))
    first, second, third = await stage.pods(3)
    await stage.run(first, second, third)
    await stage.succeed(first)
    await stage.succeed(second)
    await stage.succeed(third)
    await stage.until(has("Complete"))


@scenario("chain 2; WQ job all finished despite one failure")
async def a_work_queue_with_a_failure(stage: Stage) -> None:
    """A pod that fails after the first success is counted and not replaced; the Job completes."""
    await stage.create(job(parallelism=3))
    first, second, third = await stage.pods(3)
    await stage.succeed(first)
    await stage.fail(second)
    await stage.succeed(third)
    await stage.until(has("Complete"))


@scenario("A2, B4; WQ job: recreate pods when failed")
async def a_work_queue_replaces_what_failed(stage: Stage) -> None:
    """Before the first success a failed pod is replaced after its backoff."""
    await stage.create(job(parallelism=2))
    first, _ = await stage.pods(2)
    await stage.fail(first)
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("A2; WQ job all finished at once")
async def a_work_queue_ends_all_at_once(stage: Stage) -> None:
    """Successes and a failure in one batch."""
    await stage.create(job(parallelism=3))
    first, second, third = await stage.pods(3)
    async with stage.stimulus("two succeed, one fails"):
        await stage.succeed(first, second)
        await stage.fail(third)
    await stage.until(has("Complete"))


@scenario("A3, A4; TestParallelJobChangingParallelism")
async def parallelism_goes_up_and_down(stage: Stage) -> None:
    """More are created; the newest and least ready go first, stripped before they are deleted."""
    await stage.create(job(completions=10, parallelism=2))
    first, second = await stage.pods(2)
    await stage.run(first)
    await stage.run(second)
    await stage.change(parallelism=4)
    await stage.pods(4)
    await stage.change(parallelism=2)
    await stage.change(parallelism=0)
    await stage.all_gone()
    await stage.change(parallelism=1)
    await stage.pods(1)


@scenario("A4: no node, pending, not ready, ready for less time")
async def surplus_is_chosen_by_rank(stage: Stage) -> None:
    """Each pod is in another state; they go in the order of the ranks."""
    await stage.create(job(completions=10, parallelism=5, node=None))
    ready_long, ready, unready, pending, _ = await stage.pods(5)
    await stage.bind(ready_long)
    await stage.run(ready_long)
    for pod in (ready, unready, pending):
        await stage.bind(pod)
    await stage.run(ready)
    await stage.run(unready, is_ready=False)
    for parallelism in (4, 3, 2, 1):
        await stage.change(parallelism=parallelism)


@scenario("A4: container restarts")
async def surplus_is_chosen_by_restarts(stage: Stage) -> None:
    """Of two pods alike, the one that was restarted more often goes."""
    await stage.create(job(completions=10, parallelism=2, restart="OnFailure"))
    first, second = await stage.pods(2)
    async with stage.stimulus("both run"):
        await stage.restart(1, first)
        await stage.restart(2, second)
    await stage.change(parallelism=1)


@scenario("A2; more active pods than remaining completions; TestDelayTerminalPhaseCondition: scale down")
async def more_pods_than_completions_left(stage: Stage) -> None:
    """parallelism above completions is cut; while successes come nobody is added."""
    await stage.create(job(completions=3, parallelism=5))
    first, second, third = await stage.pods(3)
    await stage.succeed(first)
    await stage.succeed(second, third)
    await stage.until(has("Complete"))


@scenario("A8, K4: batches 1, 2, 4, …")
async def seven_pods_start_together(stage: Stage) -> None:
    """Slow start, one status write for all."""
    await stage.create(job(completions=7, parallelism=7))
    await stage.run(*await stage.pods(7))
    await stage.succeed(*await stage.pods(7))
    await stage.until(has("Complete"))


@scenario("Y9; count ready pods when too many active pods", tells_pods_apart=False)
async def ready_pods_are_surplus(stage: Stage) -> None:
    """ready goes down in the same write as active (Q11)."""
    await stage.create(job(completions=4, parallelism=4))
    await stage.run(*await stage.pods(4))
    await stage.change(parallelism=1)
    await stage.until(counts(active=1, ready=1))


@scenario("H4, H5: many changes in one batch")
async def successes_come_in_two_batches(stage: Stage) -> None:
    """Six pods; the second half ends in another batch than the first."""
    await stage.create(job(completions=6, parallelism=6))
    pods = await stage.pods(6)
    await stage.succeed(*pods[:3])
    await stage.succeed(*pods[3:])
    await stage.until(has("Complete"))


@scenario("parallelism changes while a pod ends: generation goes at once (H2)")
async def parallelism_changes_as_a_pod_ends(stage: Stage) -> None:
    """The change of the spec is acted upon at once, what the pod did with it."""
    await stage.create(job(completions=5, parallelism=1))
    (first,) = await stage.pods(1)
    async with stage.stimulus("end and change"):
        await stage.succeed(first)
    await stage.change(parallelism=3)
    await stage.succeed(*await stage.pods(3))
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))
