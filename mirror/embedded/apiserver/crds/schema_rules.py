"""What is wrong with the schema of a definition: it has to be structural. The words of kube-apiserver. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from mirror.batch.violations import Violation, forbidden, invalid, invalid_text, not_supported_text, required
from mirror.embedded.apiserver.crds import checking, values
from mirror.embedded.apiserver.crds.values import IS_OBJECT, KEEPS_UNKNOWN, Schema

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_INT_OR_STRING = "x-kubernetes-int-or-string"
_INT_OR_STRING_FORM = [{"type": "integer"}, {"type": "string"}]
_META = ("apiVersion", "kind", "metadata")
_ROOT, _ITEM, _FIELD = "the root", "specified array items", "specified object fields"
_UNSUPPORTED = (
    ("id", "id is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("$ref", "$ref is not supported"),
)
_NOT_STRUCTURAL = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("nullable", "must be false to be structural"),
    (KEEPS_UNKNOWN, "must be false to be structural"),
    (IS_OBJECT, "must be false to be structural"),
    (_INT_OR_STRING, "must be false to be structural"),
)
_ROOT_WITH_STATUS = frozenset(
    (
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        KEEPS_UNKNOWN,
        "x-kubernetes-validations",
    )
)


def check_schema(field: str, schema: Schema, *, has_status: bool) -> list[Violation]:
    """All that is wrong with the schema of a version."""
    found: list[Violation] = []
    if has_status and not _ROOT_WITH_STATUS.issuperset(schema):
        words = "these fields are not allowed at the root of the schema if the status subresource is enabled"
        found.append(invalid(field, json.dumps(sorted(set(schema) - _ROOT_WITH_STATUS)), words))
    if schema.get("nullable"):
        found.append(forbidden(f"{field}.nullable", "nullable cannot be true at the root"))
    structural = sorted(_check_structure(field, schema, _ROOT), key=lambda one: (one.field, one.message))
    structural = structural or list(_check_defaults(field, schema))
    return [*found, *structural, *_check_words(field, schema, is_root=True)]


def _check_structure(field: str, schema: Schema, level: str) -> Iterator[Violation]:
    """A type for each field that is named, and no more in junctors than what narrows it."""
    kind, properties = schema.get("type", ""), schema.get("properties") or {}
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and not isinstance(items, Mapping):
        yield required(f"{field}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _check_structure(f"{field}.items", items, _ITEM)
    for name, inner in properties.items():
        if level != _ROOT or name != "metadata":
            yield from _check_structure(f"{field}.properties[{name}]", inner, _FIELD)
    if additional is not None and level == _ROOT:
        yield forbidden(f"{field}.additionalProperties", "must not be used at the root")
    if isinstance(additional, Mapping):
        yield from _check_structure(f"{field}.additionalProperties", additional, _FIELD)
    if schema.get(_INT_OR_STRING):
        for name in (KEEPS_UNKNOWN, IS_OBJECT):
            if schema.get(name):
                yield invalid(f"{field}.{name}", "true", "must be false if x-kubernetes-int-or-string is true")
    yield from _check_junctors(field, schema)
    yield from _check_type(field, schema, kind, level)
    if level == _ROOT or schema.get(IS_OBJECT):
        for name in _META[:2]:
            inner = properties.get(name)
            if inner is not None and inner.get("type") != "string":
                yield invalid_text(f"{field}.properties[{name}].type", inner.get("type", ""), "must be string")
    if level == _ROOT and "metadata" in properties:
        yield from _check_metadata(f"{field}.properties[metadata]", properties["metadata"])


def _check_type(field: str, schema: Schema, kind: str, level: str) -> Iterator[Violation]:
    if schema.get(IS_OBJECT) and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid_text(f"{field}.type", kind, why) if kind else required(f"{field}.type", why)
    elif not kind and not schema.get(_INT_OR_STRING) and not schema.get(KEEPS_UNKNOWN):
        yield required(f"{field}.type", f"must not be empty {'at' if level == _ROOT else 'for'} {level}")
    if level == _ROOT and kind and kind != "object":
        yield invalid_text(f"{field}.type", kind, "must be object at the root")
    if schema.get(IS_OBJECT) and not schema.get(KEEPS_UNKNOWN) and not schema.get("properties"):
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield required(f"{field}.properties", why)


def _check_metadata(field: str, schema: Schema) -> Iterator[Violation]:
    if schema.get("type") != "object":
        yield invalid_text(f"{field}.type", schema.get("type", ""), "must be object")
    named = set(schema.get("properties") or ())
    if not set(schema) <= {"type", "properties", "description"} or not named <= {"name", "generateName"}:
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(field, why)


def _check_junctors(field: str, schema: Schema) -> Iterator[Violation]:
    for word in ("anyOf", "allOf", "oneOf"):
        for position, inner in enumerate(schema.get(word) or ()):
            is_form = schema.get(_INT_OR_STRING) and _is_int_or_string(schema, word, position)
            if not is_form:
                yield from _check_nested(f"{field}.{word}[{position}]", inner)
    if isinstance(schema.get("not"), Mapping):
        yield from _check_nested(f"{field}.not", schema["not"])
    pattern = schema.get("pattern")
    if pattern and checking.pattern_of(pattern) is None:
        yield invalid_text(
            f"{field}.pattern", pattern, f"must be a valid regular expression, but isn't: {_why(pattern)}"
        )


def _is_int_or_string(schema: Schema, word: str, position: int) -> bool:
    if word == "anyOf":
        return bool(schema["anyOf"] == _INT_OR_STRING_FORM)
    return word == "allOf" and position == 0 and bool(schema["allOf"][0].get("anyOf") == _INT_OR_STRING_FORM)


def _check_nested(field: str, schema: Schema) -> Iterator[Violation]:
    yield from _check_junctors(field, schema)
    for name, why in _NOT_STRUCTURAL:
        if schema.get(name):
            yield forbidden(f"{field}.{name}", why)
    if isinstance(schema.get("items"), Mapping):
        yield from _check_nested(f"{field}.items", schema["items"])
    for name, inner in (schema.get("properties") or {}).items():
        yield from _check_nested(f"{field}.properties[{name}]", inner)


def _why(pattern: str) -> str:
    """As Go says it, for the mistake that is made most."""
    if pattern.count("(") - pattern.count("\\(") > pattern.count(")") - pattern.count("\\)"):
        return f"error parsing regexp: missing closing ): `{pattern}`"
    return f"error parsing regexp: invalid or unsupported Perl syntax: `{pattern}`"


def _check_defaults(field: str, schema: Schema) -> Iterator[Violation]:
    """A default is a value that the schema accepts whole."""
    if "default" in schema:
        value: Any = deepcopy(schema["default"])
        gone = values.prune(value, schema)
        if gone:
            yield invalid(f"{field}.default", checking.shown(schema["default"]), "must not have unknown fields")
        else:
            yield from checking.check(value, schema, field=f"{field}.default")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _check_defaults(f"{field}.properties[{name}]", inner)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _check_defaults(f"{field}.{name}", schema[name])


def _check_words(field: str, schema: Schema, *, is_root: bool = False, reason: str = "") -> Iterator[Violation]:
    """Words of OpenAPI that definitions may not use, and those that contradict each other."""
    kind = schema.get("type", "")
    if kind == "null":
        yield forbidden(f"{field}.type", "type cannot be set to null, use nullable as an alternative")
    elif kind and kind not in _TYPES:
        yield not_supported_text(f"{field}.type", kind, _TYPES)
    if "default" in schema and reason:
        yield forbidden(f"{field}.default", f"must not be set {reason}")
    for name, why in _UNSUPPORTED:
        if schema.get(name) not in (None, "", {}):
            yield forbidden(f"{field}.{name}", why)
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{field}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{field}.uniqueItems", why)
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    if additional is not None and additional is not True and properties:
        yield forbidden(f"{field}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    yield from _check_list_words(field, schema)
    if isinstance(additional, Mapping):
        yield from _check_words(f"{field}.additionalProperties", additional, reason=reason)
    for name, inner in properties.items():
        inside = f"in top-level {name}" if is_root and name in _META else reason
        yield from _check_words(f"{field}.properties[{name}]", inner, reason=inside)
    if isinstance(schema.get("items"), Mapping):
        yield from _check_words(f"{field}.items", schema["items"], reason=reason)


def _check_list_words(field: str, schema: Schema) -> Iterator[Violation]:
    """How lists and maps are merged."""
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    map_type = schema.get("x-kubernetes-map-type")
    if list_type is not None and schema.get("type") != "array":
        why = "must be array if x-kubernetes-list-type is specified"
        kind = schema.get("type", "")
        yield invalid_text(f"{field}.type", kind, why) if kind else required(f"{field}.type", why)
    if list_type is not None and list_type not in ("atomic", "map", "set"):
        yield not_supported_text(f"{field}.x-kubernetes-list-type", list_type, ("atomic", "map", "set"))
    if keys and list_type != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        place = f"{field}.x-kubernetes-list-type"
        yield required(place, why) if list_type is None else invalid_text(place, list_type, why)
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield not_supported_text(f"{field}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    items = schema.get("items")
    if list_type != "map" or not isinstance(items, Mapping):
        return
    if not keys:
        yield required(f"{field}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    properties = items.get("properties") or {}
    for position, name in enumerate(keys):
        place = f"{field}.x-kubernetes-list-map-keys[{position}]"
        inner = properties.get(name)
        if inner is None:
            yield invalid_text(place, name, "entries must all be names of item properties")
        elif name not in (items.get("required") or ()) and "default" not in inner:
            why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield required(f"{field}.items.properties[{name}].default", why)
