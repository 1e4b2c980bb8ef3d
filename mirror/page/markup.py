"""HTML that cannot be broken by what it quotes: text is cleaned and escaped where it becomes a part of a page (D18).

Everything on a page is built with ``tag``. MarkupSafe escapes, and its ``Markup`` is what is markup already; the only
other way to make some is to name it so, as ``skeleton`` does for the doctype.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from markupsafe import Markup, escape

from mirror.model.text import clean

LONGEST_TEXT = 1024
"""Of one text, in characters: no worker makes a page long."""

_VOID = frozenset({"input", "link", "meta"})

Child: TypeAlias = "str | Iterable[str | None] | None"
Attribute: TypeAlias = "str | int | float | bool | None"


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """One element.

    Args:
        name: of the element.
        children: markup as it is, other text escaped, None left out; iterables of these are laid flat.
        attributes: ``True`` stands alone, ``False`` and ``None`` are left out. A trailing ``_`` is dropped
            (``class_``), others become ``-`` (``aria_live``).
    """
    opened = "".join([_attribute(key, value) for key, value in attributes.items()])
    if name in _VOID:
        return _named(f"<{name}{opened}>")
    return _named(f"<{name}{opened}>{''.join(map(_child, children))}</{name}>")


def join(*children: Child) -> Markup:
    """Several one after the other."""
    return _named("".join(map(_child, children)))


def safe(text: str) -> Markup:
    """Escaped for element content and quoted attributes alike, after it has been cleaned."""
    return escape(clean(text, longest=LONGEST_TEXT))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    return safe(child) if isinstance(child, str) else "".join(map(_child, child))


def _named(markup: str) -> Markup:
    """As ``Markup(markup)``, whose constructor looks for ``__html__`` first, which takes longer than all the rest."""
    return str.__new__(Markup, markup)


# Most attributes are the same on each row. ``typed``: 1 is a value, True stands alone.
@lru_cache(maxsize=1024, typed=True)
def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{safe(str(value))}"'
