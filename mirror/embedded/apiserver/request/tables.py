"""Objects as clients that only show them want them: rows of a table, or nothing but metadata. Pure.

What the columns of a kind are, and what is in them, its ``Strategy`` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, bad_request
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column
from mirror.embedded.apiserver.request.negotiation import PARTIAL, PARTIAL_LIST

_NAME = Column(
    "Name",
    format="name",
    description=(
        "Name must be unique within a namespace. Is required when creating resources, although some resources may allow"
        " a client to request the generation of an appropriate name automatically. Name is primarily intended for"
        " creation idempotence and configuration definition. Cannot be updated. More info:"
        " https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
    ),
)
_INCLUDED = ("", "Metadata", "Object", "None")


def included(query: Mapping[str, str]) -> str:
    """How much of each object its row carries.

    Raises:
        StatusError: 400.
    """
    wanted = query.get("includeObject", "")
    if wanted not in _INCLUDED:
        detail = "must be 'Metadata', 'Object', 'None', or empty"
        problem = f"includeObject: Invalid value: {quoted(wanted)}: {detail}"
        raise bad_request(f"Unable to convert to Table as requested: {problem}")
    return wanted or "Metadata"


def columns_of(kind: Kind) -> Sequence[Column]:
    """All columns."""
    columns = kind.strategy.columns
    return columns if any(one.name == "Name" for one in columns) else (_NAME, *columns)


def table(
    kind: Kind,
    raws: Iterable[bytes],
    meta: Json,
    *,
    now: datetime,
    version: str,
    include: str,
    has_columns: bool = True,
) -> Json:
    """A ``Table`` of these objects."""
    definitions = [
        {
            "name": one.name,
            "type": one.type,
            "format": one.format,
            "description": one.description,
            "priority": one.priority,
        }
        for one in columns_of(kind)
    ]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": definitions if has_columns else None,
        "rows": [_row(kind, raw, now, version, include) for raw in raws] or _no_rows(kind),
    }


def _no_rows(kind: Kind) -> list[Json] | None:
    """None of a kind without columns of its own, as upstream has it."""
    return None if any(one.name == "Created At" for one in columns_of(kind)) else []


def partial(raw: bytes, version: str) -> Json:
    """Only the metadata of an object."""
    return {"kind": PARTIAL, "apiVersion": f"meta.k8s.io/{version}", "metadata": objects.metadata_of(raw)}


def partial_list(raws: Iterable[bytes], meta: Json, version: str) -> Json:
    """Only the metadata of these objects. None at all are ``null``, as upstream has it."""
    items = [partial(raw, version) for raw in raws] or None
    return {"kind": PARTIAL_LIST, "apiVersion": f"meta.k8s.io/{version}", "metadata": meta, "items": items}


def _row(kind: Kind, raw: bytes, now: datetime, version: str, include: str) -> Json:
    body = objects.decode(raw)
    shown: Any = None
    if include == "Metadata":
        shown = partial(raw, version)
    elif include == "Object":
        shown = msgspec.Raw(raw)
    row: Json = {"cells": _cells(kind, body, now)}
    conditions = kind.strategy.row_conditions(body)
    if conditions:
        row["conditions"] = conditions
    row["object"] = shown
    return row


def _cells(kind: Kind, body: Json, now: datetime) -> list[object]:
    """What is in the columns; nothing for a bookmark, which is an object without anything."""
    if "name" not in body["metadata"]:
        return [""] * len(columns_of(kind))
    return kind.strategy.cells(body, now)
