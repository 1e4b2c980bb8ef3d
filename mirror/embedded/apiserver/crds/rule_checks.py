"""What is wrong with the rules of a definition. The words of kube-apiserver. Pure; ``schema_rules`` asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mirror.batch.violations import Violation, forbidden, invalid, invalid_text, not_supported, required
from mirror.embedded.apiserver.apimachinery.objects import encode
from mirror.embedded.apiserver.crds.rule_paths import field_path
from mirror.embedded.apiserver.crds.rule_values import Types
from mirror.embedded.apiserver.crds.rules import WORD, NotARule, compiled
from mirror.embedded.apiserver.crds.values import Schema

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_SHOWN = (
    ("Rule", "rule", ""),
    ("Message", "message", ""),
    ("MessageExpression", "messageExpression", ""),
    ("Reason", "reason", None),
    ("FieldPath", "fieldPath", ""),
    ("OptionalOldSelf", "optionalOldSelf", None),
)
_EXPRESSIONS = ("rule", "messageExpression")
_LARGEST_SIZE = 2**18
"""Characters of all expressions of a schema, which take a second or two to read."""
_ESCAPED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"}


class _Place(NamedTuple):
    field: str
    uncorrelated: str = ""
    """The list whose items nothing tells from one another, if the part is in one."""


def check_words(field: str, schema: Schema) -> Iterator[Violation]:
    """The form of all rules of a schema."""
    for place, part in _parts(_Place(field), schema):
        for position, said in enumerate(part.get(WORD) or ()):
            yield from _check_form(f"{place.field}.{WORD}[{position}]", said, part)


def check_rules(field: str, schema: Schema) -> Iterator[Violation]:
    """Whether all rules of a schema, which is structural and has no other faults, can be evaluated."""
    size = sum(
        len(str(said.get(name) or ""))
        for _, part in _parts(_Place(""), schema)
        for said in part.get(WORD) or ()
        for name in _EXPRESSIONS
    )
    if size > _LARGEST_SIZE:
        yield forbidden(field, f"its rules are {size} characters long; this server reads {_LARGEST_SIZE} at most")
        return
    known = Types()
    for place, part in _parts(_Place(field), schema):
        rules = part.get(WORD) or ()
        if not rules:
            continue
        type_ = known.of(part, is_root=part is schema)
        if type_ is None:
            words = "internal error: failed to retrieve type information for x-kubernetes-validations"
            yield Violation(f"{place.field}.{WORD}", "InternalError", f"Internal error: {words}")
            continue
        for position, said in enumerate(rules):
            at = f"{place.field}.{WORD}[{position}]"
            try:
                looks_back = compiled(said, type_, part).is_transition
            except NotARule as error:
                looks_back = error.looks_back
                yield invalid(f"{at}.{error.name}", shown(said), str(error))
            yield from _check_transition(at, said, place, looks_back=looks_back)


def shown(said: Mapping[str, Any]) -> str:
    """A rule as Go prints it."""
    text = encode({name: said.get(key, nothing) for name, key, nothing in _SHOWN}).decode()
    return text.translate(_ESCAPED)


def _parts(place: _Place, schema: Schema) -> Iterator[tuple[_Place, Schema]]:
    """A schema and all below it that are not in junctors; upstream looks at what is below first."""
    additional, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(additional, Mapping):
        yield from _parts(place._replace(field=f"{place.field}.additionalProperties"), additional)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _parts(place._replace(field=f"{place.field}.properties[{name}]"), inner)
    if isinstance(items, Mapping):
        is_told_apart = schema.get("x-kubernetes-list-type") == "map"
        uncorrelated = place.uncorrelated or ("" if is_told_apart else place.field)
        yield from _parts(_Place(f"{place.field}.items", uncorrelated), items)
    yield place, schema


def _check_form(at: str, said: Mapping[str, Any], schema: Schema) -> Iterator[Violation]:
    rule, message = str(said.get("rule") or ""), said.get("message") or ""
    if not rule.strip():
        yield required(f"{at}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid_text(f"{at}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield invalid_text(f"{at}.message", message, "must not contain line breaks")
    elif "\n" in rule.strip() and not message.strip():
        yield required(f"{at}.message", "message must be specified if rule contains line breaks")
    expression = said.get("messageExpression") or ""
    if expression and not expression.strip():
        yield required(f"{at}.messageExpression", "messageExpression must be non-empty if specified")
    reason = said.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{at}.reason", reason, _REASONS)
    path = said.get("fieldPath") or ""
    if path and not path.strip():
        yield invalid_text(f"{at}.fieldPath", path, "must be non-empty if specified")
    if "\n" in path:
        yield invalid_text(f"{at}.fieldPath", path, "must not contain line breaks")
    if path and field_path(path, schema) is None:
        yield invalid_text(f"{at}.fieldPath", path, "must be a valid path")


def _check_transition(at: str, said: Mapping[str, Any], place: _Place, *, looks_back: bool) -> Iterator[Violation]:
    if looks_back and place.uncorrelated:
        words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelated}"
        yield invalid_text(f"{at}.rule", said["rule"], words)
    if not looks_back and said.get("optionalOldSelf") is not None:
        value = "true" if said["optionalOldSelf"] else "false"
        yield invalid(f"{at}.optionalOldSelf", value, "may not be set if oldSelf is not used in rule")
