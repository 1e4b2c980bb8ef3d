"""Bodies of requests: decoded, checked against the fields of their kind, refused in the words of kube-apiserver (E6).

``decode`` is what create and update begin with. What is decoded has only known fields of right types; whether the
values make sense is for the rules of the kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery import errors
from mirror.embedded.apiserver.apimachinery.decoding import names, protobuf, syntax, text, typed, yamls
from mirror.embedded.apiserver.apimachinery.decoding.protobuf import PROTOBUF_TYPE
from mirror.embedded.apiserver.apimachinery.decoding.text import NotJson, parse, plain
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.apimachinery.schemas import versions

Json: TypeAlias = dict[str, Any]
Validation: TypeAlias = Literal["Strict", "Warn", "Ignore"]

JSON_TYPE, YAML_TYPE = "application/json", "application/yaml"
_ACCEPTED = f"{JSON_TYPE}, {YAML_TYPE}, {PROTOBUF_TYPE}"
_YAML_ERRORS = "yaml: unmarshal errors:\n"
_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_PARAMETER = rf';\s*({_TOKEN})=(?:{_TOKEN}|"(?:[^"\\]|\\.)*")\s*'
_media_type = re.compile(rf"([^;]+)((?:{_PARAMETER})*);?\s*", re.ASCII).fullmatch
_parameters = re.compile(_PARAMETER, re.ASCII).findall


@dataclass(slots=True)
class Decoded:
    """What was in a body, and what the client should be told of it."""

    body: Json
    warnings: list[str] = field(default_factory=list)


def decode(data: bytes, content_type: str, kind: Kind, validation: Validation) -> Decoded:
    """A new or changed object of this kind; nulls are left in it.

    Raises:
        StatusError: 400 or 415, it cannot be read, or strict validation finds unknown or duplicate fields.
    """
    struct = kind.strategy.struct
    if not struct:
        return _decode_custom(data, content_type, kind, validation)
    return decode_as(data, content_type, kind.api_version, kind.kind, struct, validation)


def decode_as(
    data: bytes, content_type: str, api_version: str, kind: str, struct: str, validation: Validation
) -> Decoded:
    """The same for anything that has a struct in ``schemas``, such as options and reviews.

    ``api_version`` may be empty: then every one is accepted.
    """
    media_type = media_type_of(content_type)
    if media_type == PROTOBUF_TYPE:
        return _decode_protobuf(data, api_version, kind, struct)
    complaints: list[str] = []
    if media_type == YAML_TYPE:
        data, complaints = _from_yaml(data, kind)
    body = text.decode(data, struct)
    if body is None or (body.get("apiVersion") or api_version) != api_version or (body.get("kind") or kind) != kind:
        return _decode_slowly(data, api_version, kind, struct, validation, complaints)
    body["apiVersion"], body["kind"] = api_version, kind
    keep_reset(body)
    return Decoded(body, reported(complaints, api_version, kind, validation) if complaints else [])


def keep_reset(body: Json) -> None:
    """No managed fields means to forget them, which decoding would lose; one empty entry means it, too."""
    meta = body.get("metadata")
    if meta and meta.get("managedFields") == []:
        meta["managedFields"] = [{}]


def media_type_of(content_type: str) -> str:
    """JSON, YAML or protobuf; nothing at all is JSON.

    Raises:
        StatusError: 415, it is another one, or its parameters are none.
    """
    if content_type in (JSON_TYPE, ""):
        return JSON_TYPE
    found = _media_type(content_type)
    if found is None:
        raise _unknown_format()
    names = [name.lower() for name in _parameters(found[2])]
    media_type: str = found[1].strip().lower()
    if media_type not in (JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE) or len(set(names)) < len(names):
        raise _unknown_format()
    return media_type


def _unknown_format() -> errors.StatusError:
    return errors.unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {_ACCEPTED}"
    )


def unreadable(api_version: str, kind: str, why: str) -> errors.StatusError:
    """400: the version and the kind are known, the rest cannot be read."""
    version = api_version.rpartition("/")[2]
    return errors.bad_request(f"{kind} in version {quoted(version)} cannot be handled as a {kind}: {why}")


def reported(complaints: list[str], api_version: str, kind: str, validation: Validation) -> list[str]:
    """What a client is warned of.

    Raises:
        StatusError: 400, validation is strict.
    """
    if validation == "Ignore" or not complaints:
        return []
    if validation == "Strict":
        raise unreadable(api_version, kind, f"strict decoding error: {', '.join(complaints)}")
    return warnings_of(complaints)


def warnings_of(complaints: list[str]) -> list[str]:
    """Complaints as they are warned of: those of YAML, which have several lines, one by one."""
    return [
        line.strip()
        for one in complaints
        for line in (one.partition(_YAML_ERRORS)[2].split("\n") if _YAML_ERRORS in one else [one])
    ]


def parsed(data: bytes, kind: str) -> Any:
    """What was written, as ``text`` has it.

    Raises:
        StatusError: 400, it is no JSON.
    """
    try:
        return parse(data)
    except NotJson:
        why = syntax.complaint(data) or "invalid character '[' exceeded max depth"
        raise _unrecognized(data, kind, f"couldn't get version/kind; json parse error: {why}") from None


def _from_yaml(data: bytes, kind: str) -> tuple[bytes, list[str]]:
    """As JSON. What does not say what it is is refused here, where the text is still known."""
    try:
        found, complaints = yamls.to_json(data)
        names.interpret(msgspec.json.decode(found))
    except (yamls.NotYaml, typed.Refusal) as error:
        raise _unrecognized(data, kind, str(error)) from error
    return found, complaints


def _decode_slowly(
    data: bytes, api_version: str, kind: str, struct: str, validation: Validation, complaints: list[str]
) -> Decoded:
    members = parsed(data, kind)
    try:
        own_version, own_kind = names.interpret(members)
    except typed.Refusal as refusal:
        raise _unrecognized(data, kind, str(refusal)) from None
    why = names.problem(own_version, own_kind, api_version, kind)
    found, own_version, own_kind = struct, own_version or api_version, own_kind or kind
    if why:
        found = versions.struct_of(own_version, own_kind)
        if not found:
            raise names.refused(why, own_version, own_kind, api_version, kind)
    reading = typed.Reading()
    try:
        body = reading.body(members, found)
    except typed.Refusal as refusal:
        raise names.refused(str(refusal), own_version, own_kind, api_version, kind) from None
    if why:
        raise names.refused(why, own_version, own_kind, api_version, kind)
    warnings = reported([*complaints, *reading.complaints], own_version, kind, validation)
    body = {**body, "apiVersion": own_version, "kind": kind}
    keep_reset(body)
    return Decoded(body, warnings)


def _decode_protobuf(data: bytes, api_version: str, kind: str, struct: str) -> Decoded:
    """An object that a typed Go client has sent."""
    try:
        own_version, own_kind, raw = protobuf.envelope(data)
        why = names.problem(own_version, own_kind, api_version, kind)
        if why:
            raise names.refused(why, own_version, own_kind, api_version, kind)
        body = protobuf.body(raw, struct)
    except protobuf.NotProtobuf as error:
        raise _unrecognized(data, kind, str(error)) from error
    body["apiVersion"], body["kind"] = own_version or api_version, kind
    return Decoded(body)


def _decode_custom(data: bytes, content_type: str, kind: Kind, validation: Validation) -> Decoded:
    """An object whose kind keeps its own schema: metadata has the fields that all have, the rest is for the kind."""
    complaints: list[str] = []
    media_type = media_type_of(content_type)
    if media_type == PROTOBUF_TYPE:
        raise _unknown_format()
    if media_type == YAML_TYPE:
        data, complaints = _from_yaml(data, kind.kind)
    body = text.decode_untyped(data)
    members = None
    if body is None:
        members = parsed(data, kind.kind)
        complaints += typed.duplicates(members)
        body = plain(members)
    try:
        own_version, own_kind = names.interpret(body if members is None else members)
    except typed.Refusal as refusal:
        raise _unrecognized(data, kind.kind, str(refusal)) from None
    if not isinstance(body, dict):
        body = {}
    try:
        metadata, unknown = custom_metadata(body)
    except typed.Refusal as refusal:
        raise unreadable(kind.api_version, kind.kind, str(refusal)) from None
    name = metadata.get("name") or ""
    if own_kind and own_version != kind.api_version:
        if own_version:
            complaints += [f"unknown field {quoted(one)}" for one in body if one not in _OF_OBJECTS]
        warnings = reported(complaints, kind.api_version, kind.kind, validation)
        raise names.of_other_version(own_version, kind, warnings)
    names.check_custom(own_version, own_kind, name, kind, data)
    body["metadata"] = metadata
    unknown += unknown_fields(body, kind)
    complaints += [f"unknown field {quoted(path)}" for path in unknown]
    return Decoded(body, reported(complaints, kind.api_version, kind.kind, validation))


_OF_OBJECTS = ("apiVersion", "kind", "metadata")


def custom_metadata(body: Json) -> tuple[Json, list[str]]:
    """The metadata of a custom resource with the fields that every object's has, and the paths of others.

    Raises:
        Refusal: something in it has a wrong type.
    """
    found = body.get("metadata")
    if found is None:
        return {}, []
    reading = typed.Reading()
    # A map in upstream's hands, which it writes down, by name, to read it: the first thing that is wrong is told.
    metadata = reading.body(typed.unplain(found), "ObjectMeta")
    unknown = [one.partition('"')[2][:-1] for one in reading.complaints if one.startswith("unknown")]
    keep_reset({"metadata": metadata})
    return canonical(metadata, "ObjectMeta"), [f"metadata.{path}" for path in unknown]


def unknown_fields(body: Json, kind: Kind) -> list[str]:
    """The paths of fields that the kind's own schema does not have; they are gone then."""
    prune = getattr(kind.strategy, "prune", None)
    return [] if prune is None else list(prune(body))


def _unrecognized(data: bytes, kind: str, why: str) -> errors.StatusError:
    return errors.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {why} ({names.summary(data)})"
    )
