"""Annotations of a source that a user misspells while it waits or runs (D22).

What a source comes with is judged when it is placed (``decide/assigning``); what is changed afterwards is judged when
the watch brings the change (``routes``), once. A change of a status alone costs one comparison.
"""

from __future__ import annotations

from mirror.controllers.unclaimed import Warn
from mirror.kinds.base import Kind
from mirror.kinds.own_annotations import mistakes_since
from mirror.kube.objects import Object
from mirror.model.reasons import Reason
from mirror.sharding.share import Share


class Misspelt:
    """Records a warning on the source for each change that misspells something."""

    def __init__(self, warn: Warn, share: Share) -> None:
        self._warn = warn
        self._share = share

    def note(self, kind: Kind, old: Object | None, new: Object) -> None:
        """A source has changed while we lead; one manager alone tells, the one that works on it (S2)."""
        if old is None or old.metadata.uid != new.metadata.uid:
            return
        found = mistakes_since(old, new, kind.own_annotations)
        if found and not kind.summary(new).is_finished and self._is_mine(kind.summary(new).placed):
            self._warn(kind, new, Reason.UNKNOWN_ANNOTATION, "; ".join(found))

    def _is_mine(self, worker: str | None) -> bool:
        if worker is None:
            return self._share.assigns
        return self._share.follows and not self._share.is_elsewhere(worker)
