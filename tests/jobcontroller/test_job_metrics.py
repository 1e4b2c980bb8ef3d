"""The metrics' names, labels and buckets are upstream's (PM1–PM4)."""

import pytest
from doubles.clock import LoopClock
from prometheus_client.parser import text_string_to_metric_families

from mirror.jobcontroller import metrics as module
from mirror.jobcontroller.metrics import JobMetrics
from mirror.runtime.queue import WorkQueue
from mirror.telemetry.metrics import Metrics

UPSTREAMS_QUEUE_BUCKETS = [
    "1e-08",
    "1e-07",
    "1e-06",
    "9.999999999999999e-06",
    "9.999999999999999e-05",
    "0.001",
    "0.01",
    "0.1",
    "1.0",
    "10.0",
    "+Inf",
]


def scrape(process: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    process.refresh()
    text = process.render()[0].decode()
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}


def value(process: Metrics, name: str, **labels: str) -> float | None:
    return scrape(process).get((name, frozenset(labels.items())))


@pytest.fixture
def process() -> Metrics:
    return Metrics()


@pytest.fixture
def jobs(process: Metrics) -> JobMetrics:
    return JobMetrics(process)


def test_a_sync_is_timed_and_counted(process: Metrics, jobs: JobMetrics) -> None:
    """15 buckets from 4 ms to 65.536 s."""
    labels = {"completion_mode": "Indexed", "result": "success", "action": "pods_created"}
    jobs.on_synced("Indexed", "success", "pods_created", 0.005)

    assert value(process, "job_controller_job_syncs_total", **labels) == 1
    name = "job_controller_job_sync_duration_seconds"
    bounds = [dict(key[1])["le"] for key in scrape(process) if key[0] == f"{name}_bucket"]
    assert sorted(map(float, bounds))[:2] == [0.004, 0.008]
    assert sorted(map(float, bounds))[-2:] == [65.536, float("inf")]
    assert len(bounds) == 16
    assert value(process, f"{name}_bucket", le="0.008", **labels) == 1


def test_everything_that_is_counted_has_upstreams_name(process: Metrics, jobs: JobMetrics) -> None:
    """One call each, one series each."""
    jobs.on_finished("NonIndexed", "failed", "BackoffLimitExceeded")
    jobs.on_pods_finished("NonIndexed", "succeeded", 3)
    jobs.on_indexes_finished("failed", "perIndex", 2)
    jobs.on_policy_action("FailJob", 4)
    jobs.on_tracking_finalizer("add")
    jobs.on_pods_created("recreate_failed", "succeeded", 5)
    jobs.on_external_job("example.com/other")
    jobs.on_stale_skip("batch", "jobs")
    jobs.on_expired(0.2)

    found = {
        (name.removeprefix("job_controller_"), *sorted(labels)): number
        for (name, labels), number in scrape(process).items()
        if name.startswith(("job_controller_", "ttl_after")) and labels and not name.endswith("_bucket")
    }
    assert found == {
        (
            "jobs_finished_total",
            ("completion_mode", "NonIndexed"),
            ("reason", "BackoffLimitExceeded"),
            ("result", "failed"),
        ): 1,
        ("job_pods_finished_total", ("completion_mode", "NonIndexed"), ("result", "succeeded")): 3,
        ("job_finished_indexes_total", ("backoffLimit", "perIndex"), ("status", "failed")): 2,
        ("pod_failures_handled_by_failure_policy_total", ("action", "FailJob")): 4,
        ("terminated_pods_tracking_finalizer_total", ("event", "add")): 1,
        ("job_pods_creation_total", ("reason", "recreate_failed"), ("status", "succeeded")): 5,
        ("jobs_by_external_controller_total", ("controller_name", "example.com/other")): 1,
        ("stale_sync_skips_total", ("group", "batch"), ("resource", "jobs")): 1,
    }
    assert value(process, "ttl_after_finished_controller_job_deletion_duration_seconds_count") == 1


def test_scaling_down_takes_nothing_back(process: Metrics, jobs: JobMetrics) -> None:
    """A negative difference would be an error of the library, as it is a panic upstream (PM3)."""
    jobs.on_pods_finished("Indexed", "succeeded", -2)
    jobs.on_indexes_finished("succeeded", "global", -2)

    labels = {"completion_mode": "Indexed", "result": "succeeded"}
    assert value(process, "job_controller_job_pods_finished_total", **labels) == 0


def test_a_success_without_reason_keeps_its_series(process: Metrics, jobs: JobMetrics) -> None:
    """The gate JobSuccessPolicy off, and users who have taken all series for theirs."""
    for number in range(module.MOST_REASONS + 1):
        jobs.on_finished("Indexed", "failed", f"Mine{number}")
    jobs.on_finished("Indexed", "succeeded", "")

    labels = {"completion_mode": "Indexed", "result": "succeeded", "reason": ""}
    assert value(process, "job_controller_jobs_finished_total", **labels) == 1


def test_buckets_have_the_labels_of_upstreams_arithmetic(process: Metrics, jobs: JobMetrics) -> None:
    """component-base multiplies by ten again and again; dashboards name buckets by these texts."""
    observer = jobs.queue_observer("job")
    observer.on_taken(0.1)
    observer.on_worked(0.1)

    for what in ("queue", "work"):
        name = f"workqueue_{what}_duration_seconds_bucket"
        bounds = [dict(key[1])["le"] for key in scrape(process) if key[0] == name]
        assert sorted(bounds, key=float) == UPSTREAMS_QUEUE_BUCKETS


def test_users_cannot_make_series_without_end(process: Metrics, jobs: JobMetrics) -> None:
    """Names of rules (RN2) and hand-written reasons (Q15) get a hundred series; upstream's own always have theirs."""
    for number in range(module.MOST_REASONS + 5):
        jobs.on_finished("Indexed", "failed", f"PodFailurePolicy_rule{number}")
    jobs.on_finished("Indexed", "failed", "ByHand")
    jobs.on_finished("Indexed", "failed", "DeadlineExceeded")

    found = {dict(key[1])["reason"]: n for key, n in scrape(process).items() if key[0].endswith("jobs_finished_total")}
    assert len(found) == module.MOST_REASONS + 3
    assert (found["PodFailurePolicy"], found["other"], found["DeadlineExceeded"]) == (5, 1, 1)


def test_a_process_that_mirrors_counts_external_jobs_itself(process: Metrics) -> None:
    """Two watches of one process see the same Job."""
    jobs = JobMetrics(process, counts_external=False)
    process.on_external_job("example.com/other")
    jobs.on_external_job("example.com/other")

    name = "job_controller_jobs_by_external_controller_total"
    assert value(process, name, controller_name="example.com/other") == 1


@pytest.mark.looptime
async def test_a_queue_shows_what_is_in_it(process: Metrics, jobs: JobMetrics) -> None:
    """``workqueue_*{name="job"}`` (PM4): depth, adds, waits, work, and each delayed add as a retry."""
    queue: WorkQueue[str] = WorkQueue(lambda _: "", clock=LoopClock())
    jobs.watch_queue("job", queue)
    observer = jobs.queue_observer("job")
    queue.add("a")
    queue.add_after("b", 0)
    queue.add("c")
    queue.add_after("c", 1)
    taken = await queue.take()
    observer.on_taken(taken.waited_seconds)
    queue.retry("d")
    observer.on_retry()

    found = {name: n for (name, labels), n in scrape(process).items() if labels == {("name", "job")}}
    assert (found["workqueue_depth"], found["workqueue_adds_total"], found["workqueue_retries_total"]) == (2, 3, 3)
    assert found["workqueue_queue_duration_seconds_count"] == 1
    assert found["workqueue_unfinished_work_seconds"] > 0

    queue.done(taken.key)
    observer.on_worked(0.01)
    found = {name: n for (name, labels), n in scrape(process).items() if labels == {("name", "job")}}
    assert (found["workqueue_work_duration_seconds_count"], found["workqueue_unfinished_work_seconds"]) == (1, 0)
    assert (found["workqueue_depth"], found["workqueue_adds_total"]) == (2, 3)
    queue.close()
