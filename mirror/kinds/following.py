"""What of a mirror is not as its source wants it, and the patch that brings it there (D9). For any kind. Pure.

A kind says which parts there are and when its templates may change (``Followed``); comparing parts is in ``carried``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from mirror.batch import views
from mirror.kinds.base import Changes, Json
from mirror.kinds.carried import (
    Carried,
    Cause,
    Difference,
    Part,
    Sent,
    contains,
    differences,
    digest,
    patch_operations,
    place_of,
    read,
)
from mirror.kube.objects import Object
from mirror.model import field_paths, names
from mirror.model.field_paths import Place

Parts = tuple[Part, ...]
_METADATA = frozenset(("labels", "annotations"))
"""Names of parts that no queue needs to change: what is missing there is put back."""


class Followed(msgspec.Struct, frozen=True):
    """What of a kind follows, and how."""

    parts: Callable[[Json, Json], Parts]
    """Of a mirror as it is wanted and as it is."""
    values: Callable[[Json, Parts], dict[str, Json]]
    """What a body has at these parts."""
    template_is_mutable: Callable[[Json], bool]
    """Whether a mirror as it is takes changes of what ``needs_mutable_template``."""
    suspend: Part | None
    """None: objects of this kind cannot be suspended."""
    is_admitted: Callable[[Json], bool]
    """Whether a queue on its worker runs a mirror as it is (``queueing``)."""
    pod_labels: Callable[[Json], Iterable[Place]]
    """Where labels of the pod templates of a body are, or would be. ``values`` are without ours there."""
    held: Json = True
    """What a suspended one has there."""

    def holds(self, difference: Difference) -> bool:
        """Whether it suspends the mirror."""
        return self.is_about_suspend(difference) and bool(difference.want == self.held)

    def releases(self, difference: Difference) -> bool:
        """Whether it lets the mirror run."""
        return self.is_about_suspend(difference) and bool(difference.want != self.held)

    def is_about_suspend(self, difference: Difference) -> bool:
        return self.suspend is not None and difference.part.name == self.suspend.name


def changes(want_body: dict[str, Json], mirror: Object, followed: Followed) -> Changes | None:
    """Compare what a source wants with its mirror; None when there is nothing to write (D9).

    While the mirror's template is immutable, only a change of the user's is worth its pods: what was changed on the
    worker, or differs although nothing is known of what was carried, is left as it is and reported.
    """
    want_annotations = dict(want_body["metadata"]["annotations"])
    carried_text = want_annotations.pop(names.CARRIED)
    want_annotations.pop(names.RULE_NAMES, None)  # fixed when it was created (D17)
    want_body["metadata"]["annotations"] = want_annotations
    if mirror.annotations.get(names.CARRIED) == carried_text and _is_intact(want_body, mirror, followed):
        return None
    have_body = _body_of(mirror)
    parts = followed.parts(want_body, have_body)
    noted = Carried.of_text(mirror.annotations.get(names.CARRIED))
    want, have = followed.values(want_body, parts), followed.values(have_body, parts)
    found = list(differences(want, have, noted, Carried.of_text(carried_text), parts))
    # A mirror that the worker's own queueing suspends is left to it; so is what it writes when it admits one (D26).
    is_admitted = followed.is_admitted(have_body)
    left = [d for d in found if d.cause is Cause.REVERTED and (followed.releases(d) or is_admitted)]
    if left:
        found = [d for d in found if d not in left or d.part.name in _METADATA]
    overridden: tuple[str, ...] = ()
    if not followed.template_is_mutable(have_body):
        kept = [d for d in found if _is_left_to_worker(d)]
        overridden = tuple(d.part.field for d in kept)
        found = [d for d in found if d not in kept]
        if any(_changes_template(d) for d in found):
            return _Before(followed, found, have_body, noted, carried_text).changes(overridden)
    if found:
        return _changes_of(found, have_body, None, carried_text, overridden=overridden)
    runs_suspended = any(map(followed.holds, left))
    if overridden or runs_suspended:
        return Changes(digest=carried_text, overridden=overridden, is_run_by_queue=runs_suspended)
    return None


def with_pod_labels(
    found: Changes | None, mirror: Object, pod_labels: Mapping[str, str], followed: Followed
) -> Changes | None:
    """These changes, with our labels in what they write or remove of pod templates' labels (D22).

    A patch writes a map whole, without ours, since ``followed.values`` leaves them out: its pods would no longer be
    found. Templates that are not changed stay as they are.
    """
    if found is None or not pod_labels:
        return found
    body: Json = _body_of(mirror)
    operations = []
    for operation in found.operations:
        changed, body = _labelled(operation, body, pod_labels, followed)
        operations.append(changed)
    return msgspec.structs.replace(found, operations=tuple(operations))


def _labelled(
    operation: Mapping[str, Any], body: Json, pod_labels: Mapping[str, str], followed: Followed
) -> tuple[Mapping[str, Any], Json]:
    """An operation with these labels, and the body after it."""
    place = place_of(operation["path"], body)
    if operation["op"] != "remove":
        body = field_paths.put(body, place, operation["value"])
    elif isinstance(place[-1], int):
        return operation, body  # other operations are of elements as they were counted before
    else:
        body = field_paths.without(body, place)
    written = [one for one in followed.pod_labels(body) if one[: len(place)] == place]
    for one in written:
        body = field_paths.put(body, one, {**views.mapping(field_paths.at(body, one)), **pod_labels})
    if not written:
        return operation, body
    return {**operation, "op": "add", "value": field_paths.at(body, place)}, body


def is_as_sent(sent: Mapping[str, Json], created: Object, followed: Followed) -> bool:
    """Whether the worker has stored what was sent, all but additions."""
    carried = sent["metadata"]["annotations"].get(names.CARRIED)
    return created.annotations.get(names.CARRIED) == carried and _is_intact(sent, created, followed)


def _is_left_to_worker(difference: Difference) -> bool:
    """Whether a difference in an immutable template is none of the user's (D9)."""
    of_template = difference.part.needs_mutable_template and not difference.is_satisfied
    return of_template and difference.cause is not Cause.CHANGED


def _changes_template(difference: Difference) -> bool:
    return difference.part.needs_mutable_template and not difference.is_satisfied


class _Before(msgspec.Struct, frozen=True):
    """The template changed and cannot be written yet (U4): what can go before it, a suspension among that.

    A resume waits, since it goes in one write with the template (D3). A mirror that runs although the template changed
    meanwhile (it was suspended and resumed while its worker was away) is suspended first.
    """

    followed: Followed
    found: list[Difference]
    have_body: Json
    noted: Carried
    carried_text: str

    def changes(self, overridden: tuple[str, ...]) -> Changes:
        followed, carried_text = self.followed, self.carried_text
        wants_to_run = not any(map(followed.holds, self.found))
        first = [d for d in self.found if not _changes_template(d) and not followed.releases(d)]
        suspend = followed.suspend
        if suspend is not None and wants_to_run and read(self.have_body, suspend.path) != followed.held:
            first.append(Difference(suspend, want=followed.held, new_value=followed.held, cause=Cause.CHANGED))
            carried_text = noted_as(carried_text, suspend.name, followed.held)
        if all(d.cause is Cause.REVERTED or d.is_satisfied for d in first):
            return Changes(must_wait_for_pods=True, digest=carried_text, overridden=overridden)
        changed = _changes_of(first, self.have_body, self.noted, carried_text, overridden=overridden)
        # The rest follows under the name of the whole: it is no repetition of this part.
        return msgspec.structs.replace(changed, digest=f"first: {changed.digest}")


def noted_as(carried_text: str, name: str, value: Json) -> str:
    """A note in which one part was carried with this value."""
    note = Carried.of_text(carried_text)
    return Carried({**note.parts, name: Sent(digest(value))}, note.version).as_text()


def _changes_of(
    found: list[Difference],
    have_body: Json,
    noted: Carried | None,
    carried_text: str,
    *,
    overridden: tuple[str, ...],
) -> Changes:
    """Operations for these differences; with ``noted``, parts that are not sent stay noted as they were."""
    new_note = Carried.of_text(carried_text)
    if noted is not None:
        sent = {difference.part.name for difference in found}
        new_note = Carried(
            {name: part for name, part in noted.parts.items() if name not in sent}
            | {name: part for name, part in new_note.parts.items() if name in sent},
            noted.version,
        )
    annotations = next((d.new_value for d in found if d.part.name == "annotations"), None)
    if annotations is None:
        annotations = dict(read(have_body, ("metadata", "annotations")) or {})
    operations: list[Mapping[str, Any]] = []
    for difference in found:
        if difference.part.name != "annotations" and not difference.is_satisfied:
            operations += patch_operations(difference, have_body)
    has = read(have_body, ("metadata", "annotations")) or {}
    ours = {key: value for key, value in has.items() if key.startswith(names.PREFIX)}
    noted_annotations = annotations | ours | {names.CARRIED: new_note.as_text()}
    operations.append({"op": "add", "path": "/metadata/annotations", "value": noted_annotations})
    is_reverted = all(d.cause is Cause.REVERTED for d in found)
    return Changes(
        tuple(operations),
        digest=carried_text,
        reverted=tuple(d.part.field for d in found) if is_reverted else (),
        only_note=all(d.is_satisfied for d in found),
        overridden=overridden,
    )


def _is_intact(want_body: Json, mirror: Object, followed: Followed) -> bool:
    """The note matches: is everything that was carried still on the mirror?"""
    have_body = _body_of(mirror)
    parts = followed.parts(want_body, have_body)
    want, have = followed.values(want_body, parts), followed.values(have_body, parts)
    suspend = followed.suspend.name if followed.suspend is not None else None
    return all(
        contains(have[name], value) or (name == suspend and value != followed.held)
        for name, value in want.items()
        if value is not None
    )


def _body_of(found: Object) -> dict[str, Json]:
    metadata = {"labels": dict(found.labels), "annotations": dict(found.annotations)}
    return {"metadata": metadata, "spec": found.spec_dict(), "status": found.status_dict()}
