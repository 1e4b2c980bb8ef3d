"""What controllers ask of an API server, with plain dicts in and out, in their own name (field manager)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec

from mirror.kube.client import Client
from mirror.kube.errors import BadAnswer
from mirror.kube.objects import JUNK
from mirror.kube.requests import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Request
from mirror.kube.resources import Resource

Json: TypeAlias = dict[str, Any]

CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
SERVICEACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)

_PAGE = 500
_MOST_PAGES = 20_000
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Api:
    """One controller's client of its API server. All raise ``KubeError`` as ``Client.send`` does."""

    def __init__(self, client: Client, manager: str) -> None:
        self.client = client
        self._query = (("fieldManager", manager),)

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Json:
        """One object."""
        return await self._object(Request("get", "GET", resource.path(namespace, name)))

    async def list_all(
        self, resource: Resource, *, namespace: str | None = None, field_selector: str = ""
    ) -> list[Json]:
        """All objects of a kind, read in pages."""
        found: list[Json] = []
        wanted = (("limit", str(_PAGE)), *((("fieldSelector", field_selector),) if field_selector else ()))
        query = wanted
        for _ in range(_MOST_PAGES):
            page = await self._object(Request("list", "GET", resource.path(namespace), query, deadline_seconds=60.0))
            found += page.get("items") or []
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return found
            query = (*wanted, ("continue", token))
        raise BadAnswer("a list without an end")

    async def create(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> Json:
        """A new object; with a name and a subresource, what that does (a pod's binding)."""
        path = resource.path(namespace, name, subresource)
        return await self._object(Request("create", "POST", path, self._query, _encode(body), JSON))

    async def update(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Json:
        """Replace it."""
        path = resource.path(namespace, name, subresource)
        return await self._object(Request("update", "PUT", path, self._query, _encode(body), JSON))

    async def merge(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Json:
        """A merge patch: lists are replaced."""
        return await self._patch(resource, name, patch, MERGE_PATCH, namespace, subresource)

    async def strategic(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Json:
        """A strategic merge patch: lists are merged as their kind says."""
        return await self._patch(resource, name, patch, STRATEGIC_MERGE_PATCH, namespace, subresource)

    async def json_patch(
        self, resource: Resource, name: str, operations: list[Json], *, namespace: str | None = None
    ) -> Json:
        """A JSON patch."""
        return await self._patch(resource, name, operations, JSON_PATCH, namespace, None)

    async def delete(  # noqa: PLR0913 - the options of a deletion
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str = "",
        version: str = "",
        propagation: str = "",
        grace_seconds: int | None = None,
    ) -> None:
        """Delete it; ``uid`` and ``version`` are preconditions, the rest is the server's choice unless said."""
        path = resource.path(namespace, name)
        body = _encode(_options(uid, version, propagation, grace_seconds))
        await self.client.send(Request("delete", "DELETE", path, (), body, JSON))

    async def delete_all(self, resource: Resource, *, namespace: str, propagation: str = "Background") -> None:
        """Delete a collection."""
        body = _encode(_options("", "", propagation, None))
        request = Request("delete", "DELETE", resource.path(namespace), (), body, JSON, deadline_seconds=60.0)
        await self.client.send(request)

    async def send(self, request: Request, /) -> bytes:
        """A write that was built elsewhere, in this controller's name."""
        return await self.client.send(replace(request, query=self._query))

    async def raw(self, path: str, **query: str) -> Json:
        """Whatever JSON a path gives (discovery)."""
        return await self._object(Request("get", "GET", path, tuple(query.items())))

    async def _patch(
        self,
        resource: Resource,
        name: str,
        patch: object,
        kind: str,
        namespace: str | None,
        subresource: str | None,
    ) -> Json:
        path = resource.path(namespace, name, subresource)
        return await self._object(Request("patch", "PATCH", path, self._query, _encode(patch), kind))

    async def _object(self, request: Request) -> Json:
        try:
            found = _decode(await self.client.send(request))
        except JUNK as error:
            raise BadAnswer("the response is not a Kubernetes object") from error
        if not isinstance(found, dict):
            raise BadAnswer("not an object")
        return found


def _options(uid: str, version: str, propagation: str, grace_seconds: int | None) -> Json:
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
    if preconditions:
        options["preconditions"] = preconditions
    return options
