"""A control plane in this process: its life, its clients, its data; most of it without controllers, in virtual time."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from doubles.loglines import Lines

from mirror.batch.feature_gates import FeatureGates
from mirror.embedded import virtual
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.clocks import LoopClock
from mirror.embedded.faults.kinds import Expiry
from mirror.kube import requests
from mirror.kube.errors import KubeError, Unreachable
from mirror.kube.resources import CONFIGMAPS, NAMESPACES
from mirror.kube.watch import watch
from mirror.planes.plane import ControlPlane, NotRunning, control_plane
from mirror.planes.serving import served
from mirror.planes.shape import ALL, JOB, NONE, Shape, UnknownController, controllers_of

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
CONFIGS = "/api/v1/namespaces/default/configmaps"
BARE = Shape(controllers=NONE)


def on_a(shape: Shape) -> Callable[[Callable[[ControlPlane], Awaitable[None]]], Callable[[], None]]:
    """A test on a control plane of its own, in virtual time."""

    def decorate(test: Callable[[ControlPlane], Awaitable[None]]) -> Callable[[], None]:
        async def main() -> None:
            async with control_plane(shape, clock=LoopClock(), chance=random.Random(0)) as plane:
                await test(plane)

        def run() -> None:
            virtual.run(main())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


@on_a(BARE)
async def test_it_answers_at_once(plane: ControlPlane) -> None:
    """To our own client, and to dicts."""
    client = plane.client()
    assert (await client.send_object(requests.get(NAMESPACES, "default"))).metadata.name == "default"
    made = await plane.api.create(CONFIGS, CONFIG)
    assert made == await plane.api.get(f"{CONFIGS}/c") == plane.api.call_nowait("GET", f"{CONFIGS}/c")
    assert [one["metadata"]["name"] for one in await plane.api.list(CONFIGS)] == ["c"]
    with pytest.raises(StatusError) as refused:
        await plane.api.create(CONFIGS, CONFIG)
    assert refused.value.reason == "AlreadyExists"
    await plane.api.delete(f"{CONFIGS}/c")
    await client.close()


@on_a(BARE)
async def test_a_crash_is_seen_by_clients_and_survived_by_data(plane: ControlPlane) -> None:
    """Connections break, nobody listens, and then everything is there again."""
    await plane.api.create(CONFIGS, CONFIG)
    client, ends = plane.client(), []

    async def follow() -> None:
        try:
            async for _ in watch(client, requests.watch(CONFIGMAPS, timeout_seconds=300), silent_seconds=100):
                pass
        except KubeError as error:
            ends.append(type(error))

    following = asyncio.ensure_future(follow())
    await asyncio.sleep(1)
    await plane.kill()
    with pytest.raises(Unreachable):
        await client.send(requests.get(NAMESPACES, "default"))
    with pytest.raises(NotRunning):
        _ = plane.server
    await following
    assert ends == [Unreachable]
    await plane.restart()
    found = await client.send_object(requests.get(CONFIGMAPS, "c", namespace="default"))
    assert found.metadata.name == "c"
    await client.close()


@on_a(BARE)
async def test_without_its_data_it_is_another_cluster(plane: ControlPlane) -> None:
    """The uid of kube-system says so."""
    before = await plane.api.get("/api/v1/namespaces/kube-system")
    await plane.restart(keeps_data=False)
    after = await plane.api.get("/api/v1/namespaces/kube-system")
    assert before["metadata"]["uid"] != after["metadata"]["uid"]


def test_data_in_a_file_outlives_the_process(tmp_path: Path) -> None:
    """Objects, versions and uids come back; a kill without data forgets them."""
    shape = Shape(controllers=NONE, data=tmp_path / "data")

    async def first() -> tuple[str, int]:
        async with control_plane(shape, clock=LoopClock()) as plane:
            made = await plane.api.create(CONFIGS, CONFIG)
            await plane.restart()
            assert (await plane.api.get(f"{CONFIGS}/c"))["metadata"] == made["metadata"]
            return made["metadata"]["uid"], plane.storage.version

    async def second() -> tuple[str, int]:
        async with control_plane(shape, clock=LoopClock()) as plane:
            return (await plane.api.get(f"{CONFIGS}/c"))["metadata"]["uid"], plane.storage.version

    async def third() -> None:
        async with control_plane(shape, clock=LoopClock()) as plane:
            await plane.restart(keeps_data=False)
            with pytest.raises(StatusError):
                await plane.api.get(f"{CONFIGS}/c")

    assert virtual.run(first()) == virtual.run(second())
    virtual.run(third())


@on_a(BARE)
async def test_versions_expire_when_told(plane: ControlPlane) -> None:
    """An old version is answered with 410, in an event."""
    await plane.api.create(CONFIGS, CONFIG)
    plane.expire(Expiry.BY_CODE)
    client = plane.client()
    request = requests.watch(CONFIGMAPS, timeout_seconds=30, resource_version="2")
    with pytest.raises(KubeError, match="410"):
        _ = [event async for event in watch(client, request, silent_seconds=20)]
    await client.close()


def test_a_failing_test_fails_as_itself() -> None:
    """What is raised in the block comes out as it is, and everything has ended."""

    async def main() -> None:
        async with control_plane(BARE, clock=LoopClock()):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        virtual.run(main())


@pytest.mark.parametrize(
    ("text", "names"),
    [("all", ALL), ("none", ()), ("job,gc", ("job", "gc")), ("all,-job", ALL[1:]), ("", ()), ("gc,gc", ("gc",))],
)
def test_controllers_are_named(text: str, names: tuple[str, ...]) -> None:
    """On command lines."""
    assert controllers_of(text) == names


def test_unknown_controllers_are_refused() -> None:
    """With those that there are."""
    with pytest.raises(UnknownController, match=r"'jobs'; there are job, gc"):
        controllers_of("job,jobs")
    with pytest.raises(UnknownController):
        Shape(controllers=("jobs",))


async def test_it_is_served_over_https_with_the_same_authority_each_time(tmp_path: Path) -> None:
    """A kubeconfig stays valid as long as the data; it can be read by its owner alone."""
    from mirror.kube.connect import connect_management
    from mirror.settings.schema import Limits
    from mirror.telemetry.metrics import Metrics

    shape = Shape(controllers=NONE, data=tmp_path / "data")
    file = tmp_path / "kubeconfig"
    async with control_plane(shape) as plane, served(plane) as found:
        found.write_kubeconfig(file)
        port = int(found.url.rpartition(":")[2])
        assert file.stat().st_mode & 0o077 == 0
    async with control_plane(shape) as plane, served(plane, port=port):
        client = await connect_management(str(file), limits=Limits(), observer=Metrics())
        assert (await client.send_object(requests.get(NAMESPACES, "default"))).metadata.name == "default"
        await client.close()


OTHERS_TEST = """
import asyncio, pytest
from mirror.planes.shape import Shape

@pytest.mark.virtual_time
@pytest.mark.control_plane(Shape(controllers=()))
async def test_virtual(control_plane):
    await asyncio.sleep(3600)
    found = await control_plane.api.get("/api/v1/namespaces/default")
    assert found["metadata"]["name"] == "default"

@pytest.mark.control_plane(Shape(controllers=()))
async def test_real(served_control_plane):
    assert served_control_plane.url.startswith("https://127.0.0.1:")
"""


@pytest.mark.slow
def test_others_have_it_as_a_fixture(tmp_path: Path) -> None:
    """In another project's pytest."""
    (tmp_path / "test_it.py").write_text(OTHERS_TEST)
    options = ["-p", "mirror.planes.pytest_plugin", "-p", "no:cacheprovider", "-q", "-o", "asyncio_mode=auto"]
    command = [sys.executable, "-m", "pytest", *options, "--strict-markers", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "2 passed" in done.stdout, done.stdout


JOBS = "/apis/batch/v1/namespaces/default/jobs"
WAITS = {
    "metadata": {"name": "waits"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
}


def test_gang_scheduling_that_it_does_not_serve_is_reported(log_lines: Lines) -> None:
    """No Job is run, as with upstream's gate on a server without the API; the log says what to change."""

    @on_a(Shape(controllers=(JOB,), gates=FeatureGates(generic_workload=True, workload_with_job=True)))
    async def wait(plane: ControlPlane) -> None:
        await plane.api.create(JOBS, WAITS)
        await asyncio.sleep(60)
        assert (await plane.api.get(f"{JOBS}/waits")).get("status") in (None, {})

    wait()
    told = [line["because"] for line in log_lines if "gang" in line["event"]]
    kinds = ("workloads", "podgroups")
    assert [one.partition(",")[0] for one in told] == [
        f"the API server does not serve {plural} of scheduling.k8s.io/v1alpha2" for plural in kinds
    ]
