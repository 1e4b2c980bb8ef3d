"""Definitions that become stricter, and changes of the objects that were there before. Drawn from a seed.

A *place* is a field with a schema of all sorts in it. Its *sites* are the parts of this schema that may have rules:
some of them look back at what was there (``oldSelf``), others are only new, so that what was wrong before they came may
stay. So may what a new limit of the schema refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any, NamedTuple, TypeAlias

from e2e.rule_differential.expressions import FIELDS, INTEGER, SCHEMA, TEXT, Draw, Fields, expression, listed, value

Json: TypeAlias = dict[str, Any]

_PAIR: Json = {"type": "object", "required": ["k"], "properties": {"k": TEXT, "v": INTEGER}}
_LOOSE: Json = {
    **SCHEMA["properties"],
    "u": listed(TEXT),
    "q": listed(_PAIR),
    "y": listed({**_PAIR, "properties": {**_PAIR["properties"], "n": {**INTEGER, "default": 0}}}),
    "a": {"type": "object", "properties": {"i": INTEGER, "s": TEXT}},
    "x": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"i": INTEGER}},
    "e": INTEGER,
    "g": {"type": "object", "properties": {"i": INTEGER, "s": TEXT}},
}
_STRICT: Mapping[str, Json] = {
    "u": {"x-kubernetes-list-type": "set"},
    "q": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    "y": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"]},
    "a": {"x-kubernetes-map-type": "atomic"},
    "e": {"default": 5},
    "g": {"default": {}, "properties": {"i": {**INTEGER, "default": 2}, "s": TEXT}},
}


class _Site(NamedTuple):
    """A part of a place's schema, and what can be said of a value there."""

    path: tuple[str, ...]
    fields: Fields
    limits: Sequence[Json] = ()
    """What may be added to the schema; values of which some are refused."""
    blocking: Sequence[Json] = ()
    """The same; where these refuse a value, no rule of the object is asked."""


_OF_INT: Fields = {"int": ("self",)}
_OF_TEXT: Fields = {"string": ("self",), "int": ("size(self)",)}
_OF_INTS: Fields = {"ints": ("self",), "int": ("size(self)", "self[0]")}
_OF_TEXTS: Fields = {"texts": ("self",), "int": ("size(self)",), "string": ("self[0]",)}
_OF_OBJECT: Fields = {
    "int": ("self.i",), "string": ("self.s",), "bool": ("has(self.i)", "has(self.s)", "self == self"),
}  # fmt: skip
_OF_PAIR: Fields = {"int": ("self.v",), "string": ("self.k",), "bool": ("has(self.v)", "self == self")}
_OF_PAIRS: Fields = {
    "int": ("size(self)", "self[0].v"),
    "bool": ("self.all(x, has(x.v))", "self.exists(x, x.v > 1)", "self == self", "self[0] in self"),
}
_OF_MAP: Fields = {"int": ("size(self)", "self['a']"), "bool": ("'a' in self", "self.all(k, self[k] > 0)")}
_OF_ALL: Fields = {
    **FIELDS,
    "int": (*FIELDS["int"], "self.e", "self.g.i", "self.q[0].v", "size(self.q)", "self.a.i", "self.x.i"),
    "bool": (*FIELDS["bool"], "has(self.e)", "has(self.g.s)", "self.q == self.q", "self.u == self.u", "self == self"),
}
_LIMITS_OF_INT: Sequence[Json] = (
    {"minimum": 0}, {"maximum": 2}, {"multipleOf": 2}, {"not": {"minimum": 5}},
    {"anyOf": [{"maximum": 0}, {"minimum": 2}]}, {"allOf": [{"maximum": 2}, {"minimum": 0}]},
)  # fmt: skip
_LIMITS_OF_TEXT: Sequence[Json] = ({"minLength": 1}, {"pattern": "^[a-z]*$"}, {"oneOf": [{"minLength": 2}]})
_LIMITS_OF_LIST: Sequence[Json] = ({"minItems": 2},)
_LIMITS_OF_OBJECT: Sequence[Json] = (
    {"minProperties": 2},
    {"allOf": [{"properties": {"i": {"minimum": 1}}}]},
    {"not": {"required": ["i"]}},
)
_FEW: Sequence[Json] = ({"maxItems": 1},)
_SITES: Sequence[_Site] = (
    *(_Site((), _OF_ALL) for _ in range(5)),
    *(_Site((name,), _OF_INT, _LIMITS_OF_INT, ({"enum": [0, 1, 2]},)) for name in "ie"),
    *(_Site((name,), _OF_TEXT, _LIMITS_OF_TEXT, ({"maxLength": 1}, {"enum": ["a", ""]})) for name in "sn"),
    _Site(("b",), {"bool": ("self",)}),
    _Site(("d",), {"any": ("self",)}),
    _Site(("at",), {"time": ("self",)}),
    _Site(("l",), _OF_INTS, _LIMITS_OF_LIST, _FEW),
    _Site(("l", "items"), _OF_INT, _LIMITS_OF_INT),
    *(_Site((name,), _OF_TEXTS, _LIMITS_OF_LIST, _FEW) for name in "wu"),
    _Site(("u", "items"), _OF_TEXT, _LIMITS_OF_TEXT),
    _Site(("m",), _OF_MAP, ({"minProperties": 2},), ({"maxProperties": 1},)),
    _Site(("m", "additionalProperties"), _OF_INT, _LIMITS_OF_INT),
    *(_Site((name,), _OF_OBJECT, _LIMITS_OF_OBJECT, ({"required": ["s"]},)) for name in "oag"),
    _Site(("o", "properties", "i"), _OF_INT, _LIMITS_OF_INT),
    _Site(("g", "properties", "i"), _OF_INT, _LIMITS_OF_INT),
    _Site(("x",), {"int": ("self.i",), "bool": ("has(self.i)", "self == self")}, ({"minProperties": 2},)),
    *(_Site((name,), _OF_PAIRS, _LIMITS_OF_LIST, _FEW) for name in "rqy"),
    *(_Site((name, "items"), _OF_PAIR, ({"minProperties": 2},)) for name in "rqqyy"),
    *(_Site((name, "items", "properties", "v"), _OF_INT, _LIMITS_OF_INT) for name in "rqqyy"),
)  # fmt: skip
_SELF = re.compile(r"\bself\b")
_REASONS = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")


class Place(NamedTuple):
    """A field: its schema at first, and what it becomes."""

    loose: Json
    strict: Json
    shown: str
    """What became stricter, for people."""


def place(chance: Random, *, is_blocking: bool = False) -> Place:
    """One with some rules, and now and then a limit.

    Args:
        chance: what it is drawn from.
        is_blocking: it gets a limit that keeps rules from being asked where it is exceeded.
    """
    loose = {"type": "object", "properties": _LOOSE}
    strict = json.loads(json.dumps(loose))  # parts that are the same in one schema are not the same object in the copy
    for name, more in _STRICT.items():
        strict["properties"][name].update(deepcopy(more))
    shown = []
    for _ in range(chance.choice((1, 1, 2))):
        site = chance.choice(_SITES)
        added = rule(chance, site.fields)
        _at(strict, site.path).setdefault("x-kubernetes-validations", []).append(added)
        shown.append(f"{'.'.join(site.path)}: {added}")
    if is_blocking or chance.random() < 0.3:
        site = chance.choice([one for one in _SITES if (one.blocking if is_blocking else one.limits)])
        limit = chance.choice(site.blocking if is_blocking else site.limits)
        _at(strict, site.path).update(deepcopy(limit))
        shown.append(f"{'.'.join(site.path)}: {limit}")
    return Place(loose, strict, "; ".join(shown))


def rule(chance: Random, fields: Fields) -> Json:
    """A rule about a value; most look back at what it was."""
    now = expression(chance, depth=2, fields=fields)
    found: Json = {"rule": now}
    kind = chance.random()
    if 0.3 <= kind < 0.65:
        found["rule"] = chance.choice((_looking_back(chance, now), "self == oldSelf", f"self == oldSelf || {now}"))
    elif kind >= 0.65:
        found |= {"rule": _optionally(chance, now, fields), "optionalOldSelf": True}
    if chance.random() < 0.2:
        found["message"] = "it is not as it should be"
    if chance.random() < 0.15:
        found["messageExpression"] = chance.choice(("'%s now'.format([self])", "'%s before'.format([oldSelf])"))
    if chance.random() < 0.2:
        found["reason"] = chance.choice(_REASONS)
    return found


def _looking_back(chance: Random, text: str, before: str = "oldSelf") -> str:
    return _SELF.sub(lambda found: before if chance.random() < 0.5 else found.group(), text)


def _optionally(chance: Random, now: str, fields: Fields) -> str:
    other = expression(chance, depth=1, fields=fields)
    form = chance.choice(
        (
            "oldSelf.hasValue() ? {value} : {other}",
            "!oldSelf.hasValue() || {value}",
            "oldSelf.optMap(o, {inner}).orValue({other})",
            "oldSelf.orValue(self) == self",
            "oldSelf == optional.none() || oldSelf == optional.of(self) || {now}",
        )
    )
    with_value, inner = (_looking_back(chance, now, before) for before in ("oldSelf.value()", "o"))
    return form.format(value=with_value, inner=inner, other=other, now=now)


def _at(schema: Json, path: tuple[str, ...]) -> Json:
    found: Json = schema["properties"][path[0]] if path else schema
    for name in path[1:]:
        found = found[name]
    return found


def first(chance: Random, *, may_repeat: bool) -> Json:
    """A value of a place before it became strict.

    Args:
        chance: what it is drawn from.
        may_repeat: lists that become sets and maps may have items twice, which will be wrong.
    """
    draw = Draw(chance)
    more: Json = {
        "q": [{"k": key, "v": draw.number()} for key in draw.some(draw.text)],
        "y": [{"k": key, "v": draw.number(), "n": chance.choice((0, 1))} for key in draw.some(draw.text)],
        "a": {"i": draw.number(), "s": draw.text()},
        "x": {"i": draw.number(), "unknown": draw.number()},
        "e": draw.number(),
        "g": {"s": draw.text()},
    }
    found = value(chance) | {name: one for name, one in more.items() if chance.random() < 0.8}
    if not may_repeat:
        for name, keys in (("q", ("k",)), ("y", ("k", "n"))):
            items = found.get(name, [])
            found.update({name: list({tuple(one[key] for key in keys): one for one in items}.values())})
    elif found.get("q"):
        found["q"].append(deepcopy(found["q"][0]))
    return found


def changed(chance: Random, old: Json) -> Json:
    """What a user makes of it: often nothing, else something in some of its fields."""
    new = deepcopy(old)
    if chance.random() < 0.3:
        return new
    fresh = first(chance, may_repeat=False)
    for name in sorted(_LOOSE):
        if chance.random() < 0.7:
            continue
        if new.get(name) and isinstance(new[name], list | dict) and chance.random() < 0.7:
            _alter(chance, new[name])
        elif name in fresh:
            new[name] = fresh[name]
        else:
            new.pop(name, None)
    return new


def _alter(chance: Random, inner: list[Any] | Json) -> None:
    """Change a part of it, in place."""
    how = chance.random()
    if isinstance(inner, list) and 0.25 <= how < 0.5:
        chance.shuffle(inner)
        return
    members: Any = inner
    at = chance.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
    if how < 0.25:
        del members[at]
    elif isinstance(members[at], list | dict) and members[at]:
        _alter_item(chance, members[at])
    else:
        draw = Draw(chance)
        members[at] = draw.text() if isinstance(members[at], str) else draw.number()


def _alter_item(chance: Random, item: Any) -> None:
    if isinstance(item, dict) and "v" in item and chance.random() < 0.8:
        item["v"] = Draw(chance).number()
    else:
        _alter(chance, item)


def merge_patch(old: Any, new: Any) -> Any:
    """The merge patch that makes one of the other."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return deepcopy(new)
    gone = dict.fromkeys(name for name in old if name not in new)
    return gone | {name: merge_patch(old.get(name), one) for name, one in new.items() if old.get(name) != one}
