"""What holds for every test: no event loop but that of its own runner, and properties without hurry."""

import asyncio
import os

from hypothesis import settings

# A busy machine is no failure. In CI the same examples come each time, so that a red run can be repeated.
settings.register_profile("mirror", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("mirror")


def pytest_configure() -> None:
    """Say that the main thread has no loop, so that nobody's ``get_event_loop()`` makes one that is never closed.

    looptime asks for it around synchronous tests too; the leftover would fail some later test as a ResourceWarning.
    """
    asyncio.set_event_loop(None)
