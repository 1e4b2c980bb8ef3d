"""The terminal and the film of the demonstration: what programs print is what is shown, for as long as it was."""

from __future__ import annotations

from xml.etree import ElementTree

from e2e.terminal import Frame, Screen, film


def text_of(screen: Screen) -> list[str]:
    return ["".join(character for character, _ in line) for line in screen.shown()]


def test_a_table_that_is_drawn_over_is_shown_once() -> None:
    """As ``rich`` draws it: up to its first line, each line erased and written; a sequence in two pieces too."""
    screen = Screen(20, 5)
    screen.write("story\none\ntwo\x1b[")
    screen.write("2K\x1b[1A\x1b[2K\r\x1b[32mONE\x1b[0m\nTWO")
    assert text_of(screen) == ["story", "ONE", "TWO"]
    assert screen.shown()[1][0] == ("O", "g")


def test_what_leaves_the_screen_is_not_shown_and_long_lines_go_on() -> None:
    screen = Screen(3, 2)
    screen.write("abcdef\nxyz")
    assert text_of(screen) == ["def", "xyz"]


def test_a_text_is_drawn_once_for_the_time_that_it_is_there() -> None:
    """No script, and nothing of a program's is markup."""
    one, other = tuple(("<", "") for _ in range(2)), tuple(("b", "r") for _ in range(2))
    drawn = film(
        [Frame(0.0, (one,)), Frame(1.0, (one, other)), Frame(2.0, (one,))],
        columns=10, rows=4, still_seconds=2.0, title="a & b",
    )  # fmt: skip
    root = ElementTree.fromstring(drawn)
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["<<", "bb"]
    assert "25.00%{visibility:visible}50.00%{visibility:hidden}" in drawn
    assert "<script" not in drawn
