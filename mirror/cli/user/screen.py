"""A table that is redrawn in place on a terminal while things change. Used by ``get -w`` and ``worker list -w``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from mirror.cli.user.terminal import Display, display

DRAWN_AT_MOST_EVERY_SECONDS = 0.2
DRAWN_AT_LEAST_EVERY_SECONDS = 0.8
"""Ages go on while nothing happens."""
_LINES_BESIDE = 4
"""Of a terminal: the heading, the lines that say what is left out and how many there are, and the cursor's."""

Lines = Callable[[int, Display], Sequence[str]]
"""What to show now: for so many rows beside the heading, on such a display."""


@asynccontextmanager
async def redrawn(lines: Lines) -> AsyncIterator[Callable[[], None]]:
    """Draw a few times a second while things change, and each second for the ages; gives what says that they have."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    on = display()
    console, is_new = Console(highlight=False, no_color=not on.has_colors), asyncio.Event()

    def draw() -> None:
        room = max(1, console.size.height - _LINES_BESIDE)
        shown = "\n".join(lines(room, replace(on, width=console.size.width)))
        live.update(Text.from_ansi(shown, no_wrap=True, overflow="ellipsis"), refresh=True)

    async with asyncio.TaskGroup() as scope:
        with Live(console=console, auto_refresh=False) as live:
            drawing = scope.create_task(_draw_again_and_again(draw, is_new), name="draw the table")
            try:
                yield is_new.set
            finally:
                drawing.cancel()


async def _draw_again_and_again(draw: Callable[[], None], is_new: asyncio.Event) -> None:
    while True:
        draw()
        await asyncio.sleep(DRAWN_AT_MOST_EVERY_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAWN_AT_LEAST_EVERY_SECONDS):
                await is_new.wait()
        is_new.clear()
