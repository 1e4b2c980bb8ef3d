"""Words of OpenAPI that a definition may not use, or that contradict each other. The words of kube-apiserver. Pure.

``schema_rules`` asks; what makes a schema structural is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mirror.batch.quoting import json_text, json_texts
from mirror.batch.violations import Violation, forbidden, invalid, invalid_text, not_supported_text, required
from mirror.embedded.apiserver.crds.values import IS_OBJECT, KEEPS_UNKNOWN, Schema

META = ("apiVersion", "kind", "metadata")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES, _MAP_TYPES = ("atomic", "set", "map"), ("atomic", "granular")
LIST_TYPE, LIST_KEYS, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
_FORMATS: Mapping[str, Sequence[str]] = {
    "string": (
        *("bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5"),
        *("isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password"),
        *("date", "duration", "datetime", "k8sshortname", "k8slongname"),
    ),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}
"""Without dashes, which nobody minds."""
_UNSUPPORTED = (
    ("id", "id is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("$ref", "$ref is not supported"),
)


class _Where(NamedTuple):
    """What holds at a place of a schema."""

    no_default: str = ""
    """Why no default may be there."""
    is_meta: bool = False
    """Whether it is metadata, or a part of it."""


def check_words(field: str, schema: Schema) -> Iterator[Violation]:
    """The whole schema of a version."""
    yield from _check(field, schema, _Where(), is_root=True)


def is_beyond_structure(schema: object) -> bool:
    """Whether a word is somewhere in it that kube-apiserver cannot read as structural; it says nothing more then."""
    if not isinstance(schema, Mapping):
        return False
    if schema.get(KEEPS_UNKNOWN) is False or any(schema.get(name) for name, _ in _UNSUPPORTED):
        return True
    return any(is_beyond_structure(inner) for _, inner in _inner(schema))


def has_defaults(schema: object) -> bool:
    """Whether a default is anywhere in it."""
    if not isinstance(schema, Mapping):
        return False
    return schema.get("default") is not None or any(has_defaults(inner) for _, inner in _inner(schema))


def unrecognized_formats(schema: object) -> Iterator[str]:
    """Formats that mean nothing."""
    if isinstance(schema, Mapping):
        format_ = schema.get("format") or ""
        if format_ and format_.replace("-", "") not in _FORMATS.get(schema.get("type", ""), _FORMATS["string"]):
            yield format_
        for _, inner in _inner(schema):
            yield from unrecognized_formats(inner)


def _inner(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """All schemas in a schema but those of its properties, and where they are."""
    for name in ("additionalProperties", "not", "items"):
        if isinstance(schema.get(name), Mapping):
            yield name, schema[name]
    for word in ("allOf", "oneOf", "anyOf"):
        for position, one in enumerate(schema.get(word) or ()):
            yield f"{word}[{position}]", one
    for name, one in (schema.get("properties") or {}).items():
        yield f"properties[{name}]", one


def _check(field: str, schema: Schema, where: _Where, *, is_root: bool = False) -> Iterator[Violation]:
    kind, properties = schema.get("type", ""), schema.get("properties") or {}
    if kind and kind not in _TYPES:
        yield not_supported_text(f"{field}.type", kind, _TYPES)
    yield from _check_forbidden(field, schema, where)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{field}.uniqueItems", why)
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and properties:
        yield forbidden(f"{field}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    for place, inner in _inner(schema):
        below = where
        if place == "additionalProperties" and where.is_meta:
            below = where._replace(no_default="inside additionalProperties applying to object metadata")
        name = place[len("properties[") : -1]
        if place.startswith("properties[") and name in META and (is_root or schema.get(IS_OBJECT)):
            below = where._replace(is_meta=True)
            if is_root:
                below = below._replace(no_default=f"in top-level {name}")
        yield from _check(f"{field}.{place}", inner, below)
    if schema.get(KEEPS_UNKNOWN) is False:
        yield invalid(f"{field}.{KEEPS_UNKNOWN}", "false", "must be true or undefined")
    yield from _check_map_type(field, schema)
    yield from _check_list_type(field, schema)
    yield from _check_items_of_sets_and_maps(field, schema)


def _check_forbidden(field: str, schema: Schema, where: _Where) -> Iterator[Violation]:
    if schema.get("default") is not None and where.no_default:
        yield forbidden(f"{field}.default", f"must not be set {where.no_default}")
    for name, why in _UNSUPPORTED:
        if schema.get(name) not in (None, "", {}):
            yield forbidden(f"{field}.{name}", why)
    if schema.get("type") == "null":
        yield forbidden(f"{field}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{field}.items", "items must be a schema object and not an array")
    if where.is_meta and schema.get(IS_OBJECT):
        yield forbidden(f"{field}.{IS_OBJECT}", "must not be used inside of resource meta")


def _check_map_type(field: str, schema: Schema) -> Iterator[Violation]:
    map_type = schema.get(MAP_TYPE)
    if map_type is None:
        return
    yield from _check_is(field, schema, "object", MAP_TYPE)
    if map_type not in _MAP_TYPES:
        yield not_supported_text(f"{field}.{MAP_TYPE}", map_type, _MAP_TYPES)


def _check_is(field: str, schema: Schema, wanted: str, because: str) -> Iterator[Violation]:
    kind = schema.get("type", "")
    if kind != wanted:
        why = f"must be {wanted} if {because} is specified"
        yield invalid_text(f"{field}.type", kind, why) if kind else required(f"{field}.type", why)


def _check_list_type(field: str, schema: Schema) -> Iterator[Violation]:
    list_type, keys = schema.get(LIST_TYPE), schema.get(LIST_KEYS) or ()
    if list_type is not None:
        yield from _check_is(field, schema, "array", LIST_TYPE)
        if list_type == "set" and schema.get("type") == "array":
            yield from _check_items_of_set(field, schema.get("items"))
        if list_type not in _LIST_TYPES:
            yield not_supported_text(f"{field}.{LIST_TYPE}", list_type, _LIST_TYPES)
    if keys and list_type != "map":
        place, why = f"{field}.{LIST_TYPE}", f"must be map if {LIST_KEYS} is non-empty"
        yield required(place, why) if list_type is None else invalid_text(place, list_type, why)
    if list_type == "map":
        yield from _check_list_of_maps(field, schema, keys)


def _check_items_of_set(field: str, items: object) -> Iterator[Violation]:
    """What is compared as a whole is written as a whole; upstream shows the same word of lists and maps."""
    if not isinstance(items, Mapping):
        return
    list_type, map_type = items.get(LIST_TYPE), items.get(MAP_TYPE)
    # A list that says nothing is atomic already.
    is_list = items.get("type") == "array" and list_type not in (None, "atomic")
    if is_list or (items.get("type") == "object" and map_type != "atomic"):
        why = f"must be atomic as item of a list with {LIST_TYPE}=set"
        shown = "null" if list_type is None else json_text(list_type)
        yield invalid(f"{field}.items.{LIST_TYPE if is_list else MAP_TYPE}", shown, why)


def _check_list_of_maps(field: str, schema: Schema, keys: Sequence[str]) -> Iterator[Violation]:
    items = schema.get("items")
    if not keys:
        yield required(f"{field}.{LIST_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    if items is None:
        yield required(f"{field}.items", f"must have a schema if {LIST_TYPE} is map")
    if not isinstance(items, Mapping):
        return
    kind = items.get("type", "")
    if kind != "object":
        yield invalid_text(f"{field}.items.type", kind, f"must be object if parent array's {LIST_TYPE} is map")
        return
    shown, properties = json_texts(keys), items.get("properties") or {}
    seen: set[str] = set()
    for name in keys:
        if name not in properties:
            yield invalid(f"{field}.{LIST_KEYS}", shown, "entries must all be names of item properties")
        elif properties[name].get("type") in ("array", "object"):
            why = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield invalid_text(f"{field}.items.properties[{name}].type", kind, why)
        if name in seen:
            yield invalid(f"{field}.{LIST_KEYS}", shown, "must not contain duplicate entries")
        seen.add(name)


def _check_items_of_sets_and_maps(field: str, schema: Schema) -> Iterator[Violation]:
    items, list_type = schema.get("items"), schema.get(LIST_TYPE)
    if not isinstance(items, Mapping) or list_type not in ("set", "map"):
        return
    if items.get("nullable"):
        yield forbidden(f"{field}.items.nullable", f"cannot be nullable when {LIST_TYPE} is {list_type}")
    if list_type == "set":
        return
    for name in schema.get(LIST_KEYS) or ():
        inner, place = (items.get("properties") or {}).get(name), f"{field}.items.properties[{name}]"
        if inner is None:
            continue
        because = f"this property is in {LIST_KEYS}, so it"
        if name not in (items.get("required") or ()) and inner.get("default") is None:
            yield required(f"{place}.default", f"{because} must have a default or be a required property")
        if inner.get("nullable"):
            yield forbidden(f"{place}.nullable", f"{because} cannot be nullable")
