"""Get and list: what is stored now or was at a version, whole or in pages that agree with each other."""

from __future__ import annotations

import posixpath
import string
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from mirror.batch import label_selectors
from mirror.batch.quoting import quoted
from mirror.embedded.apiserver import side_thread
from mirror.embedded.apiserver.apimachinery import objects, selectors
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, bad_request, failure, gone, not_found
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Strategy
from mirror.embedded.apiserver.messages import Response
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.request.options import EXACT, ListOptions
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Gone, Record

NAME, NAMESPACE = "metadata.name", "metadata.namespace"
EXPIRED = "The resourceVersion for the provided list is too old."
_UNCACHED = "events"
"""The kind of which upstream keeps no watch cache but reads its storage; where that has other words."""
_TOKEN_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_BAD_TOKEN = "invalid continue token: continue key is not valid"
_TOKEN_LETTERS = frozenset(string.ascii_letters + string.digits + "-_")
_NEWEST = -1
"""The version in a token that continues without being consistent."""


class Predicate(NamedTuple):
    """Which objects of a kind are meant."""

    namespace: str
    name: str | None
    """Only the object of this name, if it has one."""
    labels: selectors.Labels
    fields: tuple[selectors.Term, ...]
    """Without those that say the same as ``namespace`` and ``name``."""

    @property
    def is_everything(self) -> bool:
        """Whether nothing but the namespace is asked for."""
        return self.name is None and not self.labels and not self.fields

    def takes(self, kind: Kind, record: Record) -> bool:
        """Whether this object is meant; its namespace is looked at, too."""
        if self.namespace and record.namespace != self.namespace:
            return False
        if self.name is not None and record.name != self.name:
            return False
        if self.labels and not label_selectors.matches(self.labels, record.labels):
            return False
        return not self.fields or selectors.matches_fields(self.fields, fields_of(kind, record))


async def get(deps: Dependencies, scope: RequestScope) -> Response:
    """One object. Raises: StatusError 400, 404, 504."""
    if scope.request.query:
        options.check_export(scope.request)
        _check_get(deps, scope)
    record = deps.storage.get(scope.kind.stored_as, scope.namespace, scope.name)
    if record is None:
        raise not_found(scope.kind.plural, scope.kind.group, scope.name)
    raw = record.raw if not scope.kind.strategy.is_converted else objects.shown(scope.kind, record)
    return await responses.showing(scope, raw, deps.clock)


async def list_objects(deps: Dependencies, scope: RequestScope) -> Response:
    """A list or a page of one. Raises: StatusError 400, 406, 410, 422, 504."""
    wanted = await scope.pure(lambda: options.list_options(scope.request))
    predicate = predicate_of(scope, wanted)
    page = await page_of(deps.storage, scope, predicate, wanted)
    return await listed(scope, page, deps.clock.now())


async def listed(scope: RequestScope, page: Page, now: datetime) -> Response:
    """The answer of a page; beside the loop if its objects are converted and large."""
    kind, records = scope.kind, page.records

    def answer() -> Response:
        return responses.of_list(scope, (objects.shown(kind, one) for one in records), page.meta, now)

    if scope.format == options.PLAIN and not kind.strategy.is_converted:
        return answer()
    return await scope.pure(answer, *(one.raw for one in records))


class Page(NamedTuple):
    """Some objects, and the ``metadata`` of their list."""

    records: list[Record]
    meta: Json


async def page_of(storage: Storage, scope: RequestScope, predicate: Predicate, wanted: ListOptions) -> Page:
    """The objects that are meant, as they are when this is called. Raises: StatusError 400, 410, 504."""
    kind = scope.kind
    version, after = _place(storage, kind, predicate, wanted)
    shown_version = storage.version if version is None else version
    try:
        if predicate.name is not None:
            found = _named(storage, kind, predicate, version)
        else:
            found = storage.records(kind.stored_as, predicate.namespace or None, version=version, after=after)
    except Gone as error:
        raise _expired(predicate, wanted, after) from error
    meta: Json = {"resourceVersion": str(shown_version)} if kind.strategy.struct else _custom_meta(shown_version)
    if predicate.name is not None:
        return Page(list(found), meta)
    if scope.thread is None or predicate.is_everything:
        return _page(kind, predicate, wanted, found, meta, shown_version)
    snapshot = list(found)
    conditions = len(predicate.labels) + len(predicate.fields)
    work = conditions * len(snapshot) + (sum(len(one.raw) for one in snapshot) if predicate.fields else 0)
    return await side_thread.pure(
        scope.thread, work, lambda: _page(kind, predicate, wanted, iter(snapshot), meta, shown_version)
    )


def _page(
    kind: Kind, predicate: Predicate, wanted: ListOptions, found: Iterator[Record], meta: Json, shown_version: int
) -> Page:
    """Of the objects that are there, sorted by key, those that are meant."""
    records: list[Record] = []
    for one in found:
        # As long as there are keys there may be another page: nobody looks ahead whether one of them is meant.
        if 0 < wanted.limit == len(records):
            meta["continue"] = token(_start(predicate, records[-1].key), shown_version)
            if predicate.is_everything:
                meta["remainingItemCount"] = 1 + sum(1 for _ in found)
            break
        if predicate.is_everything or predicate.takes(kind, one):
            records.append(one)
    return Page(records, meta)


def predicate_of(scope: RequestScope, wanted: ListOptions) -> Predicate:
    """What the options and the path ask for together. Raises: StatusError 400."""
    kind = scope.kind
    for term in wanted.fields:
        if term.field != NAME and term.field not in kind.strategy.selectable and not _has_namespace(kind, term.field):
            raise bad_request(kind.strategy.selector_refusal.format(label=term.field))
    name, namespace = selectors.exact(wanted.fields, NAME), scope.namespace
    if scope.name:
        if wanted.fields and name != scope.name:
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        name = scope.name
    if not namespace and kind.is_namespaced:
        namespace = selectors.exact(wanted.fields, NAMESPACE) or ""
    fields = tuple(one for one in wanted.fields if one not in ((NAME, name, True), (NAMESPACE, namespace, True)))
    return Predicate(namespace, name, wanted.labels, fields)


def fields_of(kind: Kind, record: Record) -> Callable[[str], str]:
    """The values of an object's selectable fields; it is decoded only for those that need it."""
    body: Json | None = None

    def value(field: str) -> str:
        nonlocal body
        if field == NAME:
            return record.name
        if field == NAMESPACE:
            return record.namespace
        if body is None:
            body = objects.body_of(kind, record)
        return kind.strategy.selectable[field](body)

    return value


def parsed_version(text: str) -> int:
    """A version of a query; none and ``0`` are 0. Raises: ValueError with the words of the server."""
    if text in ("", "0"):
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ValueError(
            f"resourceVersion: Invalid value: {quoted(text)}: strconv.ParseUint: parsing {quoted(text)}: invalid syntax"
        )
    if len(text) > 20 or int(text) >= 2**64:
        raise ValueError(
            f"resourceVersion: Invalid value: {quoted(text)}: strconv.ParseUint: parsing {quoted(text)}: "
            "value out of range"
        )
    return int(text)


def too_large(kind: Kind, version: int, current: int) -> StatusError:
    """504: nobody has seen this version yet."""
    causes: list[Json] = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    details: Json = {"causes": causes}
    if kind.stored_as != _UNCACHED:
        details["retryAfterSeconds"] = 1
    return StatusError(failure(504, "Timeout", message, details))


def token(start: str, version: int) -> str:
    """A ``continue`` for the page that begins after this key."""
    raw = objects.encode({"v": "meta.k8s.io/v1", "rv": version, "start": start + "\0"})
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


def _place(storage: Storage, kind: Kind, predicate: Predicate, wanted: ListOptions) -> tuple[int | None, str]:
    """At which version to read (None: now), and after which key."""
    if wanted.token:
        start, version = _read_token(wanted.token)
        if wanted.version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        after = f"{predicate.namespace}/{start}" if predicate.namespace else start
        return (None if version == _NEWEST else version), after
    try:
        version = parsed_version(wanted.version)
    except ValueError as error:
        raise bad_request(f"invalid resource version: {error}") from error
    if version > storage.version:
        raise too_large(kind, version, storage.version)
    is_exact = wanted.match == EXACT or (not wanted.match and wanted.limit > 0 and version > 0)
    return (version if is_exact else None), ""


def _read_token(text: str) -> tuple[str, int]:
    strange = next((place for place, one in enumerate(text) if one not in _TOKEN_LETTERS), None)
    if strange is not None or len(text) % 4 == 1:
        place = len(text) - 1 if strange is None else strange
        raise bad_request(f"{_BAD_TOKEN}: illegal base64 data at input byte {place}")
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    try:
        found = msgspec.json.decode(data, type=_Token)
    except (ValueError, RecursionError) as error:
        first = chr(data[0]) if data else ""
        why = f"invalid character '{first}' looking for beginning of value" if first != "{" else str(error)
        raise bad_request(f"{_BAD_TOKEN}: {why}") from error
    if found.v != "meta.k8s.io/v1":
        raise bad_request(f"{_BAD_TOKEN}: server does not recognize this encoded version {found.v}")
    if found.rv == 0:
        raise bad_request(f"{_BAD_TOKEN}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not found.start:
        raise bad_request(f"{_BAD_TOKEN}: encoded start key empty (version meta.k8s.io/v1)")
    key = found.start if found.start.startswith("/") else f"/{found.start}"
    if posixpath.normpath(key) != key:
        raise bad_request(f"{_BAD_TOKEN}: {found.start}")
    return key[1:].removesuffix("\0"), found.rv


def _custom_meta(version: int) -> Json:
    """Lists of custom objects always say whether they go on."""
    return {"continue": "", "resourceVersion": str(version)}


def _start(predicate: Predicate, key: str) -> str:
    """A key as upstream writes it in tokens, after the prefix that all objects of the list share."""
    if predicate.namespace:
        return key.removeprefix(f"{predicate.namespace}/")
    return key if "/" in key else f"/{key}"


def _has_namespace(kind: Kind, field: str) -> bool:
    """Whether it is the namespace, which all kinds can be selected by but those of the cluster with own selectors."""
    return field == NAMESPACE and (kind.is_namespaced or kind.strategy.selector_refusal == Strategy.selector_refusal)


def _expired(predicate: Predicate, wanted: ListOptions, after: str) -> StatusError:
    if not wanted.token:
        return gone(EXPIRED)
    refused = gone(_TOKEN_EXPIRED)
    refused.status["metadata"] = {"continue": token(_start(predicate, after), _NEWEST)}
    return refused


def _named(storage: Storage, kind: Kind, predicate: Predicate, version: int | None) -> Iterator[Record]:
    if version is None and (predicate.namespace or not kind.is_namespaced):
        record = storage.get(kind.stored_as, predicate.namespace, predicate.name or "")
        found = iter(()) if record is None else iter((record,))
    else:
        found = storage.records(kind.stored_as, predicate.namespace or None, version=version)
    return (one for one in found if predicate.takes(kind, one))


def _check_get(deps: Dependencies, scope: RequestScope) -> None:
    try:
        version = parsed_version(scope.request.parameters.get("resourceVersion", ""))
    except ValueError as error:
        raise StatusError(failure(500, "", str(error))) from error
    if version > deps.storage.version:
        raise too_large(scope.kind, version, deps.storage.version)
