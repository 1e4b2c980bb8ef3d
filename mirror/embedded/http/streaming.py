"""How a stream of pieces is taken: all that is there at once, and not more often than is good for everybody.

``connections`` uses it. With many readers of the same changes, waking each of them for each change costs more than all
the rest; so a reader that was served a moment ago is served again a moment later, with everything that came meanwhile.
"""

from __future__ import annotations

import types
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

_SECONDS_PER_STREAM = 0.0002
_LONGEST_PAUSE_SECONDS = 0.02


def pause_seconds(streams: int) -> float:
    """How long a reader is left alone after it was served, when there are so many.

    A handful costs nobody a wait that could be measured; hundreds are served fifty times a second.
    """
    return min(_LONGEST_PAUSE_SECONDS, streams * _SECONDS_PER_STREAM)


@types.coroutine
def next_piece(
    pieces: AsyncGenerator[bytes, None], before_waiting: Callable[[], None]
) -> Generator[Any, Any, bytes | None]:
    """The next piece, or None at the end; ``before_waiting`` is called if it is not there yet.

    It drives the generator by hand, since nothing else tells whether it would wait.
    """
    step = pieces.__anext__().__await__()
    try:
        waited_for = next(step)
        before_waiting()
        while True:
            try:
                result = yield waited_for
            except BaseException as thrown:  # noqa: BLE001 - a cancellation, mostly: the generator's to deal with
                waited_for = step.throw(thrown)
            else:
                waited_for = step.send(result)
    except StopIteration as stop:
        piece: bytes = stop.value
        return piece
    except StopAsyncIteration:
        return None
