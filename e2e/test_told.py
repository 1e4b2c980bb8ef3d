"""What operators are told: metrics, and events on the Secrets of workers that cannot be used (D18, KEP-4368)."""

from __future__ import annotations

import base64
import uuid

import pytest
import yaml

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, indexed, is_complete, job, runs, until, waits_because
from e2e.manager import ManagerProcess, Samples

EXTERNAL = "job_controller_jobs_by_external_controller_total"
HIDDEN = "hunter2-is-not-for-logs"


async def test_metrics_count_what_happened(manager: ManagerProcess, scene: Scene) -> None:
    """Mirrored Jobs by worker and state, latencies once per Job and status, external controllers once per Job."""
    theirs = f"example.com/{uuid.uuid4().hex[:8]}"
    names = [f"counted-{number}" for number in range(3)]
    await scene.create(
        *(indexed(name, manager.managed_by, completions=2) for name in names),
        job("endless", manager.managed_by, run_for="never", annotations={"worker-selector": "name=west"}),
        job("held", manager.managed_by, suspend=True),
        job("nowhere", manager.managed_by, annotations={"worker-selector": "name=mars"}),
        job("theirs", theirs),
        job("plain"),
    )
    await scene.sources_until(names, is_complete)
    await scene.source_until("endless", runs())
    await scene.patch("theirs", {"metadata": {"labels": {"changed": "yes"}}})
    await scene.source_until("nowhere", waits_because("labels do not match worker-selector"))

    # What we have seen may be news to it yet, and so may be the answers to its own writes.
    samples = await until(manager.metrics, has_counted)

    assert samples.value("jobmirror_mirrored_jobs", state="running") == 1
    assert samples.value("jobmirror_mirrored_jobs", state="running", worker="west") == 1
    assert samples.value("jobmirror_waiting_jobs") == 1
    assert samples.value("jobmirror_jobs_by_reason", reason="NoMatchingWorker") == 1
    assert samples.value("jobmirror_placements_total") == 4
    assert samples.value("jobmirror_worker_up") == 2
    assert samples.value("jobmirror_leader") == 1
    assert samples.value("jobmirror_create_to_copy_seconds_count") == 4
    assert samples.value("jobmirror_refused_status_writes_total") == 0
    assert samples.value("jobmirror_worker_content_cut_total") == 0
    assert samples.value(EXTERNAL, controller_name=manager.managed_by) == 6
    assert samples.value(EXTERNAL, controller_name=theirs) == 1
    assert samples.value(EXTERNAL, controller_name="kubernetes.io/job-controller") == 0


def has_counted(found: Samples) -> bool:
    """Whether no mirror is on its way any more, and each has had a status stored."""
    is_calm = found.value("jobmirror_mirrored_jobs", state="creating") == 0
    return is_calm and found.value("jobmirror_status_lag_seconds_count") >= 4


def kubeconfig(plane: ControlPlane, cluster: Json | None = None, user: Json | None = None) -> bytes:
    """A plane's kubeconfig with these fields of its cluster and user instead."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["clusters"][0]["cluster"] |= cluster or {}
    config["users"][0]["user"] = user if user is not None else config["users"][0]["user"]
    return yaml.safe_dump(config).encode()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"user": {"exec": {"command": HIDDEN}}}, "exec", id="a command to run"),
        pytest.param({"user": {"username": "a", "password": HIDDEN}}, "user.username", id="a password"),
        pytest.param({"user": {"tokenFile": f"/{HIDDEN}"}}, "tokenFile", id="a file of ours"),
        pytest.param({"cluster": {"proxy-url": f"http://{HIDDEN}"}}, "proxy-url", id="a proxy"),
        pytest.param({"cluster": {"server": "http://127.0.0.1:1"}}, "server", id="no TLS"),
        pytest.param(
            {"cluster": {"certificate-authority-data": base64.b64encode(HIDDEN.encode()).decode()}},
            "certificate-authority-data",
            id="no certificate",
        ),
    ],
)
async def test_a_refused_kubeconfig_is_told_on_the_secret_by_its_field(
    change: dict[str, Json], field: str, shared_manager: ManagerProcess, east: ControlPlane
) -> None:
    """The event names the field and never its content; other workers do not notice (D18)."""
    name = f"broken-{uuid.uuid4().hex[:6]}"
    await shared_manager.register(name, kubeconfig=kubeconfig(east, **change))
    try:
        [event] = await until(lambda: shared_manager.worker_events(name))
    finally:
        await shared_manager.unregister(name)

    assert field in event["message"]
    assert event["type"] == "Warning"
    told = event["message"] + "".join(line for line in shared_manager.log_lines() if name in line)
    assert HIDDEN not in told
    assert (await shared_manager.metrics()).value("jobmirror_worker_up", worker="east") == 1


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(f"{HIDDEN}: [".encode(), id="not YAML"),
        pytest.param(f"a: &a {HIDDEN}\nb: *a".encode(), id="aliases"),
        pytest.param(b"\xff\xfe" + HIDDEN.encode(), id="not text"),
    ],
)
async def test_a_secret_without_a_kubeconfig_is_told(content: bytes, shared_manager: ManagerProcess) -> None:
    """Whatever lies in the Secret: an event says that it is no kubeconfig, and quotes nothing (D18)."""
    name = f"broken-{uuid.uuid4().hex[:6]}"
    await shared_manager.register(name, kubeconfig=content)
    try:
        [event] = await until(lambda: shared_manager.worker_events(name))
    finally:
        await shared_manager.unregister(name)

    assert "kubeconfig" in event["message"]
    assert HIDDEN not in event["message"]
    assert not [line for line in shared_manager.log_lines() if HIDDEN in line]
