"""Text for people made of text from elsewhere: a worker, a file, a user's object (D18).

Used wherever such text goes to a log, a terminal, an annotation or an event. Not here: how lines look (``telemetry``).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

LONGEST = 512
MOST_COMPARED = 500
LONGEST_COMPARED = 100


def clean(text: str, *, longest: int = LONGEST) -> str:
    """The text on one line, at most ``longest`` characters and an ellipsis, with everything unprintable escaped.

    It can then start no new line, move no cursor, reorder nothing (bidirectional controls) and is always valid UTF-8.
    """
    if len(text) <= longest and text.isprintable():
        return text
    # isprintable() is False for every control, format, surrogate and separator character but the space.
    safe = "".join(char if char.isprintable() else _escape(char) for char in text[:longest])
    return safe if len(safe) <= longest and len(text) <= longest else safe[:longest] + "…"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was most likely meant; None where none is near. Looks at 500 of them at most."""
    compared, short = list(islice(known, MOST_COMPARED)), word[:LONGEST_COMPARED]
    near = get_close_matches(short, compared, n=1)
    # In a short word, letters that are swapped are too much for the ratio: ue and eu.
    return near[0] if near else next((name for name in compared if _letters(name) == _letters(short)), None)


def _letters(word: str) -> list[str]:
    return sorted(word.lower())


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
