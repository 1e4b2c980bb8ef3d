"""What ``mirror worker drain`` shows on a terminal: how many of the Jobs that were there have ended or gone elsewhere.

Used by ``drain`` only. Not here: what it prints where nobody looks, and the counting (``operations.draining``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from mirror.cli.user.terminal import wants_colors
from mirror.cli.worker.operations.draining import Progress
from mirror.cli.worker.operations.overview import Tally


@contextlib.contextmanager
def bar(name: str, left_text: Callable[[Tally, str], str]) -> Iterator[Progress]:
    """While the block runs, a bar on stderr, which goes with it; gives what is called with each count.

    Args:
        name: of the worker; the bar is full when none of the Jobs is recorded there that were at the first count. One
            that was being placed then, and comes a moment later, belongs to them.
        left_text: what is said of those that are left.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    console = Console(stderr=True, no_color=not wants_colors(is_terminal=True), highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[told]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    total = 0
    with Bar(*columns, console=console, transient=True) as shown:
        task = shown.add_task(f"draining worker {name}", total=None, told="")

        def on_look(counted: Tally) -> None:
            nonlocal total
            left = counted.on(name)
            total = max(total, left)
            told = f"{total - left}/{total} gone, {left_text(counted, name)}"
            shown.update(task, total=total, completed=total - left, told=told, refresh=True)

        yield on_look
