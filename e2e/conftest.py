"""Real control planes for the end-to-end tests: started when first used, all that the run needs at once, and shared.

Fixtures ``management``, ``east``, ``west`` and ``shared_manager`` live as long as the run, and each process of
``make test`` has its own (``-n 3 --dist loadfile``: the tests of a file are in one process); ``fresh_namespace``,
``manager`` and ``scene`` belong to one test. Where control planes come from: ``e2e/controlplane/provider``. All tests
here share one event loop, since the fixtures live on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NoReturn

import pytest
import pytest_asyncio

from e2e import shipped
from e2e.controlplane.assets import MissingBinaries, find_binaries
from e2e.controlplane.components import WORKER
from e2e.controlplane.plane import CannotDo, ControlPlane
from e2e.controlplane.provider import Binaries, Provider, choose_provider, start_all
from e2e.jobs import Scene
from e2e.manager import ManagerProcess

SHARED = ("management", "east", "west")
LONG = (
    "test_troubleshooting",
    "test_documents",
    "test_moves",
    "test_job_differential",
    "test_job_kills",
    "test_api_sequences",
    "test_faults_mirrors",
    "test_job_constants",
    "test_upgrade",
)
"""Files of few tests that take minutes: of several processes, none is to be left alone with one of them at the end."""
CONTROLPLANE = "MIRROR_REQUIRE_CONTROLPLANE"
_HERE = Path(__file__).parent
_TIMEOUT_SECONDS = 600


def pytest_configure(config: pytest.Config) -> None:
    """Say that the main thread has no loop, as ``tests/conftest.py`` does, and for its reason."""
    asyncio.set_event_loop(None)
    folder = tempfile.TemporaryDirectory(prefix="mirror-config-")
    os.environ["XDG_CONFIG_HOME"] = folder.name
    config.add_cleanup(folder.cleanup)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One loop for all tests here, and time enough for real servers; long files first, where several run at once."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        order = {name: place for place, name in enumerate(LONG)}
        items.sort(key=lambda item: order.get(item.path.stem, len(LONG)))
    for item in items:
        if not item.path.is_relative_to(_HERE):
            continue
        if pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIMEOUT_SECONDS))
        if _shared_by(item) or "binaries" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.controlplane)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A test that asks an existing cluster for what only our own can do is skipped, and says so."""
    try:
        return (yield)
    except CannotDo as reason:
        if isinstance(choose_provider(), Binaries):
            raise
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def binaries(do_without: Callable[..., NoReturn]) -> None:
    """For tests that start control planes of their own: they are skipped where there is nothing to start."""
    try:
        find_binaries(*WORKER.programs)
    except MissingBinaries as reason:
        do_without(reason, required_by=CONTROLPLANE)


@pytest.fixture(scope="session")
def provider() -> Provider:
    """Where control planes come from in this run."""
    return choose_provider()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_planes(
    request: pytest.FixtureRequest, provider: Provider, do_without: Callable[..., NoReturn]
) -> AsyncIterator[dict[str, ControlPlane]]:
    """Every shared control plane that some test of this run uses."""
    used = {name for item in request.session.items for name in _shared_by(item)}
    async with AsyncExitStack() as stack:
        try:
            planes = await start_all(provider, [name for name in SHARED if name in used], stack)
        except (MissingBinaries, CannotDo) as reason:
            do_without(reason, required_by=CONTROLPLANE)
        yield planes
        for plane in planes.values():
            with contextlib.suppress(CannotDo):
                lacking = shipped.refused(await plane.audit_entries())
                assert not lacking, f"the shipped rights do not suffice on {plane.name}: {lacking[:5]}"


@pytest.fixture(scope="session")
def management(shared_planes: dict[str, ControlPlane]) -> ControlPlane:
    """The management cluster: with kube-controller-manager, so that unmanaged Jobs have their controller."""
    return shared_planes["management"]


@pytest.fixture(scope="session")
def east(shared_planes: dict[str, ControlPlane]) -> ControlPlane:
    """A worker that runs Jobs: controller manager, scheduler and one simulated node."""
    return shared_planes["east"]


@pytest.fixture(scope="session")
def west(shared_planes: dict[str, ControlPlane]) -> ControlPlane:
    """Another worker like ``east``."""
    return shared_planes["west"]


@pytest_asyncio.fixture(loop_scope="session")
async def fresh_namespace(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The name of a namespace of this test alone, on each shared control plane that the test uses."""
    name = f"e2e-{uuid.uuid4().hex[:10]}"
    planes: list[ControlPlane] = [request.getfixturevalue(plane) for plane in _shared_by(request.node)]
    clients = [plane.client() for plane in planes]
    for client in clients:
        await client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    for client in clients:
        await client.delete(f"/api/v1/namespaces/{name}")
        await client.close()


@pytest_asyncio.fixture(loop_scope="session")
async def manager(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """A running manager of this test alone, with the workers ``east`` and ``west``, in a namespace of its own.

    A test that needs other settings or workers uses ``ManagerProcess.start`` instead.
    """
    async with ManagerProcess.start(management, {"east": east, "west": west}) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_manager(
    management: ControlPlane, east: ControlPlane, west: ControlPlane
) -> AsyncIterator[ManagerProcess]:
    """Like ``manager``, but everybody's: for tests that neither stop it nor change its workers."""
    async with ManagerProcess.start(management, {"east": east, "west": west}) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def scene(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, fresh_namespace: str
) -> AsyncIterator[Scene]:
    """The Jobs of this test alone: its namespace on all three clusters."""
    one = Scene(management, {"east": east, "west": west}, fresh_namespace)
    yield one
    await one.close()


def _shared_by(item: pytest.Item) -> list[str]:
    """The shared control planes that a test uses, by itself or through other fixtures."""
    names = getattr(item, "fixturenames", ())
    return [name for name in SHARED if name in names]
