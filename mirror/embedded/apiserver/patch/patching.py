"""Patches of objects, of every type but apply: what comes out is decoded like any other body.

``patched`` is called again when the object was changed meanwhile; it keeps nothing and changes nothing of
what it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import msgspec

from mirror.batch.quoting import quoted
from mirror.batch.violations import invalid_text
from mirror.embedded.apiserver.apimachinery import errors
from mirror.embedded.apiserver.apimachinery.decoding import goprint, names, syntax, text, typed
from mirror.embedded.apiserver.apimachinery.decoding.bodies import (
    Decoded,
    Validation,
    custom_metadata,
    keep_reset,
    unknown_fields,
)
from mirror.embedded.apiserver.apimachinery.decoding.text import Members, NotJson, is_shallow, json_type, parse, plain
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.schemas import versions
from mirror.embedded.apiserver.patch import converting, json_patch, merge_patch, strategic

Json: TypeAlias = dict[str, Any]

JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH, APPLY_PATCH = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_MOST_OPERATIONS = 10_000
_MAP = "map[string]interface {}"
_REJECTED = "the server rejected our request due to an error in our request"


def accepted(kind: Kind) -> tuple[str, ...]:
    """The content types of patches that this kind takes."""
    if kind.strategy.struct:
        return JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH
    return JSON_PATCH, MERGE_PATCH, APPLY_PATCH


def type_of(content_type: str, kind: Kind) -> str:
    """The content type without its parameters.

    Raises:
        StatusError: 415, the kind takes no such patch.
    """
    found = content_type.partition(";")[0] if content_type.find(";") > 0 else content_type
    if found not in accepted(kind):
        if kind.strategy.struct:
            raise errors.unsupported_media_type("415: Unsupported Media Type")
        known = ", ".join(accepted(kind))
        raise errors.unsupported_media_type(
            f"the body of the request was in an unknown format - accepted media types include: {known}"
        )
    return found


def patched(content_type: str, patch: bytes, current: Json, kind: Kind, validation: Validation) -> Decoded:
    """The object as the patch makes it, decoded; JSON, merge and strategic merge patches.

    Raises:
        StatusError: 400, 415, 413 or 422; the patch is none, or does not fit, or what it makes cannot be read.
    """
    match type_of(content_type, kind):
        case "application/json-patch+json":
            operations, complaints = _operations(patch, validation)
            try:
                found = json_patch.patched(current, operations)
            except json_patch.DoesNotApply:
                raise _rejected() from None
            again = partial(_printed, json_patch.patched, current, operations, kind)
            return _decoded(found, again, complaints, kind, validation)
        case "application/merge-patch+json":
            wanted, complaints = _merge(patch, validation)
            again = partial(_printed, merge_patch.patched, current, wanted, kind)
            return _decoded(merge_patch.patched(current, wanted), again, complaints, kind, validation)
        case _:
            return _strategic(patch, current, kind, validation)


def _printed(apply: Callable[..., Any], current: Json, patch: Any, kind: Kind) -> Any:
    """What a patch makes, in the order in which the server would print it."""
    return apply(merge_patch.in_order(current, kind.strategy.struct), patch, sorts=True)


def _operations(patch: bytes, validation: Validation) -> tuple[list[Json], list[str]]:
    prefix = "" if validation == "Ignore" else "error decoding patch: "
    members = _parsed(patch, prefix)
    if members is None:
        return [], []
    type_name = "jsonpatch.Patch" if validation == "Ignore" else "[]handlers.jsonPatchOp"
    if not isinstance(members, list) or isinstance(members, Members):
        raise errors.bad_request(
            f"{prefix}json: cannot unmarshal {json_type(members)} into Go value of type {type_name}"
        )
    complaints: list[str] = []
    operations = []
    for position, one in enumerate(members):
        operations.append({} if one is None else _operation(one, position, prefix, complaints))
    if len(operations) > _MOST_OPERATIONS:
        raise errors.too_large(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{_MOST_OPERATIONS}, got {len(operations)}"
        )
    return operations, [f"json patch {one}" for one in dict.fromkeys(complaints)]


def _operation(members: Any, position: int, prefix: str, complaints: list[str]) -> Json:
    if not isinstance(members, Members):
        raise errors.bad_request(
            f"{prefix}json: cannot unmarshal {json_type(members)} into Go value of type handlers.jsonPatchOp"
        )
    found: Json = {}
    for name, value in members:
        path = f"[{position}].{name}"
        if name not in ("op", "path", "from", "value"):
            complaints.append(f"unknown field {quoted(path)}")
            continue
        if name in found:
            complaints.append(f"duplicate field {quoted(path)}")
        if name == "value":
            complaints.extend(typed.duplicates(value, path))
        elif value is not None and not isinstance(value, str):
            where = f"struct field jsonPatchOp.{name}"
            raise errors.bad_request(
                f"{prefix}json: cannot unmarshal {json_type(value)} into Go {where} of type string"
            )
        found[name] = plain(value)
    return found


def _merge(patch: bytes, validation: Validation) -> tuple[Json, list[str]]:
    is_checked = validation != "Ignore"
    try:
        members = _parsed(patch, "error decoding patch: ")
    except errors.StatusError:
        if is_checked:
            raise
        raise errors.bad_request("Invalid JSON Patch") from None
    if members is None or not (isinstance(members, Members) or is_checked):
        raise errors.bad_request("Invalid JSON Patch")
    if not isinstance(members, Members):
        raise errors.bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type(members)} into Go value of type {_MAP}"
        )
    return plain(members), typed.duplicates(members) if is_checked else []


def _strategic(patch: bytes, current: Json, kind: Kind, validation: Validation) -> Decoded:
    wanted, complaints = _strategic_patch(patch, validation)
    try:
        found = strategic.patched(current, wanted, kind.strategy.struct)
    except strategic.BadPatch as error:
        raise errors.bad_request(str(error)) from error
    except strategic.Unmergeable:
        raise _rejected() from None
    except strategic.CannotMerge as error:
        raise errors.StatusError(errors.failure(500, "", str(error))) from error
    try:
        body, unknown = converting.converted(found, kind.strategy.struct)
    except converting.Unconvertible as error:
        raise _invalid(goprint.text(wanted), str(error)) from error
    body["apiVersion"], body["kind"] = kind.api_version, kind.kind
    complaints += unknown
    return Decoded(body, _reported(complaints, goprint.text(wanted), validation) if complaints else [])


def _strategic_patch(patch: bytes, validation: Validation) -> tuple[Json, list[str]]:
    wanted = text.decode_untyped(patch)
    if wanted is not None and is_shallow(wanted):
        return wanted, []
    members = _parsed(patch, "")
    if members is not None and not isinstance(members, Members):
        raise errors.bad_request(f"json: cannot unmarshal {json_type(members)} into Go value of type {_MAP}")
    return plain(members) or {}, [] if validation == "Ignore" else typed.duplicates(members)


def _decoded(body: Any, again: Callable[[], Any], complaints: list[str], kind: Kind, validation: Validation) -> Decoded:
    """What a JSON or merge patch made, as if it had come in a request.

    ``again`` makes it once more, as the server would print it: errors show that.
    """
    if not kind.strategy.struct:
        return _decoded_custom(body, complaints, kind, validation)
    found = text.decode(msgspec.json.encode(body), kind.strategy.struct)
    shown = ""
    if found is None or complaints or (found.get("apiVersion"), found.get("kind")) != (kind.api_version, kind.kind):
        shown = merge_patch.text(again())
        found, unknown = _decoded_slowly(shown, kind)
        complaints = [*complaints, *unknown]
    found["apiVersion"], found["kind"] = kind.api_version, kind.kind
    keep_reset(found)
    return Decoded(found, _reported(complaints, shown, validation) if complaints else [])


def _decoded_slowly(shown: str, kind: Kind) -> tuple[Json, list[str]]:
    reading = typed.Reading()
    try:
        members = parse(shown.encode())
        own_version, own_kind = names.interpret(members)
        if not own_version:
            return _internal(members, own_kind, kind)
        why = names.problem(own_version, own_kind, kind.api_version, kind.kind)
        struct = versions.struct_of(own_version, own_kind or kind.kind) if why else kind.strategy.struct
        found = reading.body(members, struct) if struct else {}
    except typed.Refusal as refusal:
        raise _invalid(shown, str(refusal)) from None
    except NotJson:
        raise _invalid("", "exceeded max depth") from None
    if why:
        raise _invalid(shown, why)
    return found, reading.complaints


def _internal(members: Any, own_kind: str, kind: Kind) -> tuple[Json, list[str]]:
    """Without a version a server takes the object for its internal form, which calls every field differently."""
    if own_kind and not versions.is_known(kind.api_version, own_kind):
        raise typed.Refusal(names.not_internal(own_kind, kind.group))
    return {"metadata": {}}, [
        f"unknown field {quoted(name)}" for name, _ in members or () if name not in ("kind", "apiVersion")
    ]


def _decoded_custom(body: Any, complaints: list[str], kind: Kind, validation: Validation) -> Decoded:
    shown = merge_patch.text(merge_patch.in_order(body, ""))
    found = body if isinstance(body, dict) else {}
    try:
        own_version, own_kind = names.interpret(found)
        if not own_kind:
            raise typed.Refusal(f"Object 'Kind' is missing in '{shown}'")
        metadata, unknown = custom_metadata(found)
    except typed.Refusal as refusal:
        raise _invalid(shown, str(refusal)) from None
    if not own_version:
        why = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
        raise errors.internal(why)
    names.check_custom(own_version, own_kind, metadata.get("name") or "", kind, b"")
    body = {**msgspec.json.decode(shown), "metadata": metadata}
    unknown += unknown_fields(body, kind)
    complaints = [*complaints, *(f"unknown field {quoted(path)}" for path in unknown)]
    return Decoded(body, _reported(complaints, shown, validation) if complaints else [])


def _reported(complaints: list[str], shown: str, validation: Validation) -> list[str]:
    """What a client is warned of.

    Raises:
        StatusError: 422, validation is strict.
    """
    if validation == "Strict" and complaints:
        raise _invalid(shown, f"strict decoding error: {', '.join(complaints)}")
    return [] if validation == "Ignore" else list(complaints)


def _parsed(patch: bytes, prefix: str) -> Any:
    try:
        return parse(patch)
    except NotJson:
        why = syntax.complaint(patch) or "invalid character '[' exceeded max depth"
        raise errors.bad_request(prefix + why) from None


def _invalid(shown: str, why: str) -> errors.StatusError:
    return errors.invalid("", "", "", [invalid_text("patch", shown, why)])


def _rejected() -> errors.StatusError:
    status = errors.failure(422, "Invalid", _REJECTED)
    status["details"] = {}
    return errors.StatusError(status)
