"""A request of server-side apply: its text is read, applied (``apply``), and what comes out is decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from mirror.embedded.apiserver import failures
from mirror.embedded.apiserver.bodies import Decoded, Validation, custom_metadata, unreadable, warnings_of
from mirror.embedded.apiserver.crds import checking
from mirror.embedded.apiserver.decoding import fast, typed, yamls
from mirror.embedded.apiserver.decoding.goprint import type_of
from mirror.embedded.apiserver.decoding.text import is_shallow
from mirror.embedded.apiserver.kinds import Kind
from mirror.embedded.apiserver.patches import apply, converting

Json: TypeAlias = dict[str, Any]

_NULL = ': "null"'


def applied(
    patch: bytes,
    current: Json | None,
    kind: Kind,
    *,
    manager: str,
    force: bool,
    subresource: str,
    now: str,
    validation: Validation,
) -> Decoded:
    """The object as it is after applying, with its managers in ``metadata.managedFields``.

    ``current`` is the object as it is served, or None; it is not changed.

    Raises:
        Refused: 400 if it cannot be read, 409 for conflicts, 500 if it does not fit the kind.
    """
    wanted, complaints = _read(patch)
    found = apply.apply(wanted, current, kind, manager=manager, force=force, subresource=subresource, now=now)
    if complaints and validation == "Strict":
        raise failures.bad_request(f"error strict decoding YAML: {complaints[0]}")
    if kind.strategy.struct:
        try:
            found, _ = converting.converted(found, kind.strategy.struct)
        except converting.Unconvertible as error:
            who = apply.described(wanted, kind)
            raise apply.internal(
                f"failed to convert new object ({who}) to proper version: unable to convert unstructured object to "
                f"{kind.group}/{kind.version}, Kind={kind.kind}: {error}"
            ) from error
    else:
        try:
            found["metadata"], _ = custom_metadata(found)
        except typed.Refusal as refusal:
            raise unreadable(kind.api_version, kind.kind, str(refusal)) from None
        _check_nulls(found, kind, subresource)
    return Decoded(found, [] if validation == "Ignore" else warnings_of(complaints))


def _check_nulls(found: Json, kind: Kind, subresource: str) -> None:
    """What is null in a body is dropped when it is read; what applying has emptied is there, and judged.

    Where a default is, it takes the null's place.

    Raises:
        Refused: 422, a null is where none may be.
    """
    schema = getattr(kind.strategy, "schema", None)
    parts = {name: value for name, value in found.items() if name not in ("apiVersion", "kind", "metadata")}
    if subresource:
        parts = {name: value for name, value in parts.items() if name == subresource}
    if schema is None or not _has_null(parts):
        return
    _drop_defaulted(found, schema)
    parts = {name: found[name] for name in parts if name in found}
    violations = [one for one in checking.check(parts, schema) if _NULL in one.message]
    if violations:
        raise failures.invalid(kind.kind, kind.group, found["metadata"].get("name", ""), violations)


def _has_null(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_null, value.values() if isinstance(value, dict) else value))
    return value is None


def _drop_defaulted(value: Any, schema: Mapping[str, Any]) -> None:
    """Take out, in place, nulls that have a default."""
    if isinstance(value, list):
        for one in value:
            _drop_defaulted(one, schema.get("items") or {})
    elif isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, one in list(value.items()):
            inner = properties.get(name, others if isinstance(others, Mapping) else {})
            if one is None and "default" in inner and not inner.get("nullable"):
                del value[name]
            else:
                _drop_defaulted(one, inner)


def _read(patch: bytes) -> tuple[Json, list[str]]:
    """The object of the request, and what is odd with its text."""
    found: Any = fast.decode_untyped(patch)
    complaints: list[str] = []
    if found is None:
        try:
            data, twice = yamls.to_json(patch)
        except yamls.NotYaml as error:
            raise failures.bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from error
        found = msgspec.json.decode(data)
        complaints = [f"error converting YAML to JSON: {one}" for one in twice]
    if found is None:
        found = {}
    if not isinstance(found, dict):
        kind = {"[]interface {}": "array", "int64": "number", "float64": "number"}.get(type_of(found), type_of(found))
        raise failures.bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    if not is_shallow(found):
        raise failures.bad_request("error decoding YAML: error unmarshaling JSON: exceeded max depth")
    return found, complaints
