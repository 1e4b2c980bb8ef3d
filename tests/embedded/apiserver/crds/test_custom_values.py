"""What a structural schema makes of a value, and what it finds wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.embedded.apiserver.apimachinery import patterns
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.crds import checking, formats, kind, paths, structural_checks, values
from mirror.embedded.apiserver.crds.schema_rules import check_schema

TEXT, NUMBER, ANYTHING = {"type": "string"}, {"type": "integer"}, {"x-kubernetes-preserve-unknown-fields": True}


def obj(**properties: Any) -> dict[str, Any]:
    """A schema of an object."""
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "value", "kept", "gone"),
    [
        (obj(a=TEXT), {"a": "x", "b": 1}, {"a": "x"}, ["b"]),
        (obj(a=obj(b=TEXT)), {"a": {"b": "x", "c": 1}}, {"a": {"b": "x"}}, ["a.c"]),
        (obj(a=ANYTHING), {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}, []),
        (obj() | ANYTHING, {"a": 1}, {"a": 1}, []),
        (obj(a=obj(b=obj()) | ANYTHING), {"a": {"b": {"c": 1}, "d": 2}}, {"a": {"b": {}, "d": 2}}, ["a.b.c"]),
        (
            {"type": "object", "additionalProperties": obj(a=TEXT)},
            {"x": {"a": "1", "b": 2}},
            {"x": {"a": "1"}},
            ["x.b"],
        ),
        ({"type": "object", "additionalProperties": True}, {"x": {"a": 1}}, {"x": {"a": 1}}, []),
        (obj(a={"type": "array", "items": obj(b=TEXT)}), {"a": [{"c": 1}, 2]}, {"a": [{}, 2]}, ["a[0].c"]),
    ],
)
def test_what_is_unknown_goes(schema: Any, value: Any, kept: Any, gone: list[str]) -> None:
    """But for maps of anything, and where it is to be kept."""
    assert values.prune(value, schema) == gone
    assert value == kept


def test_an_object_within_keeps_what_every_object_has() -> None:
    """Its kind, version and metadata."""
    value = {"kind": "K", "apiVersion": "v1", "metadata": {"name": "n"}, "x": 1}
    assert values.prune(value, obj() | {"x-kubernetes-embedded-resource": True}) == ["x"]
    assert set(value) == {"kind", "apiVersion", "metadata"}


def test_defaults_are_filled_in_where_there_is_something_to_fill() -> None:
    """Each object its own copy."""
    schema = obj(
        a={
            "type": "array",
            "items": obj(b={"type": "object", "default": {}, "properties": {"c": TEXT | {"default": "x"}}}),
        }
    )
    value: dict[str, Any] = {"a": [{}, {"b": {"c": "y"}}]}
    values.default(value, schema)
    assert value == {"a": [{"b": {"c": "x"}}, {"b": {"c": "y"}}]}
    values.default(empty := {}, schema)
    assert empty == {}


def test_a_null_means_that_nothing_is_there() -> None:
    """Unless it may be one."""
    value = {"a": None, "b": None, "c": [None], "d": None}
    values.drop_nulls(value, obj(a=TEXT, b=TEXT | {"nullable": True}, c={"type": "array", "items": TEXT}))
    assert value == {"b": None, "c": [None], "d": None}


CASES: list[tuple[Any, Any, list[str]]] = [
    (TEXT, 1, ['x: Invalid value: "integer": x in body must be of type string: "integer"']),
    (NUMBER, 1.0, []),
    (NUMBER, True, ['x: Invalid value: "boolean": x in body must be of type integer: "boolean"']),
    ({"type": "number"}, 1, []),
    (
        {"type": "number", "minimum": 1, "exclusiveMinimum": True},
        1,
        ["x: Invalid value: 1: x in body should be greater than 1"],
    ),
    ({"type": "number", "maximum": 1.5}, 2.5, ["x: Invalid value: 2.5: x in body should be less than or equal to 1.5"]),
    ({"type": "integer", "multipleOf": 3}, 4, ["x: Invalid value: 4: x in body should be a multiple of 3"]),
    # What is written as an integer is compared with the bound without its fraction; what is written as a float is not.
    ({"type": "number", "minimum": 0.5}, 0, []),
    (
        {"type": "number", "minimum": 0.5},
        0.25,
        ["x: Invalid value: 0.25: x in body should be greater than or equal to 0.5"],
    ),
    ({"type": "number", "maximum": -0.5}, 0, []),
    ({"type": "number", "maximum": 2.5}, 3, ["x: Invalid value: 3: x in body should be less than or equal to 2"]),
    ({"type": "number", "multipleOf": 2.5}, 5, ["x: Invalid value: 5: x in body should be a multiple of 2"]),
    ({"type": "number", "multipleOf": 2.5}, 5.0, []),
    (
        {"type": "number", "multipleOf": 0.5},
        1,
        ["x: Invalid value: 0: factor MultipleOf declared for x must be positive: 0"],
    ),
    ({"type": "number", "multipleOf": 0.1}, 0.3, []),
    ({"type": "number", "multipleOf": 0.1}, 0.25, ["x: Invalid value: 0.25: x in body should be a multiple of 0.1"]),
    # A bound is itself to be of the type and of the format; the least comes before the most.
    (
        {"type": "integer", "minimum": 0.5},
        0,
        [
            '<nil>: Invalid value: "": Minimum boundary value must be of type integer (default format) in x',
            "x: Invalid value: 0: x in body should be greater than or equal to 0.5",
        ],
    ),
    (
        {"type": "integer", "format": "int32", "maximum": 2**40},
        2,
        ['<nil>: Invalid value: "": Maximum boundary value must be of type integer with format int32 in x'],
    ),
    (
        {"type": "integer", "minimum": 5, "maximum": 3},
        4,
        [
            "x: Invalid value: 4: x in body should be greater than or equal to 5",
            "x: Invalid value: 4: x in body should be less than or equal to 3",
        ],
    ),
    (
        {"type": "number", "format": "float"},
        1e39,
        ['<nil>: Invalid value: "": Checked value must be of type number with format float in x'],
    ),
    ({"type": "number", "format": "int32"}, 2**40, []),
    (TEXT | {"minLength": 2}, "a", ['x: Invalid value: "a": x in body should be at least 2 chars long']),
    (TEXT | {"maxLength": 2}, "abc", ["x: Too long: may not be more than 2 bytes"]),
    (TEXT | {"pattern": "^a"}, "b", ["x: Invalid value: \"b\": x in body should match '^a'"]),
    (TEXT | {"enum": ["a", "b"]}, "c", ['x: Unsupported value: "c": supported values: "a", "b"']),
    ({"enum": [1, 2]}, 3, ['x: Unsupported value: 3: supported values: "1", "2"']),
    # Numbers are converted to the type of each allowed value, and null is none of them even if it is listed.
    ({"enum": [1, 2]}, 1.5, []),
    ({"enum": [1.0]}, 1, []),
    ({"enum": [1.5]}, 1, ['x: Unsupported value: 1: supported values: "1.5"']),
    ({"enum": ["A"]}, 65, []),
    ({"enum": ["A"]}, 65.0, ['x: Unsupported value: 65: supported values: "A"']),
    ({"enum": [[1]]}, [1], []),
    (
        TEXT | {"nullable": True, "enum": ["a", None]},
        None,
        ['x: Unsupported value: null: supported values: "a", "null"'],
    ),
    ({"enum": [1]}, True, ['x: Unsupported value: true: supported values: "1"']),
    (TEXT | {"nullable": True}, None, []),
    (TEXT, None, ['x: Invalid value: "null": x in body must be of type string: "null"']),
    (
        obj(a=TEXT) | {"required": ["a", "b"]},
        {"a": 1},
        [
            'x.a: Invalid value: "integer": x.a in body must be of type string: "integer"',
            "x.b: Required value",
        ],
    ),
    (obj() | {"minProperties": 1}, {}, ["x: Invalid value: 0: x in body should have at least 1 properties"]),
    ({"type": "array", "minItems": 1}, [], ["x: Invalid value: 0: x in body should have at least 1 items"]),
    ({"type": "array", "maxItems": 1}, [1, 2], ["x: Too many: 2: must have at most 1 item"]),
    ({"maxLength": 1}, "ab", ["x: Too long: may not be more than 1 byte"]),
    ({"anyOf": [TEXT, NUMBER]}, "a", []),
    (
        {"oneOf": [{"minLength": 1}, {"maxLength": 3}]},
        "a",
        ['<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ),
    ({"not": {"enum": ["a"]}}, "a", ['<nil>: Invalid value: "": "x" must not validate the schema (not)']),
    (
        {"allOf": [{"minLength": 2}]},
        "a",
        [
            'x: Invalid value: "a": x in body should be at least 2 chars long',
            '<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated',
        ],
    ),
    (
        {"x-kubernetes-int-or-string": True},
        1.5,
        ['x: Invalid value: "number": x in body must be of type integer,string: "number"'],
    ),
]


@pytest.mark.parametrize(("schema", "value", "told"), CASES, ids=range(len(CASES)))
def test_what_is_wrong_with_a_value(schema: Any, value: Any, told: list[str]) -> None:
    """In the words of kube-apiserver."""
    assert [f"{one.field}: {one.message}" for one in checking.check(value, schema, path="x")] == told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
SCHEMAS = st.recursive(
    st.sampled_from(
        [TEXT, NUMBER, ANYTHING, {"type": "boolean"}, {"type": "number"}, {"x-kubernetes-int-or-string": True}]
    ),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(lambda properties: obj(**properties))
        | inner.map(lambda items: {"type": "array", "items": items})
        | inner.map(lambda one: {"type": "object", "additionalProperties": one})
    ),
    max_leaves=8,
)


@given(SCHEMAS, JSON)
def test_any_value_meets_any_schema_without_harm(schema: Any, value: Any) -> None:
    """Pruning twice changes nothing more, and what is found is told by fields."""
    values.prune(value, schema)
    assert values.prune(value, schema) == []
    values.drop_nulls(value, schema)
    values.default(value, schema)
    for one in checking.check(value, schema):
        assert one.field
        assert one.message
    list(structural_checks.check_lists(value, schema))
    list(structural_checks.check_embedded(value, schema))


@pytest.mark.parametrize(
    ("format_", "good", "bad"),
    [
        ("date-time", "2026-11-21T10:00:00Z", "2026-13-01T00:00:00Z"),
        ("date", "2026-11-21", "21.11.2026"),
        ("byte", "YQ==", "YQ"),
        ("uuid", "123e4567-e89b-42d3-a456-426614174000", "123"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("duration", "1h30m", "an hour"),
        ("nothing-known", "anything", None),
    ],
)
def test_formats(format_: str, good: str, bad: str | None) -> None:
    """One that is not known is no rule."""
    assert formats.fits(format_, good)
    assert bad is None or not formats.fits(format_, bad)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".a", [{"b": 1}]),
        (".none", []),
        (".list[0].n", ["x"]),
        (".list[-1].n", ["y"]),
        (".list[*].n", ["x", "y"]),
        ('.list[?(@.n=="y")].v', [2]),
        (".labels['a.b/c']", ["d"]),
        (r".labels.a\.b/c", ["d"]),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    """As columns use them."""
    body = {"a": {"b": 1}, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "labels": {"a.b/c": "d"}}
    assert paths.find(body, path) == found


@pytest.mark.parametrize("path", ["a", ".a[", ".a[?(@.b>1)]", "..", ".a b"])
def test_what_is_no_path(path: str) -> None:
    """Said, not guessed."""
    with pytest.raises(paths.NotAPath):
        paths.find({}, path)


WRONG: list[tuple[Any, str]] = [
    ({"type": "string"}, 's.type: Invalid value: "string": must be object at the root'),
    (obj(a={}), "s.properties[a].type: Required value: must not be empty for specified object fields"),
    (obj(a={"type": "array"}), "s.properties[a].items: Required value: must be specified"),
    (
        obj(a={"type": "array", "items": {}}),
        "s.properties[a].items.type: Required value: must not be empty for specified array items",
    ),
    (
        obj(a=TEXT | {"pattern": "("}),
        "must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
    ),
    (
        obj(a=NUMBER | {"default": "x"}),
        's.properties[a].default: Invalid value: "string":  in body must be of type integer: "string"',
    ),
    (obj() | {"nullable": True}, "s.nullable: Forbidden: nullable cannot be true at the root"),
    (obj() | {"additionalProperties": TEXT}, "s.additionalProperties: Forbidden: must not be used at the root"),
    (
        obj(a={"anyOf": [{"type": "string"}], "type": "string"}),
        "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
    ),
    (obj(a={"$ref": "#/x", **TEXT}), "s.properties[a].$ref: Forbidden: $ref is not supported"),
    (obj(metadata=obj(labels=obj())), "must not specify anything other than name and generateName"),
    (
        obj(
            a={
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": obj(k=TEXT),
            }
        ),
        "s.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys",
    ),
]


@pytest.mark.parametrize(("schema", "told"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_with_a_schema(schema: Any, told: str) -> None:
    """Structural, and with words that definitions may use."""
    found = [f"{one.field}: {one.message}" for one in check_schema("s", schema, has_status=False)]
    assert any(told in one for one in found), found


def test_what_is_right_with_a_schema() -> None:
    """The forms that real definitions have."""
    schema = obj(
        metadata=obj(name=TEXT),
        spec=obj(
            port={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            free=obj() | ANYTHING,
            map={"type": "object", "additionalProperties": TEXT},
            set={"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
            either={
                "type": "object",
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                "properties": {"a": TEXT, "b": TEXT},
            },
        ),
    )
    assert check_schema("s", schema, has_status=True) == []


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^(a+)+$", "aaa", "a" * 40 + "!"),
        ("^(a|a)*$", "aaa", "a" * 5000 + "!"),
        ("^((a+)b?)+$", "aab", "a" * 5000 + "!"),
        (r"^(.*a){20}\z", "a" * 20, "a" * 5000 + "!"),
        ("^\U0001d6fc.$", "\U0001d6fc\ud800", "\U0001d6fc\n"),
        ("^(?:[a-z]*)+$", "", "a" * 40 + "!"),
        ("^((a+)+)+$", "aa", "a" * 40 + "!"),
        (r"^(\d+)*$", "12", "1" * 40 + "!"),
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a.b-c.d", "a" * 60 + "!"),
        (r"^\(a+\)+$", "(aa))", "aa"),
    ],
)
def test_patterns_do_not_go_back_and_forth(pattern: str, good: str, bad: str) -> None:
    """What takes Go no time takes us none, and means the same."""
    compiled = patterns.pattern_of(pattern)
    assert compiled.fits(good)
    assert not compiled.fits(bad)


def test_a_pattern_that_would_take_too_long_refuses_the_value() -> None:
    """Time is bounded by the size of the pattern times the length of the text."""
    schema = TEXT | {"pattern": "^(" + "(a?b?){1000}" * 10 + ")$"}
    [found] = checking.check("ab" * 5000, schema, path="x")
    assert "is too long to be matched with" in found.message
    assert not checking.check("ab" * 500, schema, path="x")


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("(", "error parsing regexp: missing closing ): `(`"),
        ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
        ("(?=x)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        (r"a\C", r"error parsing regexp: invalid escape sequence: `\C`"),
        ("((a{99}){99}){99}", "error parsing regexp: invalid repeat count: `{99}`"),
    ],
)
def test_bad_patterns_are_told_as_go_tells_them(pattern: str, told: str) -> None:
    """Whoever reads Go's errors knows them."""
    with pytest.raises(patterns.BadPattern) as caught:
        patterns.pattern_of(pattern)
    assert str(caught.value) == told


def test_without_re2_patterns_are_accepted_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra: what lacks it does not fall back to matching that may hang."""
    monkeypatch.setattr(patterns, "_RE2", None)
    assert patterns.Pattern("(").fits("anything")
    schema = {"properties": {"pattern": TEXT, "x": TEXT | {"pattern": "^a$"}}}
    body: Any = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    [told] = kind.KIND.strategy.warnings(body, None, Context("2026-03-01T12:00:00Z"))
    assert told == (
        "spec.versions of v1: pattern is not evaluated by this server: it lacks RE2 (pip install 'jobmirror[embedded]')"
    )
