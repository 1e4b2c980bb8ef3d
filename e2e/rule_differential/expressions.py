"""Random expressions over one schema: mostly of right types, now and then not. Drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]
TEXT: Json = {"type": "string", "maxLength": 12}
INTEGER: Json = {"type": "integer"}


def listed(items: Json, **more: object) -> Json:
    """The schema of a short list."""
    return {"type": "array", "maxItems": 4, "items": items, **more}


SCHEMA: Json = {
    "type": "object",
    "properties": {
        "i": INTEGER,
        "j": INTEGER,
        "f": {"type": "number"},
        "b": {"type": "boolean"},
        "s": TEXT,
        "t": TEXT,
        "l": listed(INTEGER),
        "w": listed(TEXT),
        "m": {"type": "object", "maxProperties": 4, "additionalProperties": INTEGER},
        "o": {"type": "object", "properties": {"i": INTEGER, "s": TEXT}},
        "d": {"x-kubernetes-int-or-string": True, "maxLength": 12},
        "at": {"type": "string", "format": "date-time"},
        "n": {"type": "string", "nullable": True, "maxLength": 12},
        "r": listed({"type": "object", "properties": {"k": TEXT, "v": INTEGER}}),
        "u": listed(TEXT, **{"x-kubernetes-list-type": "set"}),
    },
}
_LITERALS: Mapping[str, Sequence[str]] = {
    "int": ("0", "1", "2", "-3", "7", "9223372036854775807"),
    "double": ("0.5", "1.0", "-2.5"),
    "string": ("''", "'a'", "'b,c'", "'Ab'", "'10'", "'1Gi'", "'é'"),
    "bool": ("true", "false"),
    "ints": ("[1, 2]", "[0]", "[3, 1, 2]"),
    "texts": ("['a', 'b']", "['']", "['b,c']"),
    "any": ("1", "'a'", "25", "'50%'"),
    "time": ("timestamp('2026-01-01T00:00:00Z')",),
    "length": ("duration('1h')", "duration('90s')"),
}
FIELDS: Mapping[str, Sequence[str]] = {
    "int": ("self.i", "self.j", "self.o.i", "self.l[0]", "self.m['a']", "self.r[0].v", "size(self.l)"),
    "double": ("self.f",),
    "string": ("self.s", "self.t", "self.o.s", "self.w[0]", "self.r[0].k", "self.n"),
    "bool": ("self.b", "has(self.o)", "has(self.o.s)", "has(self.d)", "has(self.n)"),
    "ints": ("self.l",),
    "texts": ("self.w", "self.u"),
    "any": ("self.d",),
    "time": ("self.at",),
    "length": ("(self.at - self.at)",),
}
_FORMS: Mapping[str, Sequence[str]] = {
    "bool": (
        "({bool} && {bool})", "({bool} || {bool})", "!{bool}", "({bool} ? {bool} : {bool})", "({int} < {int})",
        "({int} == {int})", "({int} >= {double})", "({string} == {string})", "({string} != {string})",
        "({string} < {string})", "({string} in {texts})", "({int} in {ints})", "({ints} == {ints})",
        "({texts} == {texts})", "({any} == {int})", "({any} == {string})", "({any} < {int})",
        "{ints}.all(x, x > {int})",
        "{ints}.exists(x, x == {int})", "{ints}.exists_one(x, x < {int})", "{texts}.all(x, x.startsWith({string}))",
        "{texts}.exists(x, x.contains({string}))", "self.m.all(k, self.m[k] > {int})",
        "self.m.exists(k, v, v == {int})",
        "{string}.startsWith({string})", "{string}.endsWith({string})", "{string}.contains({string})",
        "{string}.matches('^[a-z]+$')", "{ints}.isSorted()", "{texts}.isSorted()", "isQuantity({string})",
        "isIP({string})", "isURL({string})", "sets.contains({texts}, {texts})", "sets.intersects({ints}, {ints})",
        "sets.equivalent({texts}, {texts})", "({time} > {time})", "({length} < {length})", "({string} in self.m)",
        "format.dns1123Label().validate({string}).hasValue()", "(type({any}) == int)", "(type({any}) == string)",
        "self.r.all(x, has(x.k) && x.k == {string})", "self.r.exists(x, x.v > {int})", "(self.o == self.o)",
        "quantity({string}).isGreaterThan(quantity({string}))", "isSemver({string})", "self.?o.?s.hasValue()",
        "(self.n == null)", "({double} == {double})", "isCIDR({string})",
    ),
    "int": (
        "({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})", "-{int}",
        "size({string})", "size({ints})", "{string}.indexOf({string})", "{string}.lastIndexOf({string})",
        "{ints}.sum()", "{ints}.min()", "{ints}.max()", "{ints}.indexOf({int})", "int({double})", "int({string})",
        "({bool} ? {int} : {int})", "{ints}.map(x, x + {int}).sum()", "{ints}.filter(x, x > {int}).size()",
        "{ints}[{int}]", "self.?i.orValue({int})", "self.?o.?i.orValue({int})", "{time}.getFullYear()",
        "{time}.getDayOfWeek()", "{length}.getMinutes()", "self.m[{string}]", "{texts}.size()",
        "self.r.map(x, x.v).sum()",
    ),
    "double": ("({double} + {double})", "({double} * {double})", "({double} / {double})", "double({int})", "-{double}"),
    "string": (
        "({string} + {string})", "{string}.lowerAscii()", "{string}.upperAscii()", "{string}.trim()", "string({int})",
        "string({double})", "string({bool})", "{string}.replace({string}, 'z')", "{string}.substring({int})",
        "{string}.charAt({int})", "{texts}[{int}]", "({bool} ? {string} : {string})", "{string}.find('[a-z]+')",
        "self.?s.orValue({string})", "'%d-%s'.format([{int}, {string}])", "'%s'.format([{ints}])", "string({time})",
        "string({length})", "'%.2f'.format([{double}])", "strings.quote({string})", "'%s'.format([self.m])",
    ),
    "ints": (
        "({ints} + {ints})", "{ints}.filter(x, x > {int})", "{ints}.map(x, x * {int})", "{texts}.map(x, size(x))",
        "{ints}.map(x, x > 0, x)", "[{int}, {int}]", "{ints}.sort()", "{ints}.distinct()", "{ints}.reverse()",
        "{ints}.slice(0, 1)", "self.m.map(k, self.m[k])", "[{ints}, {ints}].flatten()",
    ),
    "texts": (
        "({texts} + {texts})", "{texts}.filter(x, x != {string})", "{texts}.map(x, x + {string})", "[{string}]",
        "{texts}.sort()", "{texts}.distinct()", "self.r.map(x, x.k)",
    ),
    "any": ("({bool} ? {any} : {any})", "dyn({int})", "dyn({string})"),
    "time": ("({time} + {length})", "({time} - {length})"),
    "length": ("({length} + {length})", "({time} - {time})", "duration({string})"),
}  # fmt: skip
_FORMS_OF_ANY = {name: tuple(one for one in forms if "self" not in one) for name, forms in _FORMS.items()}
"""Those that speak of no field of the schema."""
_ODD_CHANCE = 0.02
"""That something of another type stands somewhere."""
_TYPES = tuple(_FORMS)


Fields: TypeAlias = Mapping[str, Sequence[str]]
"""What can be said of a value, by types."""


def expression(chance: Random, wanted: str = "bool", depth: int = 3, *, fields: Fields = FIELDS) -> str:
    """An expression of a type, over what ``fields`` says of the value."""
    if chance.random() < _ODD_CHANCE:
        wanted = chance.choice(_TYPES)
    if depth == 0 or chance.random() < 0.15:
        known = fields.get(wanted, ()) if chance.random() < 0.7 else ()
        return chance.choice(known or _LITERALS[wanted])
    form = chance.choice((_FORMS if fields is FIELDS else _FORMS_OF_ANY)[wanted])
    parts: list[str] = []
    while "{" in form:
        before, _, rest = form.partition("{")
        name, _, form = rest.partition("}")
        parts += [before, expression(chance, name, depth - 1, fields=fields)]
    return "".join([*parts, form])


class Draw:
    """Values by chance."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def text(self) -> str:
        """Often of some format that rules know."""
        return self._chance.choice(("", "a", "b,c", "Ab", "10", "1Gi", "é", "10.0.0.1", "x-y", "1.2.3"))

    def number(self) -> int:
        """Small, or at an end of 64 bits."""
        return self._chance.choice((0, 1, 2, -3, 7, 2**63 - 1, -(2**63)))

    def some(self, draw: Callable[[], T]) -> list[T]:
        """Up to three."""
        return [draw() for _ in range(self._chance.randrange(4))]

    def pair(self) -> Json:
        """An item of ``r``."""
        return {"k": self.text(), "v": self.number()} if self._chance.random() < 0.8 else {"v": self.number()}


def value(chance: Random) -> Json:
    """An object of the schema; fields are missing now and then."""
    draw = Draw(chance)
    inner: Json = {"i": draw.number(), "s": draw.text()}
    whole: Json = {
        "i": draw.number(),
        "j": draw.number(),
        "f": chance.choice((0.5, 1, -2.5, 1e10)),
        "b": chance.random() < 0.5,
        "s": draw.text(),
        "t": draw.text(),
        "l": draw.some(draw.number),
        "w": draw.some(draw.text),
        "m": {name: draw.number() for name in draw.some(lambda: chance.choice("abc"))},
        "o": {name: one for name, one in inner.items() if chance.random() < 0.7},
        "d": chance.choice((1, 25, "a", "50%")),
        "at": chance.choice(("2025-12-31T23:00:00Z", "2026-06-15T12:30:15.5+02:00")),
        "n": chance.choice((None, "a", "")),
        "r": [draw.pair(), draw.pair()],
        "u": list(dict.fromkeys(draw.some(draw.text))),
    }
    return {name: one for name, one in whole.items() if chance.random() < 0.85}
