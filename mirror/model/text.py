"""Text for people made of text from elsewhere: a worker, a file, a user's object (D18).

Used wherever such text goes to a log, a terminal, an annotation or an event. Not here: how lines look (``telemetry``).
"""

from __future__ import annotations

LONGEST = 512


def clean(text: str, *, longest: int = LONGEST) -> str:
    """The text on one line, at most ``longest`` characters and an ellipsis, with everything unprintable escaped.

    It can then start no new line, move no cursor, reorder nothing (bidirectional controls) and is always valid UTF-8.
    """
    if len(text) <= longest and text.isprintable():
        return text
    # isprintable() is False for every control, format, surrogate and separator character but the space.
    safe = "".join(char if char.isprintable() else _escape(char) for char in text[:longest])
    return safe if len(safe) <= longest and len(text) <= longest else safe[:longest] + "…"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
