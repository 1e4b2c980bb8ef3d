"""Whole pages: the frame around a view's parts. Pure. They work without scripts; ``assets/page.js`` makes them live."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec
from markupsafe import Markup

from mirror.kinds.registry import Kinds
from mirror.model.keys import SourceKey
from mirror.page import tabs
from mirror.page.badges import is_default
from mirror.page.fleet import COLUMNS as WORKER_COLUMNS
from mirror.page.listing import COLUMNS
from mirror.page.markup import join, tag
from mirror.page.query import LONGEST, Query

_DOCTYPE = Markup("<!DOCTYPE html>")


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change."""

    kinds: Kinds
    """Those in use: what commands call an object."""
    managed_by: str
    origin: str
    version: str
    assets: str
    """Differs when the assets do, so that browsers do not keep old ones."""
    visitor: str = ""
    """Who looks, where the page asks."""
    has_inside: bool = False
    """Whether pods, events, logs and manifests can be shown."""


def list_page(parts: Mapping[str, Markup], query: Query, about: About, now: datetime) -> Markup:
    """``/``"""
    main = (
        tag("section", tag("h1", "Jobs on worker clusters", class_="unseen"), parts["triage"], aria_label="Triage"),
        tag(
            "div",
            tag(
                "section",
                tag("div", tag("h2", "Last hours", id="hours"), class_="section-head"),
                parts["activity"],
                aria_labelledby="hours",
                class_="panel",
            ),
            tag(
                "section",
                tag("div", tag("h2", "Workers", id="workers"), parts["summary"], class_="section-head"),
                _workers(parts["fleet"]),
                aria_labelledby="workers",
                class_="panel",
            ),
            class_="overview",
        ),
        tag(
            "section",
            tag("div", tag("h2", "Jobs", id="jobs"), parts["found"], class_="section-head"),
            tag("nav", parts["states"], aria_label="States of Jobs"),
            _filter(parts, query),
            parts["chosen"],
            _table(parts),
            parts["nothing"],
            aria_labelledby="jobs",
        ),
    )
    frame = _Frame(about=about, now=now, kind="jobs", base="", title="JobMirror")
    return _page(frame, main, parts)


def job_page(parts: Mapping[str, Markup], key: SourceKey, about: About, now: datetime) -> Markup:
    """``/jobs/NAMESPACE/NAME``, and ``?kind=KIND`` for another kind than a Job."""
    main = (
        tag("nav", tag("a", "← All Jobs", href="../../."), aria_label="Back", class_="back"),
        parts["head"],
        tag("div", *tabs.panels(parts, key, about.kinds, has_inside=about.has_inside), _aside(parts), class_="columns"),
    )
    what = "" if is_default(key.kind) else f"{key.kind} "
    title = f"{what}{key.namespace}/{key.name} – JobMirror"
    frame = _Frame(about=about, now=now, kind="job", base="../../", title=title)
    return _page(frame, main, parts)


def _aside(parts: Mapping[str, Markup]) -> Markup:
    return tag(
        "div",
        tag("section", tag("h2", "Facts", id="what"), parts["facts"], aria_labelledby="what", class_="panel"),
        tag(
            "section",
            parts["why-not"],
            tag("dl", parts["obstacles"], id="obstacles", class_="facts obstacles", data_list=True),
            parts["pending"],
            aria_labelledby="why-not",
        ),
        class_="aside",
    )


def login_page(problem: str, *, base: str) -> Markup:
    """Where a token is typed."""
    field = tag(
        "input", type="password", name="token", id="token", required=True, autocomplete="off", spellcheck="false",
        autofocus=True, aria_describedby="hint",
    )  # fmt: skip
    hint = tag(
        "p",
        "Your own token of the management cluster, or one of a ServiceAccount of yours: ",
        tag("code", "kubectl create token NAME --duration 8h"),
        ". What you see is what you may get and list there.",
        id="hint",
        class_="muted",
    )
    login = tag(
        "form",
        tag("h1", "JobMirror"),
        tag("p", problem, class_="bad", role="alert") if problem else None,
        tag("label", tag("span", "Bearer token"), field),
        hint,
        tag("button", "Log in", type="submit"),
        method="post",
        action=f"{base}login",
        class_="panel login",
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", "Log in – JobMirror"),
        tag("link", rel="icon", href=f"{base}static/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href=f"{base}static/page.css"),
    )
    body = tag("body", tag("main", login, id="main"), data_kind="login")
    return join(_DOCTYPE, tag("html", head, body, lang="en"))


def error_page(title: str, text: str) -> Markup:
    """What went wrong, in the plainest way."""
    body = tag("body", tag("h1", title), tag("p", text))
    return join(_DOCTYPE, tag("html", tag("head", tag("meta", charset="utf-8"), tag("title", title)), body, lang="en"))


class _Frame(msgspec.Struct, frozen=True, kw_only=True):
    about: About
    now: datetime
    kind: str
    base: str
    """The way to ``/``: addresses are relative, so that a proxy may put all of this below a path of its own."""
    title: str


def _page(frame: _Frame, main: tuple[Markup, ...], parts: Mapping[str, Markup]) -> Markup:
    about, base = frame.about, frame.base
    scripts = ("page.js", "keys.js") if frame.kind == "jobs" else ("page.js", "job.js", "keys.js")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", frame.title),
        tag("link", rel="icon", href=f"{base}static/icon.svg?{about.assets}", type="image/svg+xml"),
        tag("link", rel="stylesheet", href=f"{base}static/page.css?{about.assets}"),
        None if frame.kind == "jobs" else tag("script", src=f"{base}static/early.js?{about.assets}"),
        *(tag("script", src=f"{base}static/{name}?{about.assets}", defer=True) for name in scripts),
    )
    body = tag(
        "body",
        tag("a", "Skip to content", href="#main", class_="skip"),
        _header(parts, base, about.visitor),
        tag("main", *main, id="main", tabindex="-1"),
        tag(
            "footer",
            tag("span", "managed by ", tag("code", about.managed_by)),
            tag("span", "origin ", tag("code", about.origin)),
            tag("span", f"jobmirror {about.version}"),
            tag("span", "read-only"),
        ),
        _keys(frame.kind),
        data_kind=frame.kind,
        data_now=frame.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        data_events=f"{base}events",
    )
    return join(_DOCTYPE, tag("html", head, body, lang="en"))


def _header(parts: Mapping[str, Markup], base: str, visitor: str) -> Markup:
    leave = tag(
        "form",
        tag("span", visitor, class_="visitor", title=visitor),
        tag("button", "Log out", type="submit"),
        method="post",
        action=f"{base}logout",
        class_="leave",
    )
    return tag(
        "header",
        tag("a", "JobMirror", href=base or ".", class_="brand"),
        parts["role"],
        tag(
            "div",
            tag("span", "Not live: reload to update", id="live", role="status", class_="live"),
            tag("button", "Pause", id="pause", type="button", hidden=True),
            tag("button", "Keys", id="help", type="button", hidden=True, aria_keyshortcuts="?"),
            leave if visitor else None,
            class_="right",
        ),
    )


_LIST_KEYS = (
    ("/", "search"), ("j", "next Job"), ("k", "previous Job"), ("Enter", "open the Job"), ("n", "older Jobs"),
    ("p", "newer Jobs"), ("f", "failed"), ("u", "unknown"), ("w", "waiting"), ("a", "all Jobs"),
)  # fmt: skip
_JOB_KEYS = (("1 … 6", "tabs"), ("c", "copy the first command"), ("b", "back to the list"))
_ALL_KEYS = (("x", "pause and resume"), ("?", "this help"), ("Esc", "close it"))


def _keys(kind: str) -> Markup:
    """What the keyboard does; ``assets/keys.js`` does it."""
    own = _LIST_KEYS if kind == "jobs" else _JOB_KEYS
    pairs = [tag("div", tag("dt", tag("kbd", key)), tag("dd", what)) for key, what in (*own, *_ALL_KEYS)]
    return tag(
        "dialog",
        tag("h2", "Keys", id="keys-title"),
        tag("dl", pairs, class_="keys"),
        tag("form", tag("button", "Close", type="submit"), method="dialog"),
        id="keys",
        aria_labelledby="keys-title",
    )


def _filter(parts: Mapping[str, Markup], query: Query) -> Markup:
    """Narrows the list; the state, chosen elsewhere, stays."""

    def field(label: str, element: Markup) -> Markup:
        return tag("label", tag("span", label), element)

    text = tag(
        "input", type="search", name="text", value=query.text, maxlength=LONGEST, placeholder="name, reason or uid",
        autocomplete="off", spellcheck="false", aria_keyshortcuts="/",
    )  # fmt: skip
    namespace = tag(
        "input", name="namespace", value=query.namespace, maxlength=LONGEST, placeholder="any namespace",
        list="namespaces", autocomplete="off", spellcheck="false",
    )  # fmt: skip
    label = tag(
        "input", name="label", value=query.label, maxlength=LONGEST, placeholder="team=a,tier in (x,y)",
        autocomplete="off", spellcheck="false",
    )  # fmt: skip
    sorts = [("", "newest first"), *((name, title.lower()) for _, name, title in COLUMNS)]
    sort = tag(
        "select",
        [tag("option", title, value=name, selected=name == query.sort) for name, title in sorts],
        name="sort",
    )
    return tag(
        "form",
        *(tag("input", type="hidden", name=name, value=getattr(query, name)) for name in ("state", "only", "reason")),
        field("Search", text),
        field("Namespace", namespace),
        field("Worker", parts["worker"]),
        field("Labels", label),
        field("Kind", parts["kind"]),
        tag("label", tag("span", "Sort"), sort, class_="sort"),
        parts["namespaces"],
        tag("button", "Apply", type="submit"),
        id="filter",
        class_="filter",
        role="search",
        aria_label="Jobs",
    )


def _table(parts: Mapping[str, Markup]) -> Markup:
    return tag(
        "table",
        tag("caption", "Jobs", class_="unseen"),
        tag("thead", parts["columns"], role="rowgroup"),
        tag("tbody", parts["rows"], id="rows", role="rowgroup", data_list=True),
        role="table",
        class_="jobs",
    )


def _workers(rows: Markup) -> Markup:
    heads = [tag("th", label, scope="col", role="columnheader", class_=kind) for kind, label in WORKER_COLUMNS]
    table = tag(
        "table",
        tag("caption", "Workers", class_="unseen"),
        tag("thead", tag("tr", heads, role="row"), role="rowgroup"),
        tag("tbody", rows, id="fleet", role="rowgroup", data_list=True),
        role="table",
        class_="fleet",
    )
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="All workers")
