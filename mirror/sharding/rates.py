"""Which part of the management cluster's limits is one manager's (S12). Pure."""

from __future__ import annotations


class Parts:
    """By how many managers a limit is divided, as one of them counts: by more at once, by fewer a Lease later.

    Who has gone by our count may be one whose Lease we have not seen renewed, and which goes on sending.
    """

    def __init__(self, at_first: int, lease_seconds: float) -> None:
        """``at_first``: by so many until they can be counted."""
        self._at_first = at_first
        self._lease_seconds = lease_seconds
        self._counted: int | None = None
        self._last: dict[int, float] = {}
        """By how many it was to be divided, and until when that was so."""

    def note(self, managers: int | None, now: float) -> int:
        """So many there are now, None: nobody can say; by how many it is divided."""
        if managers is None:
            managers = max(self._last, default=None)
        if managers is None:
            return self._at_first
        if self._counted is not None:
            self._last[self._counted] = now
        self._counted = managers
        self._last[managers] = now
        self._last = {count: until for count, until in self._last.items() if now < until + self._lease_seconds}
        return max(self._last)
