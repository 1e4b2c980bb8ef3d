"""Expressions in CEL: what they are worth, what they cost, and why some are refused. Values and costs are cel-go's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.embedded.apiserver.cel import checker, parsing
from mirror.embedded.apiserver.cel.evaluating import Program
from mirror.embedded.apiserver.cel.metering import Meter
from mirror.embedded.apiserver.cel.times import CostExceeded, EvaluationError
from mirror.embedded.apiserver.cel.tree import BadExpression
from mirror.embedded.apiserver.cel.types import DYN, INT, STRING, Type, list_of, map_of

SELF = Type(
    "whole",
    fields={
        "a": INT,
        "s": STRING,
        "l": list_of(INT),
        "m": map_of(STRING, INT),
        "d": DYN,
        "inner": Type("inner", fields={"c": INT}),
    },
)
VALUE: dict[str, Any] = {"a": 1, "s": "x,y", "l": [1, 2, 3], "m": {"k": 1}, "d": "25%", "inner": {}}


def _value(text: str, limit: int = 10**6) -> tuple[Any, int]:
    meter = Meter(limit)
    program = Program(checker.check(text, parsing.parse(text), {"self": SELF}))
    return program.run({"self": VALUE}, meter), meter.cost


@pytest.mark.parametrize(
    ("text", "value", "cost"),
    [
        ("self.a == 1", True, 3),
        ("self.a == self.a", True, 5),
        ("type(self.a) == int", True, 4),
        ("double(5) < 10.0", True, 1),
        ("string(999999.5) + ' ' + string(1000000.0) + ' ' + string(-1.5e-05)", "999999.5 1e+06 -1.5e-05", None),
        ("dyn(1) in dyn({'k': 1})", False, None),
        ("9223372036854775807 >= double(9223372036854775807)", True, None),
        ("string(timestamp('2026-06-15T01:30:00.50-05:30'))", "2026-06-15T01:30:00.5-05:30", None),
        ("timestamp('2026-06-15T23:30:00-05:30').getHours()", 5, None),
        ("(timestamp('2026-06-15T23:30:00-05:30') + duration('1h')).getDayOfMonth()", 15, None),
        ("string(timestamp('0001-01-01T00:00:00Z') + duration('1s'))", "0001-01-01T00:00:01Z", None),
        ("timestamp('2026-06-15T23:30:00-05:30') == timestamp('2026-06-16T05:00:00Z')", True, None),
        ("dyn(9223372036854775807) == 9223372036854775808.0", True, None),
        ("self.s in ['x,y', 'z']", True, 2),
        ("has(self.inner.c)", False, 2),
        ("!has(self.inner.c)", True, 3),
        ("type(self.d) == int ? self.d == 1 : self.d == '25%'", True, 7),
        ("duration('1h') > duration('59m')", True, 1),
        ("self.s.split(',') == ['x', 'y']", True, 4),
        ("self.m.all(k, self.m[k] > 0)", True, 10),
        ("self.?inner.?c.orValue(4)", 4, 3),
        ("-7 / 2 == -3 && -7 % 2 == -1", True, 4),
        ("'a' + 'b' == 'ab' && b'a' != b'b' && r'\\d' == '\\\\d'", True, 4),
        ("[1, 2].map(x, x * 2)", [2, 4], None),
        ("self.l.filter(x, x > 1).size()", 2, None),
        ("[7, 2, 7, 1, 1].distinct() == [7, 2, 1]", True, None),
        ("self.l.exists_one(x, x == 2) && !self.l.all(x, x > 1)", True, None),
        ("self.l.all(i, x, x == i + 1)", True, None),
        ("self.m.transformList(k, v, k + string(v))", ["k1"], None),
        ("self.m.transformMap(k, v, v + 1)", {"k": 2}, None),
        ("optional.of(3).optMap(x, x + 1).value()", 4, None),
        ("[?self.?inner.?c, 1].size()", 1, None),
        ("self.l.exists(x, self.l[x] > 2)", True, None),
        ("false && self.inner.c == 1 || self.a == 1", True, None),
        ("self.inner.c == 1 || self.a == 1", True, None),
        ("timestamp('2024-02-29T12:00:00.5+01:00').getHours() == 11", True, None),
        ("timestamp('2024-01-01T00:00:00Z') - duration('1s') == timestamp('2023-12-31T23:59:59Z')", True, None),
        ("string(duration('90m')) == '5400s'", True, None),
        ("'%s %d %.2f %x %b'.format(['a', 1, 1.5, 255, 5])", "a 1 1.50 ff 101", None),
        ("'%s'.format([{'k': [1.5, true, null, 'x']}])", '{"k":[1.5, true, null, "x"]}', None),
        ("'TaCo'.lowerAscii() + ' x '.trim() + 'abc'.substring(1, 2)", "tacoxb", None),
        ("'a-b-c'.replace('-', '', 1) == 'ab-c' && 'abab'.lastIndexOf('b') == 3", True, None),
        ("[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1] && [[1], [2]].flatten() == [1, 2]", True, None),
        ("['b', 'a'].sortBy(x, x) == ['a', 'b'] && lists.range(3).reverse() == [2, 1, 0]", True, None),
        ("[1, 2].isSorted() && [1, 2].sum() == 3 && [1, 2].max() == 2 && [1, 2].indexOf(2) == 1", True, None),
        ("sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 2]) && !sets.contains([1], [2])", True, None),
        ("quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1k').add(5).asInteger() == 1005", True, None),
        ("quantity('0.5') == quantity('500m') && !isQuantity('x')", True, None),
        ("url('https://e.com:80/p?q=1').getPort() == '80' && !isURL('../x')", True, None),
        ("ip('127.0.0.1').isLoopback() && !isIP('1.2.3') && ip('::1').family() == 6", True, None),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.1.2.3/8').prefixLength() == 8", True, None),
        ("format.named('dns1123Label').value().validate('Bad').hasValue()", True, None),
        ("semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && isSemver('v1.2', true)", True, None),
        ("1 < 1.5 && 2u > 1 && 1.0 <= 1u", True, None),
        ("'abc'.find('[b-z]+') == 'bc' && 'a1b2'.findAll('[0-9]', 1) == ['1']", True, None),
        ("self.l == [1, 2, 3] && self.m == {'k': 1} && self.inner != null", True, None),
    ],
)  # fmt: skip
def test_an_expression_has_the_value_and_the_cost_of_cel_go(text: str, value: object, cost: int | None) -> None:
    """What holds for the language, its extensions and Kubernetes' libraries."""
    found, counted = _value(text)
    assert found == value
    assert cost is None or counted == cost


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("self.inner.c == 1", "no such key: c"),
        ("self.l[5] == 1", "index out of bounds: 5"),
        ("self.m['x'] == 1", "no such key: x"),
        ("self.a / 0 == 1", "division by zero"),
        ("self.a % 0 == 1", "modulus by zero"),
        ("self.a + 9223372036854775807 > 0", "integer overflow"),
        ("self.d < 5", "no such overload"),
        ("self.d.all(x, x == 1)", "got 'types.String', expected iterable type"),
        ("dyn(1).exists(x, x == 1)", "got 'types.Int', expected iterable type"),
        ("quantity('x') == quantity('y')", "quantities must match the regular expression"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
    ],
)
def test_an_expression_without_a_value_says_why(text: str, words: str) -> None:
    """In cel-go's words, which users see in refusals."""
    with pytest.raises(EvaluationError) as failed:
        _value(text)
    assert str(failed.value).startswith(words)


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("self.x", 5, "undefined field 'x'"),
        ("foo", 1, "undeclared reference to 'foo' (in container '')"),
        ("self.a + self.s", 8, "found no matching overload for '_+_' applied to '(int, string)'"),
        ("self.l.nothing()", 15, "undeclared reference to 'nothing' (in container '')"),
        ("self.s.size(1)", 12, "found no matching overload for 'size' applied to 'string.(int)'"),
        ("self.a ? 1 : 2", 8, "found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("self.a && true", 5, "expected type 'bool' but found 'int'"),
        ("[1, 'a']", 5, "expected type 'int' but found 'string'"),
        ("duration('x')", 10, "invalid duration argument"),
        ("-duration('1h')", 1, "found no matching overload for '-_' applied to '(duration)'"),
        ("has(self)", 5, "invalid argument to has() macro"),
        ("self.a == 99999999999999999999", 11, "invalid int literal"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_where_it_is(text: str, at: int, words: str) -> None:
    """Line and column are those of the part."""
    with pytest.raises(BadExpression) as refused:
        _value(text)
    assert str(refused.value) == f"ERROR: <input>:1:{at}: {words}\n | {text}\n | {'.' * (at - 1)}^"


@pytest.mark.parametrize("text", ["(" * 5000 + "1", "!" * 5001 + "true", "1" + " + 1" * 5000, "[" * 300 + "]" * 300])
def test_what_is_nested_too_deeply_is_refused_or_evaluated(text: str) -> None:
    """It never exhausts the stack."""
    try:
        _value(text)
    except BadExpression:
        return


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "lists.range(500000).all(x, lists.range(500000).all(y, y >= 0))",
        "lists.range(20000).map(x, self.l.map(y, y + x)).size() > 0",
        "self.s.contains('x') && lists.range(1000).all(x, lists.range(1000).map(y, lists.range(1000)).size() > 0)",
    ],
)
def test_what_costs_too_much_is_stopped(text: str) -> None:
    """Before it has taken long."""
    with pytest.raises(CostExceeded):
        _value(text)


_ATOMS = st.sampled_from(
    ["self.a", "self.s", "self.l", "self.m", "self.d", "self.inner", "1", "1.5", "'a'", "true", "null", "x", "2u"]
)
_FORMS = ["({} + {})", "({} == {})", "({} && {})", "{}.all(x, {})", "{}.map(x, {})", "{}[{}]", "({} in {})", "[{}, {}]"]
_FORMS += [
    "{}.exists(x, {})",
    "({} < {})",
    "({} - {})",
    "{}.matches({})",
    "{}.split({})",
    "{{{}: {}}}",
    "{}.indexOf({})",
]
_EXPRESSIONS = st.recursive(
    _ATOMS, lambda inner: st.builds(str.format, st.sampled_from(_FORMS), inner, inner), max_leaves=8
)


@given(_EXPRESSIONS | st.text("self.a()[]{}'\"\\+-*/<>=!&|?:, 01xu\n\t", max_size=30))
def test_any_text_is_refused_or_evaluated(text: str) -> None:
    """Nothing else comes of it."""
    try:
        _value(text, limit=10_000)
    except (BadExpression, EvaluationError, CostExceeded):
        return
