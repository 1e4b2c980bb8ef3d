"""A request of server-side apply: its text is read, applied (``apply``), and what comes out is decoded."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from mirror.embedded.apiserver.apimachinery import errors
from mirror.embedded.apiserver.apimachinery.decoding import text, typed, yamls
from mirror.embedded.apiserver.apimachinery.decoding.bodies import (
    Decoded,
    Validation,
    custom_metadata,
    unreadable,
    warnings_of,
)
from mirror.embedded.apiserver.apimachinery.decoding.goprint import type_of
from mirror.embedded.apiserver.apimachinery.decoding.text import is_shallow
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.patch import apply, converting

Json: TypeAlias = dict[str, Any]


def applied(
    patch: bytes, current: Json | None, kind: Kind, applicant: apply.Applicant, *, validation: Validation
) -> Decoded:
    """The object as it is after applying, with its managers in ``metadata.managedFields``.

    ``current`` is the object as it is served, or None; it is not changed.

    Raises:
        StatusError: 400 if it cannot be read, 409 for conflicts, 500 if it does not fit the kind.
    """
    wanted, complaints = _read(patch)
    found = apply.apply(wanted, current, kind, applicant)
    if complaints and validation == "Strict":
        raise errors.bad_request(f"error strict decoding YAML: {complaints[0]}")
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
    return Decoded(found, [] if validation == "Ignore" else warnings_of(complaints))


def _read(patch: bytes) -> tuple[Json, list[str]]:
    """The object of the request, and what is odd with its text."""
    found: Any = text.decode_untyped(patch) if yamls.is_like_json(patch) else None
    complaints: list[str] = []
    if found is None:
        try:
            data, twice = yamls.to_json(patch)
        except yamls.NotYaml as error:
            raise errors.bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from error
        found = msgspec.json.decode(data)
        complaints = [f"error converting YAML to JSON: {one}" for one in twice]
    if found is None:
        found = {}
    if not isinstance(found, dict):
        kind = {"[]interface {}": "array", "int64": "number", "float64": "number"}.get(type_of(found), type_of(found))
        raise errors.bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
            f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    if not is_shallow(found):
        raise errors.bad_request("error decoding YAML: error unmarshaling JSON: exceeded max depth")
    return found, complaints
