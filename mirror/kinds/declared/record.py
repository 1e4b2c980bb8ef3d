"""Our record of a source whose status has no conditions: in an annotation, read as if they stood there (D25). Pure.

Everything else of ``declared`` sees one status with our conditions in it. Users can write annotations, so that what
stands there is believed only as far as mirrors and this process confirm it (``decide.trusting``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mirror.batch import conditions as lists
from mirror.batch import views
from mirror.kinds.declared.form import Form
from mirror.kube.objects import JUNK, Object
from mirror.model import names
from mirror.model.text import clean

Json = Any

BY_ANNOTATION = "annotation"
_MOST_CONDITIONS = 8
_LONGEST = 16 * 1024
_LONGEST_VALUE = 1024
_FIELDS = ("type", "status", "reason", "message", "lastTransitionTime")
_encode = msgspec.json.Encoder(order="deterministic").encode


def is_by_annotation(form: Form) -> bool:
    """Whether our conditions are in the annotation."""
    return form.entry.record == BY_ANNOTATION


def text_in(form: Form, found: Object) -> str | None:
    """The annotation that holds our conditions; None: there is none, or they stand in the status."""
    return found.annotations.get(names.CONDITIONS) if is_by_annotation(form) else None


def merged(form: Form, status: dict[str, Json], text: str | None) -> dict[str, Json]:
    """The status of a source with our conditions in it, wherever they are stored; ``text``: that of ``text_in``."""
    if not is_by_annotation(form):
        return status
    listed = [*conditions_in(text), *_others(status)]
    status.pop("conditions", None)
    return {**status, "conditions": listed} if listed else status


def split(status: Mapping[str, Json]) -> tuple[dict[str, Json], str | None]:
    """A status without our conditions, and the annotation that holds them; None: there are none."""
    ours, others = [one for one in lists.of(status) if _is_ours(one)], _others(status)
    rest = {key: value for key, value in status.items() if key != "conditions"}
    return {**rest, "conditions": others} if others else rest, _encode(ours).decode() if ours else None


def conditions_in(text: str | None) -> list[dict[str, str]]:
    """Our conditions as an annotation has them; nothing of what is none of them."""
    if not text or len(text) > _LONGEST:
        return []
    try:
        listed = msgspec.json.decode(text.encode(), type=list[dict[str, Any]])
    except JUNK:
        return []
    kept = {}
    for one in listed[:_MOST_CONDITIONS]:
        if _is_ours(one) and all(isinstance(one.get(name), str) for name in _FIELDS):
            kept[one["type"]] = {name: clean(one[name], longest=_LONGEST_VALUE) for name in _FIELDS}
    return list(kept.values())


def _others(status: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    return [one for one in lists.of(status) if not _is_ours(one)]


def _is_ours(condition: Mapping[str, Json]) -> bool:
    return views.text(condition.get("type")).startswith(names.PREFIX)
