"""How a long-running process behaves: its event loop, signals, bounded shutdown, and failures as exit codes.

Not here: what the process does (``app``).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from mirror.model.endings import MustEnd
from mirror.model.text import clean
from mirror.model.version import version
from mirror.telemetry.logs import get_module_log

SHUTDOWN_SECONDS = 10.0
FAILED = 1
_CLOSED_ALREADY = "; the handler is closed"

Work = Callable[[asyncio.Event], Awaitable[None]]
"""Runs until the event is set, then cleans up and returns."""

_log = get_module_log("process")


def exit_code_of(work: Work) -> int:
    """Run the work until SIGTERM or SIGINT and give the process' exit code.

    The first signal sets the event; if the process is not gone after ten seconds, or at a second signal, it is ended
    at once with code 1. Failures that an operator can understand are one line on stderr; others keep their traceback.
    """
    last_resort = threading.Timer(SHUTDOWN_SECONDS, _end_at_once, ("shutdown timed out",))
    last_resort.daemon = True
    failures: list[str] = []
    make_loop, loop_name = _event_loop()
    _log.info("starting", version=version(), event_loop=loop_name, pid=os.getpid())
    try:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(_until_signal(work, last_resort))
    except* MustEnd as group:
        failures = [clean(str(failure), longest=2000) for failure in _leaves(group)]
    finally:
        last_resort.cancel()
    for failure in failures:
        print(f"mirror: {failure}", file=sys.stderr)
    return FAILED if failures else 0


async def _until_signal(work: Work, last_resort: threading.Timer) -> None:
    stop = asyncio.Event()

    def on_signal(name: str) -> None:
        if stop.is_set():
            _end_at_once(f"second signal ({name})")
        _log.info("stopping", signal=name)
        stop.set()
        last_resort.start()

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(on_loop_error)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number.name)
    await work(stop)


def on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the event loop does with an error that nobody awaits: it is logged with its traceback, but for one.

    uvloop reports it as fatal when bytes arrive on a TLS connection that we have just closed, and when connecting is
    cancelled in the moment in which the server answers. Nothing is lost by either. Its words decide, since a transport
    that it closed for a cancellation does not say that it is closing.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and str(error).endswith(_CLOSED_ALREADY):
        _log.debug("connection closed", because=str(error))
        return
    loop.default_exception_handler(context)


def _end_at_once(why: str) -> None:
    """Without any clean-up, since that is what hangs; from a thread, since the loop may be what hangs."""
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"mirror: {why}; exiting now\n".encode())
    os._exit(FAILED)


def _event_loop() -> tuple[Callable[[], asyncio.AbstractEventLoop] | None, str]:
    """uvloop's where it is installed (the extra ``speed``), else asyncio's; and its name."""
    try:
        from mirror.runtime.uv import Loop
    except ImportError:
        return None, "asyncio"
    return Loop, "uvloop"


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for failure in group.exceptions:
        if isinstance(failure, BaseExceptionGroup):
            yield from _leaves(failure)
        else:
            yield failure
