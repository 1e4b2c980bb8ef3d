"""A pytest fixture with a control plane, for other projects' tests too: ``pytest -p mirror.planes.pytest_plugin``.

Needs pytest-asyncio, with ``asyncio_mode = auto``. A test marked ``virtual_time`` runs on a loop that never waits, its
control plane with it::

    @pytest.mark.virtual_time
    @pytest.mark.control_plane(Shape(controllers=("job", "scheduler", "kubelet", "gc")))
    async def test_a_job_completes(control_plane: ControlPlane) -> None:
        await control_plane.api.create("/apis/batch/v1/namespaces/default/jobs", {…})
        await asyncio.sleep(3600)

Without the mark ``control_plane``, all controllers run. ``served_control_plane`` is the same over HTTPS, for clients in
other processes, and in real time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import pytest_asyncio

from mirror.embedded.clocks import LoopClock
from mirror.embedded.virtual import VirtualLoop
from mirror.planes.plane import ControlPlane
from mirror.planes.plane import control_plane as running
from mirror.planes.serving import Served, served
from mirror.planes.shape import Shape
from mirror.runtime.clock import SystemClock

VIRTUAL, SHAPE = "virtual_time", "control_plane"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    config.addinivalue_line("markers", f"{VIRTUAL}: the test's loop never waits")
    config.addinivalue_line("markers", f"{SHAPE}(shape): what the fixture control_plane is made of")


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of a marked test; all others have their usual one."""
    return {"virtual": VirtualLoop} if item.get_closest_marker(VIRTUAL) else {"asyncio": asyncio.new_event_loop}


@pytest_asyncio.fixture
async def control_plane(request: pytest.FixtureRequest) -> AsyncIterator[ControlPlane]:
    """A control plane of the test's own; names and uids are the same in each run."""
    mark = request.node.get_closest_marker(SHAPE)
    shape = mark.args[0] if mark is not None else Shape()
    clock = LoopClock() if isinstance(asyncio.get_running_loop(), VirtualLoop) else SystemClock()
    async with running(shape, clock=clock, chance=random.Random(request.node.nodeid)) as plane:
        yield plane


@pytest_asyncio.fixture
async def served_control_plane(control_plane: ControlPlane) -> AsyncIterator[Served]:
    """The same on a port of this machine, with a kubeconfig."""
    async with served(control_plane) as found:
        yield found
