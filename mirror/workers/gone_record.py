"""That a worker is declared dead: nothing runs there any more, somebody says (D14). Until when that holds is pure.

It is an annotation of what declares the worker, and from there goes into the worker's entry of
``jobmirror-workers``: so it outlives that object, as long as Jobs are recorded on the worker. ``registry`` notes it,
each worker asks (``Worker.is_gone``).
"""

from __future__ import annotations

import msgspec

from mirror.kube.objects import Object
from mirror.model import names
from mirror.workers.connection import State
from mirror.workers.inventory import Entry
from mirror.workers.inventory_record import InventoryRecord
from mirror.workers.spec import Problem, WorkerSpec

NOT_GONE = Problem(
    f"metadata.annotations[{names.GONE}]",
    "says that nothing runs there any more, but it is reachable",
    "remove the annotation; Jobs that were moved from there may have run twice",
)


def word_in(declared: Object) -> bool | None:
    """Whether an object that declares a worker says that it is dead, or that it is not; None: neither.

    Also of an object that leads to no cluster any more: that may be why somebody says it.
    """
    return {"true": True, "false": False}.get(declared.annotations.get(names.GONE, "").strip().lower())


def only_takes_back(secret: Object) -> bool:
    """Whether a Secret that registers a worker holds nothing, and says of it only that it is not dead.

    ``mirror worker forget --undo`` makes one where nothing declares the worker: it makes way for whatever does.
    """
    return word_in(secret) is False and not secret.data_dict()


def gone_by(known: str, declared: Object | None, *, is_connected: bool) -> str:
    """Whose word is to be remembered: the uid of the object that declared the worker dead; empty: nobody's.

    Taken away from that object, or contradicted by another one (``false``), it is taken back. Another object that says
    neither may be the old one, restored by a tool: the word holds until the worker answers, as the cluster that it was.
    While it answers, nothing is remembered: the word holds only where it stands.

    Args:
        known: what was remembered until now.
        declared: what declares the worker; None: nothing does any more.
        is_connected: it answers.
    """
    if is_connected:
        return ""
    if declared is None:
        return known
    match word_in(declared):
        case True:
            return declared.metadata.uid
        case False:
            return ""
        case _:
            return "" if declared.metadata.uid == known else known


def is_declared_dead(entry: Entry, declared: Object | None) -> bool:
    """Whether a worker is declared dead, for who has its entry as it is written, and is not connected to it."""
    is_said = declared is not None and word_in(declared) is True
    return is_said or bool(gone_by(entry.gone_by, declared, is_connected=entry.state == State.CONNECTED))


class GoneRecord:
    """Reads and writes that field."""

    def __init__(self, record: InventoryRecord) -> None:
        self._record = record

    def holds(self, worker: str, spec: WorkerSpec | None) -> bool:
        """Whether a worker is declared dead; ``spec``: what declares it says."""
        return (spec is not None and spec.is_gone) or bool(self._record.known.entry(worker).gone_by)

    def note(self, worker: str, declared: Object | None, *, is_connected: bool) -> Entry:
        """Remember what is said now, by what declares it; returns the worker's entry."""
        entry = self._record.known.entry(worker)
        by = gone_by(entry.gone_by, declared, is_connected=is_connected)
        if by != entry.gone_by:
            entry = msgspec.structs.replace(entry, gone_by=by)
            self._record.put(worker, entry)
        return entry
