"""HTML that cannot be broken by what it quotes: text is cleaned and escaped where it becomes a part of a page (D18).

Everything in ``drawing`` is built with ``tag``. The only other way to make ``Html`` is to name it so, as ``verbatim``
does for constants of this room.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from mirror.model.text import clean

LONGEST_TEXT = 1024
"""Of one text, in characters: no worker makes a page long."""

_VOID = frozenset({"input", "link", "meta"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[str | None] | None"
Attribute: TypeAlias = "str | int | float | bool | None"


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """One element.

    Args:
        name: of the element.
        children: markup as it is, other text escaped, None left out; iterables of these are laid flat.
        attributes: ``True`` stands alone, ``False`` and ``None`` are left out. A trailing ``_`` is dropped
            (``class_``), others become ``-`` (``aria_live``).
    """
    opened = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{opened}>")
    return Html(f"<{name}{opened}>{join(*children)}</{name}>")


def join(*children: Child) -> Html:
    """Several one after the other."""
    return Html("".join(map(_child, children)))


def safe(text: str) -> str:
    """Escaped for element content and quoted attributes alike, after it has been cleaned."""
    return escape(clean(text, longest=LONGEST_TEXT))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    return safe(child) if isinstance(child, str) else "".join(map(_child, child))


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{safe(str(value))}"'
