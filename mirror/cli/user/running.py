"""How a command for users runs: an event loop, Ctrl-C and closed pipes without noise, and a sign that it takes long."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from mirror.cli.user.terminal import wants_colors

SHOWN_AFTER_SECONDS = 1.0
INTERRUPTED = 130
"""As a shell says it of what SIGINT ended."""


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it to its end.

    Raises:
        SystemExit: 130 for Ctrl-C; 0 when nobody reads our output any more (``| head``), who has all they wanted.
        ClickException: what the work raised, also out of a group of tasks.
    """
    try:
        asyncio.run(_flat(work))
        sys.stdout.flush()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # Python would flush once more on its way out, and complain.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


async def _flat(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """The first failure of a group instead of the group: one line is what a user gets."""
    try:
        await work()
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """While the block runs and takes more than a second, show what is done, on stderr and for people only."""
    if not sys.stderr.isatty():
        yield
        return
    with contextlib.ExitStack() as stack:

        def show() -> None:
            from rich.console import Console

            stack.enter_context(Console(stderr=True, no_color=not wants_colors(is_terminal=True)).status(text))

        timer = asyncio.get_running_loop().call_later(SHOWN_AFTER_SECONDS, show)
        stack.callback(timer.cancel)
        yield
