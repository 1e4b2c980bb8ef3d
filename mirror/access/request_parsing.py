"""Reads a request: of which kind, which object, what of it, every parameter checked. Pure.

Any bytes give at most a ``StatusError``. A path names a kind by its resource: ``jobs``, or ``jobs.batch``.

The grammar is in docs/access.md. Not here: who asks (``reviews``) and what is answered (``service``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import parse_qsl, unquote

from mirror.access.answers import StatusError
from mirror.access.bounds import Bounds
from mirror.batch import times
from mirror.batch.syntax import label_problems, subdomain_problems
from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds, UnknownKind, resource_name
from mirror.serving.client_certificates import CertificateUser

T = TypeVar("T")

LONGEST_QUERY = 8_192
MOST_PARAMETERS = 32
LONGEST_CONTINUE = 4_096
MOST_INDEX = 2**31 - 1
MOST_SECONDS = 10 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came. ``target`` is path and query, still percent-encoded; header names are lower-case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    peer: str = ""
    certificate: CertificateUser | None = None
    """Whom the connection's client certificate names, which TLS has verified."""


@dataclass(frozen=True, slots=True)
class Page:
    """How much of a list; ``most`` None: as much as is usual."""

    most: int | None = None
    continue_token: str = ""
    index: int | None = None
    role: str = ""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which log, and what of it."""

    pod: str = ""
    container: str = ""
    index: int | None = None
    role: str = ""
    follow: bool = False
    timestamps: bool = False
    previous: bool = False
    all_containers: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    since_time: str = ""
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is wanted. ``namespace`` None: of all; ``name`` empty: the list; ``what`` empty: the object itself."""

    kind: Kind | None
    """Of what is asked for; None: it is a draft in the request's body, which says it and need not exist."""
    namespace: str | None = None
    name: str = ""
    what: str = ""
    page: Page = Page()
    log: LogOptions = LogOptions()


def read(asked: Asked, kinds: Kinds, bounds: Bounds) -> Question:
    """Understand a request.

    Args:
        asked: as it came.
        kinds: those that can be asked for.
        bounds: the largest numbers that parameters may have.

    Raises:
        StatusError: 400, 404 for a path that is none of ours, 405.
    """
    path, _, query = asked.target.partition("?")
    parts = [_decoded(part) for part in path.strip("/").split("/")]
    parameters = _Parameters(query)
    if parts in (["v1", "diff"], ["v1", "place"]):
        _require(asked.method, "POST")
        question = Question(None, what=parts[1])
    else:
        question = _question(parts, kinds)
        _require(asked.method, "GET")
    match question.what:
        case "log":
            question = replace(question, log=_log_options(parameters, bounds))
        case "pods" | "events" | "":
            question = replace(question, page=_page(parameters, question.kind, bounds.jobs))
        case _:
            pass
    parameters.end()
    if question.log.index is not None:
        _check_index(question.kind)
    _check_role(question.kind, question.log.role or question.page.role)
    return question


def _question(parts: list[str], kinds: Kinds) -> Question:
    match parts:
        case ["v1", resource]:
            return Question(_kind(resource, kinds))
        case ["v1", "namespaces", namespace, resource]:
            return Question(_kind(resource, kinds), _namespace(namespace))
        case ["v1", "namespaces", namespace, resource, name]:
            return Question(_kind(resource, kinds), _namespace(namespace), _name(name))
        case ["v1", "namespaces", namespace, resource, name, ("pods" | "events" | "log" | "diff") as what]:
            return Question(_kind(resource, kinds), _namespace(namespace), _name(name), what)
    raise StatusError(404, "there is no such page; see docs/access.md")


def _kind(resource: str, kinds: Kinds) -> Kind:
    try:
        return kinds.by_path_name(resource)
    except UnknownKind:
        known = ", ".join(map(resource_name, kinds))
        raise StatusError(404, f"there is no such page; see docs/access.md (resources here: {known})") from None


def _require(method: str, wanted: str) -> None:
    if method != wanted:
        raise StatusError(405, f"use {wanted}")


def _namespace(text: str) -> str:
    if label_problems(text):
        raise StatusError(400, "the namespace is no valid name of one")
    return text


def _name(text: str) -> str:
    if subdomain_problems(text):
        raise StatusError(400, "the object's name is no valid name")
    return text


def _decoded(part: str) -> str:
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise StatusError(400, "the path is not UTF-8") from None


def _page(parameters: _Parameters, kind: Kind | None, most_items: int) -> Page:
    token = parameters.text("continue")
    if len(token) > LONGEST_CONTINUE or not token.isascii() or not token.isprintable():
        raise StatusError(400, "continue: not a token that was given out here")
    index = parameters.number("index", 0, MOST_INDEX)
    found = Page(parameters.number("limit", 1, most_items), token, index, parameters.text("role"))
    if found.index is not None:
        _check_index(kind)
    return found


def _check_index(kind: Kind | None) -> None:
    if kind is not None and not kind.pod_index:
        raise StatusError(400, f"index: pods of a {kind.name} have none")


def _check_role(kind: Kind | None, role: str) -> None:
    problem = kind.pod_roles.problem(role) if kind is not None and role else ""
    if problem:
        raise StatusError(400, f"role: {problem}")


def _log_options(parameters: _Parameters, bounds: Bounds) -> LogOptions:
    found = LogOptions(
        pod=parameters.checked("pod", subdomain_problems),
        container=parameters.checked("container", label_problems),
        index=parameters.number("index", 0, MOST_INDEX),
        role=parameters.text("role"),
        follow=parameters.flag("follow"),
        timestamps=parameters.flag("timestamps"),
        previous=parameters.flag("previous"),
        all_containers=parameters.flag("allContainers"),
        tail_lines=parameters.number("tailLines", 0, bounds.tail_lines),
        since_seconds=parameters.number("sinceSeconds", 1, MOST_SECONDS),
        since_time=parameters.time("sinceTime"),
        limit_bytes=parameters.number("limitBytes", 1, bounds.log_bytes),
    )
    if found.since_seconds is not None and found.since_time:
        raise StatusError(400, "at most one of sinceTime and sinceSeconds")
    if found.all_containers and found.container:
        raise StatusError(400, "container names one, allContainers means all: use one of them")
    if found.all_containers and found.follow:
        raise StatusError(400, "follow one container at a time: ask for each of them")
    return found


class _Parameters:
    """The query's parameters; each is taken once, and none may be left."""

    def __init__(self, query: str) -> None:
        if len(query) > LONGEST_QUERY:
            raise StatusError(400, "the query is too long")
        try:
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS, errors="strict")
        except UnicodeDecodeError:
            raise StatusError(400, "the query is not UTF-8") from None
        except ValueError:
            raise StatusError(400, "the query has too many parameters") from None
        self._left = dict(pairs)
        if len(self._left) < len(pairs):
            raise StatusError(400, "a parameter comes twice")

    def text(self, name: str) -> str:
        """Take a parameter as it is; empty if it is missing."""
        return self._left.pop(name, "")

    def checked(self, name: str, problems: Callable[[str], list[str]]) -> str:
        """Take a name.

        Raises:
            StatusError: 400, it is no valid one.
        """
        text = self.text(name)
        if text and problems(text):
            raise StatusError(400, f"{name}: not a valid name")
        return text

    def flag(self, name: str) -> bool:
        """Take a switch; False if it is missing.

        Raises:
            StatusError: 400, it is neither true nor false.
        """
        text = self.text(name).lower()
        if text not in ("", "true", "1", "false", "0"):
            raise StatusError(400, f"{name}: true or false is wanted")
        return text in ("true", "1")

    def number(self, name: str, least: int, most: int) -> int | None:
        """Take a whole number; None if it is missing.

        Raises:
            StatusError: 400, it is none, or out of bounds.
        """
        text = self.text(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 12 and least <= int(text) <= most):
            raise StatusError(400, f"{name}: a whole number from {least} to {most} is wanted")
        return int(text)

    def time(self, name: str) -> str:
        """Take an RFC 3339 time as it is; empty if it is missing.

        Raises:
            StatusError: 400, it is none.
        """
        text = self.text(name)
        try:
            if text:
                times.instant(text)
        except times.BadTime:
            raise StatusError(400, f"{name}: a time like 2026-01-31T12:00:00Z is wanted") from None
        return text

    def end(self) -> None:
        """Look whether all parameters have been taken.

        Raises:
            StatusError: 400, one has not.
        """
        if self._left:
            raise StatusError(400, f"there is no parameter {next(iter(self._left))[:64]!r} here")
