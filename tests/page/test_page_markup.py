"""Markup: nothing that is quoted becomes markup, and nothing invisible stays so (D18)."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from mirror.page.markup import LONGEST_TEXT, join, tag

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><script>",
    "&lt;b&gt;",
    "--><!--",
    "]]>",
]


class Read(HTMLParser):
    """What a browser sees: tags, attributes, text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    """As content and as an attribute it is read back as it was."""
    read = Read(tag("p", text, title=text))
    assert read.tags == [("p", {"title": text})]
    assert read.text == text


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_ever_opens_an_element(content: str, attribute: str) -> None:
    """Whatever characters come, there is one element with two attributes."""
    read = Read(tag("b", content, title=attribute, id="x"))
    assert [(name, set(attributes)) for name, attributes in read.tags] == [("b", {"title", "id"})]


@pytest.mark.parametrize("char", ["\x00", "\x1b", "\n", "\u202e", "\u2066", "\u200f", "\ud800", "\x85", "\u2028"])
def test_controls_are_shown_as_escapes(char: str) -> None:
    """Bidirectional controls reorder nothing, and every page is valid UTF-8."""
    made = tag("p", f"a{char}b")
    assert char not in made
    assert "\\" in made
    made.encode()


def test_text_is_bounded() -> None:
    """No worker makes a page long."""
    assert len(tag("p", "x" * 1_000_000)) < LONGEST_TEXT + 20


def test_children_may_be_markup_text_nothing_or_several() -> None:
    """Markup is taken as it is; None is left out."""
    assert tag("ul", [tag("li", "a"), None], "<", None) == "<ul><li>a</li>&lt;</ul>"
    assert join(Markup("<br>"), "&") == "<br>&amp;"


@pytest.mark.parametrize(
    ("attributes", "markup"),
    [
        ({"hidden": True}, "<p hidden></p>"),
        ({"hidden": False, "title": None}, "<p></p>"),
        ({"class_": "a", "aria_label": "b"}, '<p class="a" aria-label="b"></p>'),
        ({"value": 3}, '<p value="3"></p>'),
    ],
    ids=["true stands alone", "false and none are left out", "python's names", "numbers"],
)
def test_attributes(attributes: dict[str, str | int | bool | None], markup: str) -> None:
    """How keyword arguments are written."""
    assert tag("p", **attributes) == markup
