"""Requests as plain values; building one does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec

from mirror.kube.resources import Resource
from mirror.model import names

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
DEADLINE_SECONDS = 15.0

_AS_US = (("fieldManager", names.FIELD_MANAGER), ("fieldValidation", "Ignore"))
_STRICTLY = (("fieldManager", names.FIELD_MANAGER), ("fieldValidation", "Strict"))
"""The query of what we write. Warnings of fields that nobody knows cost the server a tenth of a create, and nobody
reads ours: what we copy was stored by a server, which dropped them."""

_encode = msgspec.json.Encoder().encode


class Rank(IntEnum):
    """Who goes first when requests wait for the rate limit."""

    FIRST = 0
    SECOND = 1
    LAST = 2


@dataclass(frozen=True, slots=True)
class Request:
    """One call: what to send, how long to wait, and how to count it."""

    verb: str
    """get, list, watch, create, update, patch or delete; a metric label."""
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str | None = None
    deadline_seconds: float = DEADLINE_SECONDS
    urgent: bool = False
    """Leases and probes: do not wait for the client-side rate limit."""
    rank: Rank = Rank.FIRST
    flow: str = ""
    """On whose behalf it is asked; within a rank, flows take turns."""
    most_bytes: int | None = None
    """The longest answer that is taken; None: what is usual for its verb."""
    any_replica: bool = False
    """A write that a replica without the Lease may send, too: a review, or what all replicas keep."""
    accept: str = JSON
    any_type: bool = False
    """Whether JSON may come under another content type: the index of OpenAPI documents is ``text/plain``."""
    compressed: bool = False
    """Whether the answer may come compressed (gzip), as API servers send long lists where that is accepted."""
    if_none_match: str = ""
    """An ETag: where what is requested still has it, the answer is empty (``Client.send_tagged``)."""

    @property
    def needs_permit(self) -> bool:
        """Whether only the leader may send it, where there is one (D28)."""
        return self.method != "GET" and not self.any_replica

    def by_any_replica(self) -> Request:
        """The same request, to be sent whoever leads."""
        return replace(self, any_replica=True)

    def metadata_only(self) -> Request:
        """The same get or list, whose answer has nothing but metadata."""
        return replace(self, accept=METADATA_LIST if self.verb == "list" else METADATA)

    def may_be_compressed(self) -> Request:
        """The same request, whose answer may come compressed."""
        return replace(self, compressed=True)

    def in_line(self, rank: Rank, flow: str = "") -> Request:
        """The same request with another place among those that wait."""
        return replace(self, rank=rank, flow=flow)


def get(resource: Resource, name: str, *, namespace: str | None = None) -> Request:
    return Request("get", "GET", _path(resource, namespace, name))


def list_page(  # noqa: PLR0913 - the options of a list
    resource: Resource,
    *,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    limit: int = 500,
    continue_token: str = "",
    resource_version: str = "",
) -> Request:
    query = [("limit", str(limit))]
    if label_selector:
        query.append(("labelSelector", label_selector))
    if field_selector:
        query.append(("fieldSelector", field_selector))
    if continue_token:
        query.append(("continue", continue_token))
    elif resource_version:
        query.append(("resourceVersion", resource_version))
    return Request("list", "GET", _collection(resource, namespace), tuple(query), deadline_seconds=60.0)


def watch(  # noqa: PLR0913 - the options of a watch
    resource: Resource,
    *,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    resource_version: str = "",
    timeout_seconds: int,
    initial_events: bool = False,
) -> Request:
    """A watch from a version or, with ``initial_events``, one that begins with all objects and a marking bookmark."""
    query = [("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(timeout_seconds))]
    if label_selector:
        query.append(("labelSelector", label_selector))
    if field_selector:
        query.append(("fieldSelector", field_selector))
    if initial_events:
        query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
    if resource_version:
        query.append(("resourceVersion", resource_version))
    path = _collection(resource, namespace)
    return Request("watch", "GET", path, tuple(query), deadline_seconds=timeout_seconds + 30.0)


def create(
    resource: Resource,
    body: Mapping[str, Any] | bytes,
    *,
    namespace: str | None = None,
    rank: Rank = Rank.FIRST,
    strict: bool = False,
) -> Request:
    """``strict``: refused where the server does not know a field, which it would leave out otherwise."""
    data = body if isinstance(body, bytes) else _encode(body)
    query = _STRICTLY if strict else _AS_US
    return Request("create", "POST", _collection(resource, namespace), query, data, JSON, rank=rank)


def create_for(
    resource: Resource, name: str, subresource: str, body: Mapping[str, Any], *, namespace: str | None = None
) -> Request:
    """What is created at one object and stored nowhere, such as a service account's ``token``."""
    path = _path(resource, namespace, name, subresource)
    return Request("create", "POST", path, _AS_US, _encode(body), JSON)


def update(
    resource: Resource,
    name: str,
    body: Mapping[str, Any],
    *,
    namespace: str | None = None,
    subresource: str | None = None,
) -> Request:
    return Request("update", "PUT", _path(resource, namespace, name, subresource), _AS_US, _encode(body), JSON)


def json_patch(
    resource: Resource,
    name: str,
    operations: Sequence[Mapping[str, Any]],
    *,
    namespace: str | None = None,
    subresource: str | None = None,
    strict: bool = False,
) -> Request:
    path = _path(resource, namespace, name, subresource)
    query = _STRICTLY if strict else _AS_US
    return Request("patch", "PATCH", path, query, _encode(operations), JSON_PATCH)


def merge_patch(
    resource: Resource,
    name: str,
    body: Mapping[str, Any],
    *,
    namespace: str | None = None,
    subresource: str | None = None,
    rank: Rank = Rank.FIRST,
) -> Request:
    path = _path(resource, namespace, name, subresource)
    return Request("patch", "PATCH", path, _AS_US, _encode(body), MERGE_PATCH, rank=rank)


def strategic_merge_patch(
    resource: Resource, name: str, body: Mapping[str, Any] | bytes, *, namespace: str | None = None
) -> Request:
    """A patch that knows how lists of this kind are merged; built-in kinds only."""
    data = body if isinstance(body, bytes) else _encode(body)
    return Request("patch", "PATCH", _path(resource, namespace, name), _AS_US, data, STRATEGIC_MERGE_PATCH)


def apply(resource: Resource, name: str, body: Mapping[str, Any], *, namespace: str | None = None) -> Request:
    """Server-side apply, of an object that is ours by its name: whoever else wrote these fields loses them."""
    query = (*_AS_US, ("force", "true"))
    return Request("patch", "PATCH", _path(resource, namespace, name), query, _encode(body), APPLY_PATCH)


def delete(
    resource: Resource,
    name: str,
    *,
    namespace: str | None = None,
    uid: str = "",
    resource_version: str = "",
    propagation: str = "Background",
) -> Request:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if wanted := {key: value for key, value in preconditions.items() if value}:
        options["preconditions"] = wanted
    return Request("delete", "DELETE", _path(resource, namespace, name), (), _encode(options), JSON)


_collection = lru_cache(maxsize=1024)(Resource.path)
"""The path of a collection, which is the same for thousands of requests."""


def _path(resource: Resource, namespace: str | None, name: str, subresource: str | None = None) -> str:
    """The path of one object or of its subresource, as ``Resource.path`` has it."""
    path = f"{_collection(resource, namespace)}/{quote(name, safe='')}"
    return f"{path}/{subresource}" if subresource else path
