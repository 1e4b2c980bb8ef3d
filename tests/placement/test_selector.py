"""Label selectors in Kubernetes' text form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.placement.selector import BadSelector, Selector, parse_selector

LABELS = {"name": "east", "region": "eu", "example.com/gpu": "a100", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        pytest.param("", True, id="nothing asked"),
        pytest.param("   ", True, id="only blanks"),
        pytest.param("name=east", True, id="equal"),
        pytest.param("name==east", True, id="equal, written twice"),
        pytest.param("name = east", True, id="blanks around the sign"),
        pytest.param("name=west", False, id="another value"),
        pytest.param("name!=west", True, id="not equal"),
        pytest.param("name!=east", False, id="not equal, but it is"),
        pytest.param("zone!=a", True, id="an absent key is not equal"),
        pytest.param("region in (us, eu)", True, id="one of several"),
        pytest.param("region in (us)", False, id="none of these"),
        pytest.param("region notin (us,ap)", True, id="none of these, as asked"),
        pytest.param("zone notin (a)", True, id="an absent key is in no set"),
        pytest.param("zone in (a)", False, id="an absent key is not in a set"),
        pytest.param("example.com/gpu", True, id="a key with a prefix exists"),
        pytest.param("!example.com/gpu", False, id="it must not exist"),
        pytest.param("!zone", True, id="it does not exist"),
        pytest.param("empty=", True, id="the empty value"),
        pytest.param("region=eu,name in (east,west),!zone", True, id="all parts match"),
        pytest.param("region=eu,name in (west)", False, id="one part does not"),
    ],
)
def test_a_selector_picks_labels_as_kubernetes_does(text: str, matches: bool) -> None:
    """Equality, sets and existence; all parts must match."""
    assert parse_selector(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "about"),
    [
        pytest.param("=east", "=east", id="no key"),
        pytest.param("a==b==c", "a==b==c", id="two signs"),
        pytest.param("name=east,", "''", id="an empty part at the end"),
        pytest.param("name in east", "name in east", id="a set without parentheses"),
        pytest.param("name in (east", "name in (east", id="an open parenthesis"),
        pytest.param("name in (a b)", "a b", id="a blank in a value"),
        pytest.param("-name=a", "-name", id="a key that begins with a dash"),
        pytest.param("UPPER.example/a=b", "UPPER", id="a prefix in capitals"),
        pytest.param("a/b/c", "a/b/c", id="two slashes"),
        pytest.param("name=" + "x" * 64, "x", id="a value of 64 characters"),
        pytest.param("x" * 64, "x", id="a key of 64 characters"),
        pytest.param("!", "!", id="nothing must not exist"),
        pytest.param("name=ea\nst", "ea", id="a line break"),
        pytest.param("name=east\0,region=eu", "region", id="a zero byte"),
        pytest.param("name>1", "name>1", id="a comparison of numbers"),
        pytest.param("a=b," * 2000, "4096", id="absurdly long"),
    ],
)
def test_a_malformed_selector_is_refused_with_the_part(text: str, about: str) -> None:
    """The message names the part, on one line, so that its author finds it."""
    with pytest.raises(BadSelector) as refused:
        parse_selector(text)
    assert about in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


@given(st.text(alphabet="ab=!,() innot./-\n\x00ü", max_size=40))
def test_any_text_is_a_selector_or_is_refused(text: str) -> None:
    """Annotations are hostile: nothing but BadSelector may come out."""
    try:
        found = parse_selector(text)
    except BadSelector:
        return
    assert isinstance(found, Selector)
    found.matches(LABELS)
