"""What of a source's change matters, as ``routes`` asks. Pure."""

from __future__ import annotations

from mirror.kinds.own_annotations import OF_PLACEMENT
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.move_requests import may_have_request
from mirror.model.terms import request_in


def has_request(found: Object) -> bool:
    """Whether the holder of its worker's slot requests another one: a worker's own words may be the same (D18)."""
    return may_have_request(bytes(found.status)) and request_in(found.status_dict()) is not None


def carries_other_metadata(old: Object, new: Object) -> bool:
    """Whether its mirror would have other labels or annotations than before; ours are none of it."""
    if old.labels != new.labels:
        return True
    if old.annotations == new.annotations:
        return False
    one, other = (
        {key: value for key, value in found.annotations.items() if not key.startswith(names.PREFIX)}
        for found in (old, new)
    )
    return one != other


def withdraws_request(old: Object | None, new: Object) -> bool:
    """A source that waits for a worker, or was assigned to one, does not want it any more, or another one (D21)."""
    if new.metadata.deletion_timestamp is not None:
        return True
    if old is None or old.annotations == new.annotations:
        return False
    before, after = old.annotations, new.annotations
    return any(before.get(name) != after.get(name) for name in OF_PLACEMENT)
