"""What holds for every test: no event loop but the one that the test's own runner makes."""

import asyncio


def pytest_configure() -> None:
    """Say that the main thread has no loop, so that nobody's ``get_event_loop()`` makes one that is never closed.

    looptime asks for it around synchronous tests too; the leftover would fail some later test as a ResourceWarning.
    """
    asyncio.set_event_loop(None)
