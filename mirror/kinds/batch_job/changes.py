"""What of a Job's mirror is not as its source wants it, and the patch that brings it there (D9).

Called by ``controllers``. Which parts there are is in ``body``; comparing them in ``kinds.carried``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mirror.batch import conditions
from mirror.kinds.base import Changes, Json, MirrorTransform
from mirror.kinds.batch_job.body import SUSPEND, mirror_body, part_values, parts_of
from mirror.kinds.carried import (
    Carried,
    Cause,
    Difference,
    Sent,
    contains,
    differences,
    digest,
    patch_operations,
    read,
)
from mirror.kube.objects import Object
from mirror.model import names


def changes(source: Object, mirror: Object, *, transform: MirrorTransform) -> Changes | None:
    """Compare a source with its mirror; None when there is nothing to write (D9).

    While the mirror's template is immutable, only a change of the user's is worth its pods: what was changed on the
    worker, or differs although nothing is known of what was carried, is left as it is and reported.
    """
    want_body = mirror_body(source, namespace=mirror.metadata.namespace, transform=transform)
    want_annotations = dict(want_body["metadata"]["annotations"])
    carried_text = want_annotations.pop(names.CARRIED)
    want_annotations.pop(names.RULE_NAMES, None)  # fixed when it was created (D17)
    want_body["metadata"]["annotations"] = want_annotations
    if mirror.annotations.get(names.CARRIED) == carried_text and _is_intact(want_body, mirror):
        return None
    have_body = _body_of(mirror)
    parts = parts_of(want_body)
    noted = Carried.of_text(mirror.annotations.get(names.CARRIED))
    found = list(differences(part_values(want_body, parts), part_values(have_body, parts), noted, parts))
    # A mirror that the worker's own queueing suspends is left to it.
    found = [d for d in found if not (d.part.name == "suspend" and d.cause is Cause.REVERTED and d.want is False)]
    overridden: tuple[str, ...] = ()
    if not _template_is_mutable(have_body):
        kept = [d for d in found if _is_left_to_worker(d)]
        overridden = tuple(d.part.field for d in kept)
        found = [d for d in found if d not in kept]
        if any(_changes_template(d) for d in found):
            return _before_template(found, have_body, noted, carried_text, overridden)
    if found:
        return _changes_of(found, have_body, None, carried_text, overridden=overridden)
    return Changes(digest=carried_text, overridden=overridden) if overridden else None


def _is_left_to_worker(difference: Difference) -> bool:
    """Whether a difference in an immutable template is none of the user's (D9)."""
    of_template = difference.part.needs_mutable_template and not difference.is_satisfied
    return of_template and difference.cause is not Cause.CHANGED


def _changes_template(difference: Difference) -> bool:
    return difference.part.needs_mutable_template and not difference.is_satisfied


def _before_template(
    found: list[Difference], have_body: Json, noted: Carried, carried_text: str, overridden: tuple[str, ...]
) -> Changes:
    """The template changed and cannot be written yet (U4): what can go before it, a suspension among that.

    A resume waits, since it goes in one write with the template (D3). A mirror that runs although the template changed
    meanwhile (it was suspended and resumed while its worker was away) is suspended first.
    """
    wants_to_run = not any(d.part.name == "suspend" and d.want for d in found)
    first = [d for d in found if not _changes_template(d) and not (d.part.name == "suspend" and not d.want)]
    if wants_to_run and not read(have_body, ("spec", "suspend")):
        first.append(Difference(SUSPEND, want=True, new_value=True, cause=Cause.CHANGED))
        carried_text = _note_with(carried_text, SUSPEND.name, True)
    if all(d.cause is Cause.REVERTED or d.is_satisfied for d in first):
        return Changes(must_wait_for_pods=True, digest=carried_text, overridden=overridden)
    changed = _changes_of(first, have_body, noted, carried_text, overridden=overridden)
    # The rest follows under the name of the whole: it is no repetition of this part.
    return msgspec.structs.replace(changed, digest=f"first: {changed.digest}")


def _note_with(carried_text: str, name: str, value: Json) -> str:
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
    noted_annotations = annotations | {names.CARRIED: new_note.as_text()}
    operations.append({"op": "add", "path": "/metadata/annotations", "value": noted_annotations})
    is_reverted = all(d.cause is Cause.REVERTED for d in found)
    return Changes(
        tuple(operations),
        digest=carried_text,
        reverted=tuple(d.part.field for d in found) if is_reverted else (),
        only_note=all(d.is_satisfied for d in found),
        overridden=overridden,
    )


def is_as_sent(sent: Mapping[str, Json], created: Object) -> bool:
    """Whether the worker has stored what was sent, all but additions."""
    carried = sent["metadata"]["annotations"].get(names.CARRIED)
    return created.annotations.get(names.CARRIED) == carried and _is_intact(sent, created)


def _is_intact(want_body: Json, mirror: Object) -> bool:
    """The note matches: is everything that was carried still on the mirror?"""
    parts = parts_of(want_body)
    have = part_values(_body_of(mirror), parts)
    return all(
        contains(have[name], value) or (name == "suspend" and value is False)
        for name, value in part_values(want_body, parts).items()
    )


def _body_of(found: Object) -> dict[str, Json]:
    metadata = {"labels": dict(found.labels), "annotations": dict(found.annotations)}
    return {"metadata": metadata, "spec": found.spec_dict(), "status": found.status_dict()}


def _template_is_mutable(body: Json) -> bool:
    """U4: judged on the mirror as it is now."""
    status = body.get("status") or {}
    suspended = conditions.is_true(conditions.of(status), conditions.SUSPENDED)
    no_start = status.get("startTime") is None
    return bool(body["spec"].get("suspend")) and not status.get("active") and (no_start or suspended)
