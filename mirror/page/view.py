"""A page as parts that can be sent again one by one, and what of it a browser does not have yet. Pure.

``listing`` and ``detail`` make views; ``skeleton`` puts the parts into a page, ``streams`` sends what is new. The other
end of what ``Sent.news`` gives is ``assets/page.js``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Fragment:
    """One element."""

    id: str
    """Of the element; ``draw`` gives it this id."""
    value: Any
    """What it shows. A part with an equal value is not drawn again: text such as ``3s ago`` is the browser's care."""
    draw: Callable[[], Markup]


@dataclass(frozen=True, slots=True)
class View:
    """Everything that changes on one page."""

    parts: tuple[Fragment, ...]
    """At their fixed places."""
    lists: Mapping[str, tuple[Fragment, ...]]
    """By the id of the element whose only children they are."""

    def drawn(self) -> dict[str, Markup]:
        """All by id; a list is its members, one after the other."""
        found = {part.id: part.draw() for part in self.parts}
        return found | {name: Markup("".join(part.draw() for part in parts)) for name, parts in self.lists.items()}


class News(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What goes to the browser."""

    whole: bool = False
    """The first one: nothing of it is new to a person."""
    parts: dict[str, str] = {}
    """Markup of elements, by id."""
    lists: dict[str, tuple[str, ...]] = {}
    """The ids of a list's members, in order."""


@dataclass(slots=True)
class Sent:
    """What one browser has. Never more than one view, so it is bounded as views are."""

    _values: dict[str, Any] = field(default_factory=dict)
    _orders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _is_first: bool = True

    def news(self, view: View) -> bytes | None:
        """A message with what differs, as JSON on one line, noted as sent; None if nothing does."""
        parts = [*view.parts, *(part for parts in view.lists.values() for part in parts)]
        orders = {name: tuple(part.id for part in parts) for name, parts in view.lists.items()}
        nothing = object()
        changed = {part.id: str(part.draw()) for part in parts if self._values.get(part.id, nothing) != part.value}
        moved = {name: order for name, order in orders.items() if self._orders.get(name) != order}
        if not changed and not moved:
            return None
        message = News(whole=self._is_first, parts=changed, lists=moved)
        self._values = {part.id: part.value for part in parts}
        self._orders = orders
        self._is_first = False
        return msgspec.json.encode(message)
