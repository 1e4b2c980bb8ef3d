"""The triage strip: what deserves a look first, as numbers that are filters. Pure, for ``listing``."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from mirror.model.views import UNKNOWN
from mirror.page.badges import number
from mirror.page.markup import tag
from mirror.page.query import Query
from mirror.page.table import Triage
from mirror.page.view import Fragment

MOST_NAMED = 3
"""Reasons and workers of a tile."""


def strip(triage: Triage | None, query: Query) -> Fragment:
    """All tiles; None: it has not been counted yet."""
    return Fragment("triage", (triage, query), lambda: _strip(triage, query))


def _strip(triage: Triage | None, query: Query) -> Markup:
    seen = triage or Triage()
    waiting, stuck = (sum(many for _, many in group) for group in (seen.waiting, seen.stuck))
    tiles = (
        (seen.failed, "Failed", "bad", Query(state="Failed"), ()),
        (seen.unknown, "On lost workers", "bad", Query(state=UNKNOWN), _on(seen.workers)),
        (stuck, "Not progressing", "warn", Query(only="stuck"), _by("", seen.stuck)),
        (waiting, "Waiting", "wait", Query(state="Waiting"), _by("Waiting", seen.waiting)),
        (seen.late, "Status late", "warn", Query(only="late"), ()),
    )
    items = [
        tag(
            "li",
            tag(
                "a",
                tag("span", number(count) if triage else "…", class_="count"),
                tag("span", label, class_="label"),
                href=f"?{wanted.address()}",
                class_="total",
                aria_current="true" if _is_chosen(wanted, query) else None,
                data_live=True,
            ),
            _parts(parts, query) if count and parts else None,
            class_=f"tile {kind if count else 'none'}",
        )
        for count, label, kind, wanted, parts in tiles
    ]
    return tag("ul", items, id="triage", class_="triage")


def _by(state: str, reasons: Sequence[tuple[str, int]]) -> tuple[tuple[str, Query], ...]:
    only = "" if state else "stuck"
    return tuple(
        (f"{reason} {number(many)}", Query(state=state, only=only, reason=reason)) for reason, many in reasons if reason
    )


def _on(workers: Sequence[str]) -> tuple[tuple[str, Query], ...]:
    return tuple((name, Query(state=UNKNOWN, worker=name)) for name in workers)


def _parts(parts: Sequence[tuple[str, Query]], query: Query) -> Markup:
    """The first of them, and how many more there are: a number alone would not add up."""
    more = len(parts) - MOST_NAMED
    left_out = tag("span", f"+{more} more") if more > 0 else None
    return tag("div", *(_part(one, query) for one in parts[:MOST_NAMED]), left_out, class_="parts")


def _part(part: tuple[str, Query], query: Query) -> Markup:
    text, wanted = part
    chosen = "true" if _is_chosen(wanted, query) else None
    return tag("a", text, href=f"?{wanted.address()}", aria_current=chosen, title=text, data_live=True)


def _is_chosen(wanted: Query, query: Query) -> bool:
    return (wanted.state, wanted.only, wanted.reason) == (query.state, query.only, query.reason) and (
        not wanted.worker or wanted.worker == query.worker
    )
