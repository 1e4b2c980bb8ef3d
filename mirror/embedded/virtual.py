"""Virtual time: an event loop that never waits. When nothing can run, its clock jumps to the next timer.

``run`` is ``asyncio.run`` with such a loop, for tests that use this package as a library; a simulated hour takes as
long as what happens in it. Real sockets and threads are looked after too, but time does not wait for them: keep to
``memory`` transports. (The library looptime does the same for pytest-asyncio; it turns the loop 42 times before each
jump, which is most of what an idle hour costs.)
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

TICK_SECONDS = 1e-9
"""Each jump goes so much beyond the timer that a comparison of times afterwards finds it expired."""
POLL_EVERY = 64
"""Turns of a busy loop between two looks at sockets."""
IDLE_SECONDS = 10.0
"""How long a loop without any timer waits for a thread or a socket, in real time, before it is taken for stuck."""


class Stuck(RuntimeError):
    """Everything waits, and nothing is left that could end it."""


class _Selector(selectors.BaseSelector):
    """Moves the loop's time on instead of waiting."""

    def __init__(self) -> None:
        self.now = 0.0
        self._real = selectors.DefaultSelector()
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            found = self._real.select(IDLE_SECONDS)
            if not found:
                raise Stuck(f"nothing is scheduled, and nothing came within {IDLE_SECONDS:g} real seconds")
            return found
        self._turns += 1
        if timeout <= 0 and self._turns % POLL_EVERY:
            return []
        found = self._real.select(0)
        if not found and timeout > 0:
            # The factor is for times so late that a tick is less than the precision of a float.
            self.now = (self.now + timeout) * (1 + 1e-15) + TICK_SECONDS
        return found

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time begins at 0 and passes only when there is nothing else to do."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    @property
    def _clock_resolution(self) -> float:
        """What asyncio adds to the time when it looks for timers that are due: the least that changes it.

        With more, a timer would go off before its time, and who then waits for the rest of it would do so without end;
        with less, one that is due now never would.
        """
        return math.ulp(self._virtual.now)

    @_clock_resolution.setter
    def _clock_resolution(self, _: float) -> None:
        """asyncio sets that of the machine's clock."""

    def time(self) -> float:
        return self._virtual.now

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Without the timeout of Python 3.12 and newer: threads live in real time, and it would be over at once."""
        del timeout
        await super().shutdown_default_executor()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run it to its end in virtual time, from second 0 on, as ``asyncio.run`` does.

    Raises:
        Stuck: everything waits for something that cannot happen.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
