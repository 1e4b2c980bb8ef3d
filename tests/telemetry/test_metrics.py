"""The metrics that others count with, as a scraper sees them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mirror.telemetry.metrics import MIRROR_STATES, MOST_CONTROLLERS, Metrics


def series(metrics: Metrics) -> dict[str, float]:
    """Every sample by its text, such as ``jobmirror_worker_up{worker="east"}``; buckets left out."""
    found = {}
    metrics.refresh()
    for family in text_string_to_metric_families(metrics.render()[0].decode()):
        for sample in family.samples:
            labels = ",".join(f'{key}="{value}"' for key, value in sorted(sample.labels.items()))
            if not sample.name.endswith("_bucket"):
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        'jobmirror_mirrored_jobs{kind="Job",state="running",worker="east"}',
        'jobmirror_mirrored_jobs{kind="JobSet",state="running",worker="east"}',
        'jobmirror_jobs_by_reason{kind="JobSet",reason="WorkersFull"}',
        'jobmirror_create_to_copy_seconds_count{kind="Job"}',
        'jobmirror_create_to_copy_seconds_count{kind="JobSet"}',
        'jobmirror_foreign_status_writes_total{kind="Job"}',
        'jobmirror_status_lag_seconds_count{worker="east"}',
        'jobmirror_api_requests_total{cluster="east",code="200",verb="get"}',
        'jobmirror_api_request_seconds_count{cluster="east",verb="get"}',
        'jobmirror_queue_depth{lane="east"}',
        "jobmirror_queue_wait_seconds_count",
        "jobmirror_work_seconds_count",
        "jobmirror_queue_retries_total",
        "jobmirror_queue_longest_running_seconds",
        "jobmirror_queue_oldest_seconds",
        'jobmirror_watch_staleness_seconds{cluster="east",kind="Job"}',
        'jobmirror_watch_restarts_total{cluster="east",kind="Job"}',
        'jobmirror_worker_up{worker="east"}',
        'jobmirror_refused_status_writes_total{kind="Job",worker="east"}',
        'jobmirror_worker_content_cut_total{worker="east"}',
        'jobmirror_unknown_objects_dropped_total{worker="east"}',
        'jobmirror_sweep_halted_total{worker="east"}',
        'jobmirror_sweep_deleted_total{worker="east"}',
        'jobmirror_placements_total{kind="Job",worker="east"}',
        "jobmirror_waiting_jobs",
        'jobmirror_task_restarts_total{task="watch"}',
        "jobmirror_leader",
        'jobmirror_slot_holders{slot="3"}',
        'jobmirror_access_passed_on_total{result="answered"}',
        "jobmirror_loop_lag_seconds",
        'jobmirror_secondary_mirrors_total{why="WorkerLost"}',
        'jobmirror_retries_total{outcome="Retried",worker="east"}',
        'job_controller_jobs_by_external_controller_total{controller_name="jobmirror.io/controller"}',
        "process_cpu_seconds_total",
    ],
)
def test_every_metric_is_offered_under_its_name(name: str) -> None:
    """Dashboards and alerts can rely on names and labels."""
    metrics = Metrics()
    metrics.of_kind("east", "JobSet")
    metrics.create_to_copy("JobSet").observe(0.01)
    metrics.set_jobs_by_reason("JobSet", {"WorkersFull": 1})
    metrics.on_request("east", "get", "200", 0.01)
    metrics.set_queue_depths({"east": 1})
    metrics.watch_staleness("east", "Job").set(1)
    metrics.set_watch_restarts("east", "Job", 1)
    metrics.on_task_restart("watch east")
    metrics.secondary_mirrors.labels("WorkerLost").inc()
    metrics.retries.labels("east", "Retried").inc()
    metrics.on_external_job("jobmirror.io/controller")
    metrics.slot_holders.labels("3").set(1)
    metrics.on_passed_on("answered")

    assert name in series(metrics)


def test_the_version_is_a_label() -> None:
    """Which version runs can be seen from outside."""
    (name,) = [name for name in series(Metrics()) if name.startswith("jobmirror_build_info")]

    assert name.startswith('jobmirror_build_info{program="manager",version="')


def test_a_job_controller_of_its_own_is_no_manager() -> None:
    """What tells that no manager runs must not be silenced by another program of ours."""
    (name,) = [name for name in series(Metrics("job-controller")) if name.startswith("jobmirror_build_info")]

    assert name.startswith('jobmirror_build_info{program="job-controller"')


def test_counting_shows() -> None:
    """What rooms report through the observer methods arrives in the series."""
    metrics = Metrics()
    for _ in range(3):
        metrics.on_request("east", "patch", "200", 0.25)
    metrics.on_request("east", "patch", "409", 0.5)
    metrics.on_taken(0.5)
    metrics.on_worked(2.0)
    metrics.on_retry()
    metrics.of_kind("east", "Job").placements.inc()
    metrics.of_kind("east", "Job").mirrored_jobs["running"].set(7)
    metrics.of_kind("east", "JobSet").mirrored_jobs["running"].set(2)

    seen = series(metrics)

    assert seen['jobmirror_api_requests_total{cluster="east",code="200",verb="patch"}'] == 3
    assert seen['jobmirror_api_requests_total{cluster="east",code="409",verb="patch"}'] == 1
    assert seen['jobmirror_api_request_seconds_sum{cluster="east",verb="patch"}'] == 1.25
    assert (seen["jobmirror_queue_wait_seconds_sum"], seen["jobmirror_work_seconds_sum"]) == (0.5, 2.0)
    assert seen["jobmirror_queue_retries_total"] == 1
    assert seen['jobmirror_placements_total{kind="Job",worker="east"}'] == 1
    assert seen['jobmirror_mirrored_jobs{kind="Job",state="running",worker="east"}'] == 7
    assert seen['jobmirror_mirrored_jobs{kind="JobSet",state="running",worker="east"}'] == 2


def test_a_worker_has_its_series_from_the_start() -> None:
    """Counters begin at zero rather than at their first increment, so that rates see it."""
    metrics = Metrics()
    metrics.worker("east")

    seen = series(metrics)

    ours = 'kind="Job",state="{}",worker="east"'
    assert all(seen[f"jobmirror_mirrored_jobs{{{ours.format(state)}}}"] == 0 for state in MIRROR_STATES)
    assert seen['jobmirror_placements_total{kind="Job",worker="east"}'] == 0
    assert not [name for name in seen if "JobSet" in name]


def test_a_forgotten_worker_leaves_no_series() -> None:
    """Series are bounded by the workers that exist, not by those that ever did."""
    metrics = Metrics()
    before = series(metrics).keys()
    for name in ("east", "west"):
        metrics.worker(name).up.set(1)
        metrics.of_kind(name, "JobSet").placements.inc()
        metrics.on_request(name, "get", "200", 0.01)
        metrics.set_watch_restarts(name, "Job", 1)
        metrics.set_worker_token(name, expires=4e9, lifetime_seconds=3600)
        metrics.on_token_renewal(name, "renewed")
        metrics.watch_staleness(name, "Job").set_function(lambda: 1.0)
    metrics.set_queue_depths({"east": 1, "west": 2})

    metrics.forget_worker("east")

    left = series(metrics).keys() - before
    assert not [name for name in left if '"east"' in name]
    assert 'jobmirror_worker_up{worker="west"}' in left
    assert 'jobmirror_queue_depth{lane="west"}' in left


def test_a_worker_that_comes_back_starts_anew() -> None:
    """After forgetting, counting under the name works and starts at zero."""
    metrics = Metrics()
    for _ in range(2):
        metrics.forget_worker("east")
        metrics.of_kind("east", "Job").placements.inc()
        metrics.on_request("east", "get", "200", 0.01)

    assert series(metrics)['jobmirror_placements_total{kind="Job",worker="east"}'] == 1
    assert series(metrics)['jobmirror_api_requests_total{cluster="east",code="200",verb="get"}'] == 1


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        ("201", "201"),
        ("error", "error"),
        ("299", "2xx"),
        ("777", "error"),
        ("599", "5xx"),
        ("4041", "error"),
        ("", "error"),
    ],
)
def test_unusual_codes_share_a_series(code: str, counted: str) -> None:
    """A worker cannot make series by inventing status codes (D12)."""
    metrics = Metrics()
    for _ in range(2):
        metrics.on_request("east", "get", code, 0.01)

    assert series(metrics)[f'jobmirror_api_requests_total{{cluster="east",code="{counted}",verb="get"}}'] == 2


def test_users_cannot_make_series_without_end() -> None:
    """Names of external controllers come from users; beyond a hundred they count together."""
    metrics = Metrics()
    for number in range(MOST_CONTROLLERS + 50):
        metrics.on_external_job(f"example.com/{number}")
    metrics.on_external_job("example.com/0")

    name = "job_controller_jobs_by_external_controller_total"
    seen = {text: value for text, value in series(metrics).items() if text.startswith(name)}
    assert len(seen) == MOST_CONTROLLERS + 1
    assert seen[f'{name}{{controller_name="other"}}'] == 50
    assert seen[f'{name}{{controller_name="example.com/0"}}'] == 2


def test_lanes_that_are_empty_have_no_series() -> None:
    """Depths are what the queue just said; a lane that is gone is not shown as waiting for ever."""
    metrics = Metrics()
    metrics.set_queue_depths({"east": 3, "west": 1})
    metrics.set_queue_depths({"west": 2})

    depths = {text: value for text, value in series(metrics).items() if text.startswith("jobmirror_queue_depth")}
    assert depths == {'jobmirror_queue_depth{lane="west"}': 2}


def test_gauges_are_refreshed_when_scraped() -> None:
    """Ages are right at the moment of the scrape, not of the last change."""
    metrics = Metrics()
    ages = iter([1.0, 5.0])
    metrics.before_scrape(lambda: metrics.queue_oldest.set(next(ages)))

    assert [series(metrics)["jobmirror_queue_oldest_seconds"] for _ in range(2)] == [1.0, 5.0]


def test_several_managers_count_apart() -> None:
    """There is no registry of the process: each manager has its own."""
    first, second = Metrics(), Metrics()
    first.on_retry()

    assert series(first)["jobmirror_queue_retries_total"] == 1
    assert series(second)["jobmirror_queue_retries_total"] == 0


def test_no_series_of_creation_times() -> None:
    """Each counter and histogram is scraped once, not with a second series that tells when it was made."""
    assert not [name for name in series(Metrics()) if name.endswith("_created")]


def test_a_scraper_gets_the_format_it_asks_for() -> None:
    """OpenMetrics for those who accept it, else the text format."""
    metrics = Metrics()

    plain, openmetrics = metrics.render(), metrics.render("application/openmetrics-text; version=1.0.0")

    assert plain[1].startswith("text/plain; version=")
    assert openmetrics[1].startswith("application/openmetrics-text")
    assert openmetrics[0].endswith(b"# EOF\n")
