"""Requests as plain values; building one does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mirror.kube.resources import Resource
from mirror.model import names

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
DEADLINE_SECONDS = 15.0

_encode = msgspec.json.Encoder().encode


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
    """Leases and probes: not counted against the client-side rate limit."""


def get(resource: Resource, name: str, *, namespace: str | None = None) -> Request:
    return Request("get", "GET", resource.path(namespace, name))


def list_page(
    resource: Resource,
    *,
    namespace: str | None = None,
    label_selector: str = "",
    limit: int = 500,
    continue_token: str = "",
    resource_version: str = "",
) -> Request:
    query = [("limit", str(limit))]
    if label_selector:
        query.append(("labelSelector", label_selector))
    if continue_token:
        query.append(("continue", continue_token))
    elif resource_version:
        query.append(("resourceVersion", resource_version))
    return Request("list", "GET", resource.path(namespace), tuple(query), deadline_seconds=60.0)


def watch(
    resource: Resource,
    *,
    namespace: str | None = None,
    label_selector: str = "",
    resource_version: str = "",
    timeout_seconds: int,
    initial_events: bool = False,
) -> Request:
    """A watch from a version or, with ``initial_events``, one that begins with all objects and a marking bookmark."""
    query = [("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(timeout_seconds))]
    if label_selector:
        query.append(("labelSelector", label_selector))
    if initial_events:
        query += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
    if resource_version:
        query.append(("resourceVersion", resource_version))
    return Request("watch", "GET", resource.path(namespace), tuple(query), deadline_seconds=timeout_seconds + 30.0)


def create(resource: Resource, body: Mapping[str, Any] | bytes, *, namespace: str | None = None) -> Request:
    data = body if isinstance(body, bytes) else _encode(body)
    query = (("fieldManager", names.FIELD_MANAGER),)
    return Request("create", "POST", resource.path(namespace), query, data, JSON)


def update(resource: Resource, name: str, body: Mapping[str, Any], *, namespace: str | None = None) -> Request:
    query = (("fieldManager", names.FIELD_MANAGER),)
    return Request("update", "PUT", resource.path(namespace, name), query, _encode(body), JSON)


def json_patch(
    resource: Resource,
    name: str,
    operations: Sequence[Mapping[str, Any]],
    *,
    namespace: str | None = None,
    subresource: str | None = None,
) -> Request:
    query = (("fieldManager", names.FIELD_MANAGER),)
    path = resource.path(namespace, name, subresource)
    return Request("patch", "PATCH", path, query, _encode(operations), JSON_PATCH)


def merge_patch(
    resource: Resource,
    name: str,
    body: Mapping[str, Any],
    *,
    namespace: str | None = None,
    subresource: str | None = None,
) -> Request:
    query = (("fieldManager", names.FIELD_MANAGER),)
    path = resource.path(namespace, name, subresource)
    return Request("patch", "PATCH", path, query, _encode(body), MERGE_PATCH)


def delete(
    resource: Resource, name: str, *, namespace: str | None = None, uid: str = "", propagation: str = "Background"
) -> Request:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
    if uid:
        options["preconditions"] = {"uid": uid}
    return Request("delete", "DELETE", resource.path(namespace, name), (), _encode(options), JSON)
