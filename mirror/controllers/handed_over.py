"""Sources that were ours and name somebody else now, where the API server lets ``managedBy`` change (D1, D20).

An MPIJob whose value is changed is run by the operator here at once. So its mirror goes, if this process has seen it as
ours: a manager that was started with another value finds all of them to be somebody else's, and deletes none. Used by
``sweeping``, which has asked for the source.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from mirror.controllers.state import MirroringState
from mirror.kinds.asking import is_ours
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model.reasons import Reason
from mirror.model.text import clean

MOST = 10_000
LONGEST_SHOWN = 100

Warn = Callable[[Kind, Object, str, str], None]


class HandedOver:
    """Tells of each once."""

    def __init__(self, state: MirroringState, warn: Warn) -> None:
        self._memories = state.memories
        self._log = state.environment.log
        self._warn = warn
        self._managed_by = state.managed_by
        self._told: OrderedDict[str, None] = OrderedDict()

    def take(self, kind: Kind, source: Object, worker: str) -> bool:
        """Whether the mirror of a source, as it was read just now, is to go, since the source is somebody else's."""
        if is_ours(kind, source, self._managed_by) or kind.summary(source).is_finished:
            return False
        uid = source.metadata.uid
        is_known = self._memories.has_left(uid)
        if uid not in self._told:
            self._told[uid] = None
            if len(self._told) > MOST:
                self._told.popitem(last=False)
            value = clean(kind.managed_by(source) or "not set", longest=LONGEST_SHOWN)
            follows = (
                f"its mirror on worker {worker} is deleted, and its status is not mirrored any more"
                if is_known
                else f"its mirror on worker {worker} is left as it is: delete it there, or set the value back"
            )
            text = f"{kind.managed_by_field} is {value} now, so that another controller runs it; {follows}"
            self._warn(kind, source, Reason.MANAGED_BY_CHANGED, text)
            self._log.warning("source handed over", kind=kind.name, uid=uid, worker=worker, is_deleted=is_known)
        return is_known
