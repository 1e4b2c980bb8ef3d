"""How many Jobs of a namespace that are to be spread by a label of workers are on which worker. Pure.

Only Jobs with the annotation ``spread-by`` are counted, so that others cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

Group = tuple[str, str]
"""The namespace of the Jobs, and the label."""
_NOBODY: Mapping[str, int] = {}


class SpreadCounts:
    """Those that are recorded, as they were last reported, and those that are assigned and not recorded yet.

    Invariant: no number is 0, and no group is empty.
    """

    def __init__(self) -> None:
        self._recorded: dict[Group, dict[str, int]] = {}
        self._assigned: dict[Group, dict[str, int]] = {}

    def __len__(self) -> int:
        """How many groups are known."""
        return len(self._recorded.keys() | self._assigned.keys())

    def set_recorded(self, group: Group, worker: str, count: int) -> None:
        """So many are recorded on a worker now."""
        _set(self._recorded, group, worker, count)

    def add_assigned(self, group: Group, worker: str, more: int) -> None:
        """So many more are assigned to it, or fewer."""
        _set(self._assigned, group, worker, self._assigned.get(group, _NOBODY).get(worker, 0) + more)

    def of(self, group: Group) -> Counter[str]:
        """How many there are, by worker."""
        found = Counter(self._recorded.get(group, _NOBODY))
        found.update(self._assigned.get(group, _NOBODY))
        return found


def _set(counts: dict[Group, dict[str, int]], group: Group, worker: str, count: int) -> None:
    if count:
        counts.setdefault(group, {})[worker] = count
    elif (by_worker := counts.get(group)) is not None:
        by_worker.pop(worker, None)
        if not by_worker:
            del counts[group]
