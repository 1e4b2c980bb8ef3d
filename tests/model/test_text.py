"""Text from elsewhere, made safe to show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.model.text import clean, nearest


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("Job failed: größer als 5 %", "Job failed: größer als 5 %", id="printable text stays as it is"),
        pytest.param("a\nb\r\tc", "a\\nb\\r\\tc", id="line ends and tabs"),
        pytest.param("\x1b[2Jgone", "\\x1b[2Jgone", id="a terminal's escape sequence"),
        pytest.param("\x9b31m", "\\x9b31m", id="an eight-bit control"),
        pytest.param("abc\u202ecba", "abc\\u202ecba", id="a bidirectional override"),
        pytest.param("a\u2028b", "a\\u2028b", id="a line separator"),
        pytest.param("\ud800", "\\ud800", id="a lone surrogate"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_unprintable_characters_are_escaped(text: str, shown: str) -> None:
    """Worker text can neither start a line nor talk to a terminal (D18)."""
    assert shown == clean(text)


def test_long_text_is_cut_and_says_so() -> None:
    """A value is at most 512 characters and an ellipsis, also when escaping made it longer."""
    assert clean("x" * 513) == "x" * 512 + "…"
    assert clean("\0" * 512) == "\\x00" * 128 + "…"
    assert clean("x" * 512) == "x" * 512


@given(st.text(st.characters()), st.integers(min_value=1, max_value=40))
def test_cleaned_text_is_printable_bounded_and_stays_so(text: str, longest: int) -> None:
    """Whatever comes in, one printable bounded line that UTF-8 can carry comes out."""
    cleaned = clean(text, longest=longest)

    assert cleaned.isprintable()
    assert len(cleaned) <= longest + 1
    assert cleaned.encode().decode() == cleaned


@pytest.mark.parametrize(
    ("word", "near"),
    [
        pytest.param("regoin", "region", id="most letters are the same"),
        pytest.param("ZONE", "zone", id="another case"),
        pytest.param("ue", "eu", id="two letters, swapped"),
        pytest.param("us", None, id="one of two letters"),
        pytest.param("gpu", None, id="another word"),
    ],
)
def test_the_word_that_was_most_likely_meant(word: str, near: str | None) -> None:
    assert nearest(word, ("region", "zone", "eu")) == near
