"""Records of kinds that keep theirs where users can write it: what another worker has is not given up for one (D25).

Used by ``sweeping``. What becomes of such a record is decided by ``decide.trusting``, at the next look.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model import names
from mirror.workers.worker import Worker


def is_unconfirmed(kind: Kind, source: Object, workers: Mapping[str, Worker]) -> bool:
    """Whether the worker that a source says it is on has nothing of it, as far as we see; it may not be connected yet.

    While that is so, whoever has its mirror is right.
    """
    summary = kind.summary(source)
    if not kind.records_by_annotation or summary.placed is None or summary.is_finished:
        return False
    worker, metadata = workers.get(summary.placed), source.metadata
    if worker is None:
        return True
    mirror = worker.mirrors_of(kind).get(worker.namespace_of(metadata.namespace), metadata.name)
    return mirror is None or mirror.labels.get(names.SOURCE_UID) != metadata.uid
