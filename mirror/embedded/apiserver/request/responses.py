"""Responses in the form that the client accepts: JSON as it is stored, YAML, tables and partial objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import yaml

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, bad_request, not_acceptable
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column
from mirror.embedded.apiserver.messages import JSON_TYPE, Response
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.request.options import PARTIAL, PARTIAL_LIST, PLAIN, TABLE, YAML_TYPE, Format
from mirror.runtime.clock import Clock

_MOST_WARNED, _LONGEST_CUT = 4096, 256
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Texts with such a character cannot be told in a header."""
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"'})


async def showing(scope: RequestScope, raw: bytes, clock: Clock, *, status: int = 200) -> Response:
    """``of_object``, beside the loop if it is converted and large."""
    if scope.format == PLAIN:
        return written(raw, PLAIN, status, warning_headers(scope.warnings) if scope.warnings else ())
    now = clock.now()
    return await scope.pure(lambda: of_object(scope, raw, now, status=status), raw)


def of_object(scope: RequestScope, raw: bytes, now: datetime, *, status: int = 200) -> Response:
    """One object, ``raw`` in the form of the call's kind."""
    headers = warning_headers(scope.warnings) if scope.warnings else ()
    match scope.format.target:
        case "":
            return written(raw, scope.format, status, headers)
        case "Table":
            version = objects.decode(bytes(objects.metadata_of(raw))).get("resourceVersion")
            meta = {"resourceVersion": version} if version else {}
            include = included(scope.request.parameters)
            made = table(scope.kind, [raw], meta, now=now, version=scope.format.version, include=include)
        case "PartialObjectMetadata":
            made = partial(raw, scope.format.version)
        case _:
            raise not_acceptable(
                f"you requested {PARTIAL_LIST}, but the requested object is not a list {_go_type(scope.kind)}"
            )
    return written(objects.encode(made), scope.format, status, headers)


def of_list(scope: RequestScope, raws: Iterable[bytes], meta: Json, now: datetime) -> Response:
    """A list of objects, each in the form of the call's kind."""
    kind, form = scope.kind, scope.format
    if form.target and not meta.get("continue"):
        meta.pop("continue", None)
    headers = warning_headers(scope.warnings) if scope.warnings else ()
    if form.target == TABLE:
        include = included(scope.request.parameters)
        body = objects.encode(table(kind, raws, meta, now=now, version=form.version, include=include))
    elif form.target == PARTIAL_LIST:
        body = objects.encode(partial_list(raws, meta, form.version))
    elif form.target == PARTIAL:
        raise not_acceptable(f"you requested {PARTIAL}, but the requested object is a list {_go_type(kind, 'List')}")
    else:
        head = objects.head(kind.api_version, kind.list_kind or f"{kind.kind}List")
        cut = len(objects.head_of(kind)) if kind.strategy.struct else 0
        # Items of built-in kinds do not repeat what the list says of them already.
        items = b",".join([b"{" + raw[cut:] for raw in raws] if cut else list(raws))
        body = b"".join((head, b'"metadata":', objects.encode(meta), b',"items":[', items, b"]}"))
    return written(body, form, 200, headers)


def of_status(status: Json, form: Format = PLAIN, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A ``Status``, which is never converted."""
    retry = (status.get("details") or {}).get("retryAfterSeconds")
    if retry:
        headers = (*headers, ("Retry-After", str(retry)))
    return written(objects.encode(status), form, int(status.get("code") or 200), headers)


def of_refusal(refused: StatusError, form: Format, warnings: Sequence[str]) -> Response:
    """Why it was not done."""
    return of_status(refused.status, form, (*refused.headers, *warning_headers(warnings)))


def written(body: bytes, form: Format, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """JSON as it is, indented, or as YAML."""
    if form.is_yaml:
        text = yaml.dump(objects.decode(body), Dumper=yaml.CSafeDumper, allow_unicode=True)
        return Response(status, text.encode(), YAML_TYPE, headers)
    if form.is_pretty:
        body = msgspec.json.format(body, indent=2)
    return Response(status, body + b"\n", JSON_TYPE, headers)


def warning_headers(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """``Warning: 299 - "text"``, each text once; all are cut if they are too much together, and then some left out."""
    wanted = [text for text in dict.fromkeys(texts) if text and not _CONTROL.search(text)]
    if sum(map(len, wanted)) > _MOST_WARNED:
        wanted = [text[:_LONGEST_CUT] for text in wanted[: _MOST_WARNED // _LONGEST_CUT]]
    return tuple(("Warning", f'299 - "{text.translate(_ESCAPED)}"') for text in wanted)


def _go_type(kind: Kind, suffix: str = "") -> str:
    """As upstream shows the type that it has in its hands."""
    if not kind.strategy.struct:
        return f"(*unstructured.Unstructured{suffix})"
    return f"(*{kind.group.partition('.')[0] or 'core'}.{kind.kind}{suffix})"


# Tables and partial objects.

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


def table(kind: Kind, raws: Iterable[bytes], meta: Json, *, now: datetime, version: str, include: str) -> Json:
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
        "columnDefinitions": definitions,
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
