"""What ``bench`` counts and divides, without any cluster."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from bench import figures, jobs, minimum, mirroring
from bench.forms import FORMS, Form
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.objects import decode_object
from mirror.settings.kinds import KindEntry
from mirror.settings.load import load

BENCH = Path(__file__).parents[2] / "bench"

METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",group="batch",resource="jobs",verb="POST"} 40
apiserver_request_total{code="200",group="batch",resource="jobs",subresource="status",verb="PATCH"} 1.2e+02
apiserver_request_total{code="200",component="apiserver",group="",resource="nodes",verb="GET"} 1000
apiserver_request_total{code="200",group="kueue.x-k8s.io",resource="workloads",verb="PATCH"} 7
apiserver_request_total{code="404",group="",resource="",subresource="/healthz",verb="GET"} 9
apiserver_request_duration_seconds_count{resource="jobs",verb="POST"} 5000
"""
STAT = "4711 (a name) with (parens) S 1 4711 4711 0 -1 4194560 900 0 0 0 250 50 30 20 20 0 1 0 12345 1000 200"


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([5.0], 0.5, 5.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        (list(map(float, range(1, 101))), 0.99, 99.0),
        (list(map(float, range(1, 101))), 1.0, 100.0),
        (list(map(float, range(1, 11))), 0.0, 1.0),
    ],
)
def test_a_percentile_is_a_value_that_was_measured(values: list[float], share: float, expected: float) -> None:
    """By nearest rank, in any order."""
    assert figures.percentile(values, share) == expected


def test_no_values_have_no_percentile() -> None:
    """Nor a spread, which says how many there were."""
    assert math.isnan(figures.percentile([], 0.5))
    assert figures.spread([]) == {"n": 0}


def test_a_spread_is_in_milliseconds() -> None:
    """Rounded to a tenth."""
    assert figures.spread([0.0102, 0.01, 0.25]) == {"n": 3, "p50_ms": 10.2, "p99_ms": 250.0, "max_ms": 250.0}


def test_requests_are_those_for_the_resources_that_mirroring_touches() -> None:
    """Every verb, code and subresource of them, and no other metric."""
    assert figures.requests_answered(METRICS) == 167
    assert figures.requests_answered(METRICS, ("nodes",)) == 1000
    assert figures.requests_answered("") == 0


def test_requests_per_job_leave_our_own_out() -> None:
    """NaN where a server did not say."""
    assert figures.per_job(1000, 1340, 40, 40) == 7.5
    assert math.isnan(figures.per_job(math.nan, 1340, 40, 40))


def test_processes_are_read_whatever_they_are_called() -> None:
    """CPU of user and system, with children; resident memory."""
    assert figures.cpu_seconds(STAT, 100) == 3.5
    assert figures.rss_mib("Name:\tx\nVmHWM:\t 9999 kB\nVmRSS:\t  204800 kB\n") == 200
    assert math.isnan(figures.rss_mib("Name:\tx\n"))
    assert figures.pids(["manager=12", "worker=34"]) == {"manager": 12, "worker": 34}
    with pytest.raises(ValueError, match="invalid literal"):
        figures.pids(["manager"])


def test_a_median_is_of_one_figure_of_several_runs() -> None:
    """And a ratio to nothing is nothing."""
    runs = [{"create_to_copy": {"p50_ms": value}} for value in (30, 10, 20)]
    assert figures.median(runs, "create_to_copy", "p50_ms") == 20
    assert figures.ratio(20, 10) == 2
    assert math.isnan(figures.ratio(20, 0))


def test_latencies_are_from_what_was_written_to_what_was_seen() -> None:
    """Of every Job and step that was seen; the copy's from the Job's create."""
    one = mirroring.Course(
        10.0, 10.5, {"start": 11.0, "ready-1": 12.0, "enough": 13.0}, {"start": 11.1, "ready-1": 12.3}
    )
    found = mirroring.summary([one, mirroring.Course(created=10.0)])

    assert found["create_to_copy"] == {"n": 1, "p50_ms": 500.0, "p99_ms": 500.0, "max_ms": 500.0}
    assert found["status_to_management"] == {"n": 2, "p50_ms": 100.0, "p99_ms": 300.0, "max_ms": 300.0}


@pytest.mark.parametrize(
    ("status", "steps"),
    [
        ({}, []),
        ({"active": 4}, []),
        ({"startTime": "t", "active": 4}, ["start"]),
        ({"startTime": "t", "active": 4, "ready": 2}, ["start", "ready-2"]),
        ({"startTime": "t", "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}, []),
        ({"startTime": "t", "conditions": [{"type": "Complete", "status": "True"}]}, ["complete"]),
        ({"startTime": "t", "conditions": [{"type": "Complete", "status": "False"}], "ready": 0}, []),
    ],
)
def test_a_status_shows_how_far_its_job_is(status: dict[str, object], steps: list[str]) -> None:
    """As the worker's Job controller, whom we play, has written it."""
    assert FORMS["Job"].shown_steps(status) == steps


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_what_is_played_shows_its_steps(form: Form) -> None:
    """Of each kind: the start, each change of the count, and the completion, which nothing before it shows."""
    status: dict[str, Any] = {}
    shown = []
    for ready in range(3):
        status |= form.status(pods=3, ready=ready)
        shown.append(form.shown_steps(status)[-1])
    for last in form.ends(pods=3):
        status |= last
        shown.append(form.shown_steps(status)[-1:])

    assert shown == ["start", "ready-1", "ready-2", [], ["complete"]]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_what_is_created_is_held_and_managed_as_it_is_said(form: Form) -> None:
    """Wherever the kind has these fields; the product reads them there."""
    body = form.body({"name": "one"}, pods=2, managed_by="example.com/x", is_suspended=True)
    kind = kinds_of([KindEntry(kind="JobSet"), KindEntry(kind="MPIJob")])[form.kind]
    found = decode_object(msgspec.json.encode(body))

    assert form.is_suspended(body["spec"])
    assert kind.is_suspended(found)
    assert kind.managed_by(found) == "example.com/x"
    assert form.collection("default") == kind.resource.path("default")


async def test_a_step_that_was_not_written_is_not_seen() -> None:
    """Nor is one twice; who waits for it goes on when it is seen first."""
    course = mirroring.Course(written={"start": 1.0})
    async with asyncio.TaskGroup() as scope:
        waiting = scope.create_task(course.until_seen("start"), name="wait")
        await asyncio.sleep(0)
        course.mark("complete")
        assert not waiting.done()
        course.mark("start")
    seen = course.seen["start"]
    course.mark("start")

    assert course.seen == {"start": seen}


WHERE = ["--management", "m", "--worker", "w"]


def test_jobs_are_made_as_the_controller_under_test_expects_them() -> None:
    """Ours by managedBy; MultiKueue's with a queue, and suspended; any other's as it is said."""
    ours = mirroring.load_of(mirroring.arguments([*WHERE, "--jobs", "5"]))
    queued = mirroring.load_of(mirroring.arguments([*WHERE, "--queue", "users", "--label", "team=a"]))
    other = mirroring.load_of(mirroring.arguments([*WHERE, "--managed-by", "example.com/x", "--suspend"]))

    assert (ours.managed_by, ours.is_suspended, dict(ours.labels)) == ("jobmirror.io/controller", False, {})
    assert (queued.managed_by, queued.is_suspended) == ("kueue.x-k8s.io/multikueue", True)
    assert queued.labels == {"kueue.x-k8s.io/queue-name": "users", "team": "a"}
    assert (other.managed_by, other.is_suspended) == ("example.com/x", True)
    spec = queued.job("one")["spec"]
    assert (spec["suspend"], spec["parallelism"], spec["managedBy"]) == (True, 4, "kueue.x-k8s.io/multikueue")


def test_the_minimum_leaves_out_what_a_worker_must_not_get() -> None:
    """And nothing else of the spec."""
    job = mirroring.Load(jobs=1, managed_by=minimum.MANAGED_BY).job("one")
    job["spec"] |= {"selector": {}, "manualSelector": None}
    copy = FORMS["Job"].copy_of(job)

    assert copy["metadata"] == {"name": "one"}
    assert copy["spec"].keys() == {"parallelism", "completions", "suspend", "template"}


@pytest.mark.parametrize("kind", ["JobSet", "MPIJob"])
def test_the_minimum_leaves_out_who_runs_it_of_other_kinds(kind: str) -> None:
    """And what it was made of stays as it is."""
    form = FORMS[kind]
    found = form.body({"name": "one"}, pods=2, managed_by=minimum.MANAGED_BY, is_suspended=False)
    copy = form.copy_of(found)

    assert minimum.MANAGED_BY not in str(copy)
    form.policy(copy["spec"])["managedBy"] = minimum.MANAGED_BY
    assert copy == found


def test_small_jobs_are_told_from_large_ones() -> None:
    """None where there are none."""
    created, finished = {"large-0": 1.0, "small-0": 2.0}, {"large-0": 100.0, "small-0": 2.5}

    assert jobs.small_seconds(created, finished) == {"p50": 0.5, "p99": 0.5}
    assert jobs.small_seconds({"large-0": 1.0}, {"large-0": 100.0}) is None
    assert jobs.is_finished({"status": {"conditions": [{"type": "Failed", "status": "True"}]}})
    assert not jobs.is_finished({})


def test_the_manager_that_is_measured_starts_with_its_settings() -> None:
    """They are those of `make bench`: no limit, and mirrors that go when their end is stored."""
    settings = load(BENCH / "jobmirror.yaml")

    assert (settings.management.qps, settings.workers.qps, settings.mirrors.retention_seconds) == (0, 0, 0)
    assert settings.workers.allow == {"loopback": True}
    assert settings.kubeconfig == "build-output/control-planes/management.kubeconfig"


def test_multikueues_queues_lead_from_the_jobs_to_the_worker() -> None:
    """By the names that README.md has in its commands: queue, Secret, what is waited for."""
    found = {path.stem: list(yaml.safe_load_all(path.read_text())) for path in sorted(BENCH.glob("multikueue/*.yaml"))}
    here, readme = {one["kind"]: one for one in found["management"]}, (BENCH / "README.md").read_text()
    queue, check = here["LocalQueue"]["metadata"], here["AdmissionCheck"]

    assert f"--queue {queue['name']} " in readme
    assert queue["namespace"] == mirroring.Load(jobs=1).namespace
    assert here["LocalQueue"]["spec"]["clusterQueue"] == here["ClusterQueue"]["metadata"]["name"]
    assert here["ClusterQueue"]["spec"]["admissionChecksStrategy"]["admissionChecks"] == [check["metadata"]]
    assert check["spec"]["parameters"]["name"] == here["MultiKueueConfig"]["metadata"]["name"]
    cluster = here["MultiKueueCluster"]
    assert here["MultiKueueConfig"]["spec"]["clusters"] == [cluster["metadata"]["name"]]
    assert f"create secret generic {cluster['spec']['clusterSource']['kubeConfig']['location']} " in readme
    assert f"multikueuecluster/{cluster['metadata']['name']} clusterqueue/{queue_of(here)}" in readme
    there = {one["kind"]: one for one in found["worker"]}
    assert there["LocalQueue"]["metadata"] == queue
    assert there.keys() == {"ResourceFlavor", "ClusterQueue", "LocalQueue"}
    settings = yaml.safe_load(found["values"][0]["managerConfig"]["controllerManagerConfigYaml"])
    assert settings["integrations"]["frameworks"] == ["batch/job"]


def queue_of(objects: dict[str, Any]) -> str:
    return str(objects["ClusterQueue"]["metadata"]["name"])
