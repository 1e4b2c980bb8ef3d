"""What is wrong with the schema of a definition: it has to be structural. The words of kube-apiserver. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from mirror.batch.violations import Violation, forbidden, invalid, invalid_text, required
from mirror.embedded.apiserver.apimachinery.objects import encode
from mirror.embedded.apiserver.apimachinery.patterns import BadPattern, pattern_of
from mirror.embedded.apiserver.crds import checking, rule_checks, rule_evaluation, rules, structural_checks, values
from mirror.embedded.apiserver.crds.forbidden_keywords import (
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    META,
    check_words,
    is_beyond_structure,
)
from mirror.embedded.apiserver.crds.values import IS_OBJECT, KEEPS_UNKNOWN, Schema

_INT_OR_STRING = "x-kubernetes-int-or-string"
_INT_OR_STRING_FORM = [{"type": "integer"}, {"type": "string"}]
_ROOT, _ITEM, _FIELD = "the root", "specified array items", "specified object fields"
_NOT_STRUCTURAL = (
    *((name, "empty") for name in ("type", "title", "description", LIST_KEYS, "x-kubernetes-validations")),
    *((name, "undefined") for name in ("default", LIST_TYPE, MAP_TYPE)),
    *((name, "false") for name in ("nullable", KEEPS_UNKNOWN, IS_OBJECT, _INT_OR_STRING)),
)
"""Words that say what something is, which what only narrows it may not; and what they have to be there."""
_ROOT_WITH_STATUS = (
    *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items"),
    *("properties", "externalDocs", "example", KEEPS_UNKNOWN, "x-kubernetes-validations"),
)
_TOLD = (
    " ".join(name[:1].upper() + name[1:] for name in _ROOT_WITH_STATUS[:-2]) + " XPreserveUnknownFields XValidations"
)


def check_schema(field: str, schema: Schema, *, has_status: bool) -> list[Violation]:
    """All that is wrong with the schema of a version."""
    found: list[Violation] = list(_check_root_with_status(field, schema)) if has_status else []
    if schema.get("nullable"):
        found.append(forbidden(f"{field}.nullable", "nullable cannot be true at the root"))
    words = [*check_words(field, schema), *rule_checks.check_words(field, schema)]
    if is_beyond_structure(schema):
        return [*found, *words]
    structural = sorted(_check_structure(field, schema, _ROOT), key=lambda one: (one.field, one.message))
    structural = structural or _check_defaults(field, schema)
    if structural or words:
        return [*found, *structural, *words]
    return [*found, *rule_checks.check_rules(field, schema)]


def _check_root_with_status(field: str, schema: Schema) -> Iterator[Violation]:
    kind = schema.get("type", "")
    if kind and kind != "object":
        why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid_text(f"{field}.type", kind, why)
    if not set(_ROOT_WITH_STATUS).issuperset(schema):
        why = f"only [{_TOLD}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield invalid(field, encode(schema).decode(), why)


def _check_structure(field: str, schema: Schema, level: str) -> Iterator[Violation]:
    """A type for each field that is named, and no more in junctors than what narrows it."""
    kind, properties = schema.get("type", ""), schema.get("properties") or {}
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and not isinstance(items, Mapping):
        yield required(f"{field}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _check_structure(f"{field}.items", items, _ITEM)
    for name, inner in properties.items():
        yield from _check_structure(f"{field}.properties[{name}]", inner, _FIELD)
    if additional is not None and level == _ROOT:
        yield forbidden(f"{field}.additionalProperties", "must not be used at the root")
    elif additional is not None and schema.get(IS_OBJECT):
        yield forbidden(f"{field}.additionalProperties", f"must not be used if {IS_OBJECT} is set")
    if isinstance(additional, Mapping):
        yield from _check_structure(f"{field}.additionalProperties", additional, _FIELD)
    if schema.get(_INT_OR_STRING):
        for name in (KEEPS_UNKNOWN, IS_OBJECT):
            if schema.get(name):
                yield invalid(f"{field}.{name}", "true", "must be false if x-kubernetes-int-or-string is true")
    yield from _check_junctors(field, schema)
    yield from _check_type(field, schema, kind, level)
    if level == _ROOT or schema.get(IS_OBJECT):
        for name in META[:2]:
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
    named, said = set(schema.get("properties") or ()), {name for name, value in schema.items() if value}
    if not said <= {"type", "properties", "default"} or not named <= {"name", "generateName"}:
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
    if schema.get("pattern"):
        yield from _check_pattern(f"{field}.pattern", schema["pattern"])


def _is_int_or_string(schema: Schema, word: str, position: int) -> bool:
    if word == "anyOf":
        return bool(schema["anyOf"] == _INT_OR_STRING_FORM)
    return word == "allOf" and position == 0 and bool(schema["allOf"][0].get("anyOf") == _INT_OR_STRING_FORM)


def _check_nested(field: str, schema: Schema) -> Iterator[Violation]:
    yield from _check_junctors(field, schema)
    for name, wanted in _NOT_STRUCTURAL:
        value = schema.get(name)
        if value is not None if wanted == "undefined" else value:
            yield forbidden(f"{field}.{name}", f"must be {wanted} to be structural")
    if schema.get("additionalProperties") not in (None, False):
        yield forbidden(f"{field}.additionalProperties", "must be undefined to be structural")
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden(f"{field}.properties[metadata]", "must not be specified in a nested context")
    if isinstance(schema.get("items"), Mapping):
        yield from _check_nested(f"{field}.items", schema["items"])
    for name, inner in (schema.get("properties") or {}).items():
        yield from _check_nested(f"{field}.properties[{name}]", inner)


def _check_pattern(field: str, pattern: str) -> Iterator[Violation]:
    try:
        pattern_of(pattern)
    except BadPattern as bad:
        yield invalid_text(field, pattern, f"must be a valid regular expression, but isn't: {bad}")


def _check_defaults(field: str, schema: Schema) -> list[Violation]:
    """A default is a value that the schema accepts whole, rules included. Below additionalProperties it is nobody's."""
    found: list[Violation] = []
    ruled = []
    for at, inner, is_root in _defaulted(field, schema):
        wrong = list(_check_default(at, inner, is_root=is_root))
        found += wrong
        part = rules.read(inner, is_root=is_root) if not wrong and rules.count(inner) else None
        if part is not None:
            ruled.append((f"{at}.default", part, inner["default"]))
    return [*found, *rule_evaluation.ask_about_defaults(ruled)]


def _defaulted(field: str, schema: Schema, *, is_root: bool = True) -> Iterator[tuple[str, Schema, bool]]:
    """All parts that have a default, and whether it is that of the whole object."""
    if schema.get("default") is not None:
        yield field, schema, is_root
    for name, inner in (schema.get("properties") or {}).items():
        yield from _defaulted(f"{field}.properties[{name}]", inner, is_root=False)
    if isinstance(schema.get("items"), Mapping):
        yield from _defaulted(f"{field}.items", schema["items"], is_root=False)


def _check_default(field: str, schema: Schema, *, is_root: bool) -> Iterator[Violation]:
    value: Any = deepcopy(schema["default"])
    gone = values.prune(value, schema)
    if gone:
        yield invalid(f"{field}.default", checking.shown(schema["default"]), "must not have unknown fields")
    yield from checking.check(schema["default"], schema, field=f"{field}.default")
    if is_root and isinstance(value, dict):
        yield from (required(f"{field}.default.{one}") for one in META[:2] if not value.get(one))
    yield from (required(one.field) for one in structural_checks.check_embedded(value, schema, f"{field}.default"))
