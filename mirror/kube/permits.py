"""Until when a leader may write (D28).

One ``WritePermit`` belongs to one Lease. ``runtime.leadership`` extends it with each renewal; the clients of what only
the leader does look at it: ``client`` bounds a write's deadline by it, and ``transport`` looks again with the bytes in
hand. A process that was frozen, or a machine that slept, finds it expired before anything else has run. A client
without a permit writes whenever it is asked to: no Lease, or a command.
"""

from __future__ import annotations

from collections.abc import Callable

from mirror.kube.errors import NotLeading

_NEVER = float("-inf")


class WritePermit:
    """Two moments of a clock: until when a write may be sent, and until when it may be waited for.

    Both count from when the last renewal that worked was *sent*: the server may have carried it out at once, and
    others count from then.
    """

    __slots__ = ("_clock", "_ends", "_until")

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` gives seconds that also count while the machine sleeps (``Clock.boottime``)."""
        self._clock = clock
        self._until = _NEVER
        self._ends = _NEVER

    def extend(self, *, until: float, ends: float) -> None:
        """Writes may be sent before ``until``; before ``ends`` nobody else can hold the Lease."""
        self._until, self._ends = until, ends

    def revoke(self) -> None:
        """From now on nothing may be sent."""
        self._until = self._ends = _NEVER

    def check(self) -> None:
        """Call it at the last moment before a write is sent.

        Raises:
            NotLeading: it must not be sent.
        """
        if self._clock() >= self._until:
            raise NotLeading("not sent: the Lease is not held any more")

    def seconds_left(self) -> float:
        """For how long the answer to a write that is sent now may be waited for; 0 when it must not be sent."""
        now = self._clock()
        return max(0.0, self._ends - now) if now < self._until else 0.0
