"""A page as parts that can be sent again one by one, and what of it a browser does not have yet. Pure.

``listing`` and ``detail`` make views; ``skeleton`` puts the parts into a page, ``streams`` sends what is new. The other
end of what ``Sent.news`` gives is ``assets/page.js``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
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


_serials = count(1)


@dataclass(frozen=True, slots=True)
class View:
    """Everything that changes on one page. Those who look at the same share one, and what is sent of it."""

    parts: tuple[Fragment, ...]
    """At their fixed places."""
    lists: Mapping[str, tuple[Fragment, ...]]
    """By the id of the element whose only children they are."""
    serial: int = field(default_factory=lambda: next(_serials), compare=False)
    _messages: dict[int, bytes | None] = field(default_factory=dict, compare=False, repr=False)
    """What is new here, by the serial of the view that a browser has; 0: it has none."""

    def news_after(self, last: View | None) -> bytes | None:
        """A message with what differs from another view, as JSON on one line; None if nothing does."""
        if last is self:
            return None
        serial = last.serial if last is not None else 0
        if serial not in self._messages:
            self._messages[serial] = _message(self, last)
        return self._messages[serial]

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

    _last: View | None = None

    def news(self, view: View) -> bytes | None:
        """A message with what differs, noted as sent; None if nothing does."""
        message = view.news_after(self._last)
        self._last = view
        return message


def _message(view: View, last: View | None) -> bytes | None:
    nothing = object()
    had = {} if last is None else {part.id: part.value for part in _all(last)}
    orders = {name: tuple(part.id for part in parts) for name, parts in view.lists.items()}
    old = {} if last is None else {name: tuple(part.id for part in parts) for name, parts in last.lists.items()}
    changed = {part.id: str(part.draw()) for part in _all(view) if had.get(part.id, nothing) != part.value}
    moved = {name: order for name, order in orders.items() if old.get(name) != order}
    if not changed and not moved:
        return None
    return msgspec.json.encode(News(whole=last is None, parts=changed, lists=moved))


def _all(view: View) -> list[Fragment]:
    return [*view.parts, *(part for parts in view.lists.values() for part in parts)]
