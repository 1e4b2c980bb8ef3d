"""Compares a source with the object that has its name on a worker: whose it is (D1), and what differs (D9).

Pure but for a memory of comparisons that need not be made again. Used by ``observing``, ``routes`` and the writers.
"""

from __future__ import annotations

import msgspec

from mirror.controllers.memory import Memories
from mirror.decide.identity import Identity, identify, own_labels
from mirror.decide.snapshot import Source
from mirror.kinds.asking import asks_us_alone, was_moved
from mirror.kinds.base import Changes, Kind, MirrorTransform
from mirror.kinds.metadata import is_made_of
from mirror.kube.objects import Object
from mirror.model import names

_encode = msgspec.json.Encoder().encode


class Comparison:
    """Of sources with their mirrors."""

    def __init__(self, memories: Memories, transform: MirrorTransform, *, managed_by: str) -> None:
        """``managed_by``: what makes a source ours, unless its kind has another value."""
        self._memories = memories
        self._transform = transform
        self._managed_by = managed_by
        # Sources whose mirror was found to be as they want it, with a hash of what both looked like then: comparing two
        # whole Jobs again for each status would be most of the work. Bounded by the sources that exist.
        self._agreed: dict[str, int] = {}

    def identity_of(self, kind: Kind, source: Object, mirror: Object) -> Identity:
        """What an object that has this source's name on a worker is to it (D1).

        A copy that was left on a worker, and is in the way of the next one there, is as a namesake's (D14).
        """
        if was_moved(source):
            summary = kind.summary(source)
            if summary.placed and any(left.uid == mirror.metadata.uid for left in summary.left_behind):
                return Identity.NAMESAKE
        return self.identity_by(kind, source, mirror, recorded_uid=self._memories.recorded_uid(kind, source))

    def identity_by(self, kind: Kind, source: Object, mirror: Object, *, recorded_uid: str | None) -> Identity:
        """What it is by the uid that is recorded, and before one is by its labels, or the note on it (D1)."""
        uid, transform = mirror.metadata.uid, self._transform
        is_recorded = bool(recorded_uid) and uid == recorded_uid
        found = identify(
            uid,
            own_labels(mirror),
            origin=transform.origin,
            source_uid=source.metadata.uid,
            recorded_uid=recorded_uid,
            management_uid=transform.management_uid,
            is_source=not is_recorded and asks_us_alone(kind, mirror, self._managed_by),  # not looked at otherwise
        )
        if found is Identity.NAMESAKE and not recorded_uid and is_made_of(kind, source, mirror, transform):
            return Identity.UNLABELED
        return found

    def changes(self, source: Source, mirror: Object | None) -> Changes | None:
        """What of a mirror is not as its source wants it; None: nothing is to be done or reported.

        Of what is over nothing follows; only that its mirror does not begin anew is seen to.
        """
        if mirror is None or source.is_deleting:
            return None
        kind = source.kind
        if source.is_finished and (not kind.has_ended_for_now(source.found) or kind.is_suspended(mirror)):
            return None
        has_ended = kind.summary(mirror).is_finished
        ends_for_now = has_ended and kind.has_ended_for_now(mirror)
        if has_ended and not ends_for_now:
            return None
        looks = _looks(source.found, mirror, ends_for_now=ends_for_now or source.is_finished)
        if self._agreed.get(source.uid) == looks:
            return None
        changes = kind.changes(source.found, self._labeled(source, mirror), transform=self._transform)
        if changes is None or self._is_settled(source, mirror, changes):
            self._agreed[source.uid] = looks
            return None
        return changes

    def note_equal(self, source: Object, mirror: Object) -> None:
        """This mirror was just made of this source."""
        if not self._memories.is_gone(source.metadata.uid):
            self._agreed[source.metadata.uid] = _looks(source, mirror, ends_for_now=False)

    def forget(self, uid: str) -> None:
        """A source is gone."""
        self._agreed.pop(uid, None)

    def _labeled(self, source: Source, mirror: Object) -> Object:
        """With our two labels, which are put back by themselves where they are missing."""
        ours = {names.ORIGIN: self._transform.origin, names.SOURCE_UID: source.uid}
        if ours.items() <= mirror.labels.items():
            return mirror
        metadata = msgspec.structs.replace(mirror.metadata, labels=mirror.labels | ours)
        return msgspec.structs.replace(mirror, metadata=metadata)

    def _is_settled(self, source: Source, mirror: Object, changes: Changes) -> bool:
        """Whether what differs was reported and stays as it is; of a suspended mirror the next status may end that."""
        if (
            changes.operations
            or changes.must_wait_for_pods
            or changes.is_run_by_queue
            or source.kind.is_suspended(mirror)
        ):
            return False
        return changes.overridden == self._memories.of(source.uid).overridden


def _looks(source: Object, mirror: Object, *, ends_for_now: bool) -> int:
    """All that the comparison of a source with its mirror depends on, as a hash: 64 bits tell two looks apart."""
    here, there = source.metadata, mirror.metadata
    annotations = {key: value for key, value in source.annotations.items() if not key.startswith(names.PREFIX)}
    versions = (here.generation, there.uid, there.generation, ends_for_now)
    return hash(_encode((versions, here.labels, annotations, there.labels, there.annotations)))
