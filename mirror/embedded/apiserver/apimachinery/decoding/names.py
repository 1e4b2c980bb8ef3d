"""Which kind a body says it is of, and what is answered if that is another than the one of the path."""

from __future__ import annotations

from typing import Any

from mirror.batch.quoting import quoted
from mirror.batch.violations import invalid_text
from mirror.embedded.apiserver.apimachinery import errors
from mirror.embedded.apiserver.apimachinery.decoding.text import Members, clean, json_type
from mirror.embedded.apiserver.apimachinery.decoding.typed import Refusal
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.schemas import versions

_SHOWN = 30
"""Bytes of a body that a refusal shows."""
_SCHEME = '"pkg/runtime/scheme.go:111"'
_WHOLE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


_DIFFERENT = "the API version in the data"


def interpret(members: Any) -> tuple[str, str]:
    """``apiVersion`` and ``kind`` of what was parsed, or of a plain object; empty where they are missing.

    A version whose group is empty (``/v1``) is that of the core.

    Raises:
        Refusal: they are no texts, or nothing like a version.
    """
    prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    if members is None:
        return "", ""
    if not isinstance(members, Members | dict):
        raise Refusal(f"{prefix} {json_type(members)} into Go value of type {_WHOLE}")
    found = {"apiVersion": "", "kind": ""}
    for name, value in members.items() if isinstance(members, dict) else members:
        if name in found and value is not None:
            if not isinstance(value, str):
                raise Refusal(f"{prefix} {json_type(value)} into Go struct field .{name} of type string")
            found[name] = clean(value)
    if found["apiVersion"].count("/") > 1:
        raise Refusal(unexpected(found["apiVersion"]))
    return found["apiVersion"].removeprefix("/"), found["kind"]


def summary(data: bytes) -> str:
    """The beginning of a body, as refusals show it."""
    if not data:
        return "<empty>"
    shown, more = data[:_SHOWN], " ..." if len(data) > _SHOWN else ""
    return (shown.decode(errors="replace") if data[:1] == b"{" else shown.hex()) + more


def unexpected(api_version: str) -> str:
    """It is nothing like a version."""
    return f"unexpected GroupVersion string: {api_version}"


def refused(why: str, own_version: str, own_kind: str, api_version: str, kind: str) -> errors.StatusError:
    """400 for a ``problem``."""
    if why.startswith(_DIFFERENT):
        return errors.bad_request(why)
    version = (own_version or api_version).rpartition("/")[2]
    return errors.bad_request(f"{own_kind or kind} in version {quoted(version)} cannot be handled as a {kind}: {why}")


def problem(own_version: str, own_kind: str, api_version: str, kind: str) -> str:
    """Why a body may not be used where this kind is expected; empty: it may. No expected version: any will do."""
    if (own_kind in ("", kind) and own_version in ("", api_version)) or not api_version:
        return ""
    own_version, own_kind = own_version or api_version, own_kind or kind
    if not versions.is_known(own_version, own_kind):
        return f"no kind {quoted(own_kind)} is registered for version {quoted(own_version)} in scheme {_SCHEME}"
    if own_kind != kind or versions.package(own_version, own_kind) != versions.package(api_version, kind):
        source, target = f"v1.{own_kind}", f"{versions.package(api_version, kind)}.{kind}"
        return f"converting ({source}) to ({target}): unknown conversion"
    return f"{_DIFFERENT} ({own_version}) does not match the expected API version ({api_version})"


def not_internal(own_kind: str, group: str) -> str:
    """Why an object without a version may not be used."""
    where = f"the internal version of group {quoted(group)}"
    return f"no kind {quoted(own_kind)} is registered for {where} in scheme {_SCHEME}"


def check_custom(own_version: str, own_kind: str, name: str, kind: Kind, data: bytes) -> None:
    """The same for a custom resource, whose body must say what it is.

    Raises:
        StatusError: 400 or 422, it does not, or it is another.
    """
    if not own_kind:
        text = data.decode(errors="replace")
        why = f"Object 'Kind' is missing in '{text}'"
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): {why} ({summary(data)})"
        )
    wrong = [
        invalid_text(field, own, f"must be {expected}")
        for field, own, expected in (("apiVersion", own_version, kind.api_version), ("kind", own_kind, kind.kind))
        if own != expected
    ]
    if wrong:
        raise errors.invalid(own_kind, kind.group, name, wrong)


def of_other_version(own_version: str, kind: Kind, warnings: list[str]) -> errors.StatusError:
    """400 for a custom resource that says it is of another version, whose fields nobody knows."""
    expected = f"does not match the expected API version ({kind.api_version})"
    refused = errors.bad_request(f"{_DIFFERENT} ({own_version}) {expected}")
    refused.headers = tuple(("Warning", f"299 - {quoted(one)}") for one in warnings)
    return refused
