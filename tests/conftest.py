"""What holds for every test: no event loop but that of its own runner, properties without hurry, no leftover task."""

import asyncio
import gc
import inspect
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping

import pytest
from doubles.examples import ALL, QUICK
from doubles.loglines import Lines, captured
from hypothesis import HealthCheck, settings

from mirror.embedded.virtual import VirtualLoop
from mirror.telemetry.logs import default_logging

# A busy machine is no failure. In CI the same examples come each time, so that a red run can be repeated.
settings.register_profile(
    "mirror",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    max_examples=ALL,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("mirror"), max_examples=QUICK)
settings.load_profile("mirror")  # --hypothesis-profile, as of make check, is read later


def pytest_configure(config: pytest.Config) -> None:
    """Say that the main thread has no loop, so that nobody's ``get_event_loop()`` makes one that is never closed.

    The leftover would fail some later test as a ResourceWarning.
    """
    asyncio.set_event_loop(None)
    folder = tempfile.TemporaryDirectory(prefix="mirror-config-")
    os.environ["XDG_CONFIG_HOME"] = folder.name  # commands remember there what they trust, and people's own is theirs
    config.add_cleanup(folder.cleanup)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected, thousands of tests, lives until the end: walking it all the time costs a sixth of all CPU."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module")
def frozen_again() -> Iterator[None]:
    """For modules whose tests thaw what they, or a manager of theirs, froze: what was collected is thawed along."""
    yield
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """A test marked ``looptime`` runs in virtual time, on the loop that ``mirror.embedded`` offers to others."""
    return {"virtual": VirtualLoop} if item.get_closest_marker("looptime") else {"asyncio": asyncio.new_event_loop}


@pytest.fixture(autouse=True)
def logging_is_new() -> None:
    """A test, or a fixture of a module, that runs a command sets logging up: that ends with it."""
    default_logging()


@pytest.fixture
def log_lines() -> Iterator[Lines]:
    """The lines of our logs, from ``info`` on."""
    with captured() as lines:
        yield lines


@pytest.fixture(autouse=True)
def no_leftover_task(request: pytest.FixtureRequest) -> None:
    """Tasks have a parent: an asynchronous test that leaves one behind fails."""
    if inspect.iscoroutinefunction(request.function):
        request.getfixturevalue("tasks_have_ended")


@pytest.fixture
async def tasks_have_ended() -> AsyncIterator[None]:
    """Looks after the test and all its other fixtures."""
    yield
    await asyncio.sleep(0)  # what was cancelled just now may end
    names = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    # All of ours have names. Those without are asyncio's own, for connections to a test's server.
    left = [name for name in names if not name.startswith("Task-")]
    assert not left, f"tasks are left over: {left}"
