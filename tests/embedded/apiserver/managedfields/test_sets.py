"""Sets of fields behave as sets, whatever is in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.embedded.apiserver.managedfields import sets

_ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
_SETS = st.recursive(
    st.just({}),
    lambda inner: st.tuples(st.dictionaries(_ELEMENTS, inner, max_size=3), st.booleans()).map(
        lambda made: {**({".": {}} if made[1] and made[0] else {}), **made[0]}
    ),
    max_leaves=8,
).map(lambda made: {element: below for element, below in made.items() if element != "."})


def members(one: dict[str, Any]) -> set[tuple[str, ...]]:
    return set(sets.paths(one))


@given(_SETS, _SETS)
def test_operations_are_those_of_sets(one: dict[str, Any], other: dict[str, Any]) -> None:
    """By their paths."""
    assert members(sets.union(one, other)) == members(one) | members(other)
    assert members(sets.difference(one, other)) == members(one) - members(other)
    assert members(sets.intersection(one, other)) == members(one) & members(other)


@given(_SETS, _SETS)
def test_operations_change_nothing_that_they_are_given(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Sets share parts, so this must hold."""
    before = repr((one, other))
    sets.union(one, other)
    sets.difference(one, other)
    sets.intersection(one, other)
    sets.without(one, ("a", "b"))
    assert repr((one, other)) == before


@given(_SETS)
def test_a_path_is_taken_out_with_everything_below_it(one: dict[str, Any]) -> None:
    """And nothing else."""
    left = members(sets.without(one, ("a", "b")))
    assert left == {path for path in members(one) if path[:2] != ("f:a", "f:b")}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("f:spec", "f:suspend"), ".spec.suspend"),
        (("f:containers", 'k:{"name":"main"}', "f:image"), '.containers[name="main"].image'),
        (("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'), '.ports[containerPort=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"a/b"'), '.finalizers[="a/b"]'),
        (("f:values", "v:3"), ".values[=3]"),
    ],
)
def test_paths_are_shown_as_upstream_shows_them(path: tuple[str, ...], shown: str) -> None:
    """In messages of conflicts."""
    assert sets.shown(path) == shown


def test_texts_in_path_elements_are_escaped_as_in_json() -> None:
    """Markup, too."""
    assert sets.value_element('a"<b>') == 'v:"a\\"\\u003cb\\u003e"'
    assert sets.item_element([("a", 1), ("b", True)]) == 'k:{"a":1,"b":true}'
