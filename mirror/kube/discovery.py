"""Which resources a server serves, by its discovery documents; whoever is authenticated may read those.

Needed where a refusal says nothing: a server refuses who has no permission before it looks whether it knows the kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import msgspec

from mirror.kube.errors import BadAnswer, NotFound, NotServed, PageNotFound
from mirror.kube.objects import JUNK
from mirror.kube.requests import Request
from mirror.kube.resources import Resource

DEADLINE_SECONDS = 10.0
MOST_VERSIONS = 10
"""Of a group that are looked at: a server is hostile until its answers are bounded (D29)."""


class Sender(Protocol):
    """Sends a request and returns the answer's body."""

    async def send(self, request: Request) -> bytes: ...


class _Resource(msgspec.Struct):
    name: str = ""
    verbs: list[str] = []


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    versions: list[_Version] = []


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] = []


async def is_served(sender: Sender, resource: Resource) -> bool:
    """Whether a server serves this resource in its version.

    Raises:
        KubeError: it does not say.
    """
    return await _found(sender, resource) is not None


async def is_creatable(sender: Sender, resource: Resource) -> bool:
    """Whether a server serves this resource and takes new objects of it.

    While a CustomResourceDefinition is being deleted its objects go, and are answered for as if each had been deleted;
    that it takes no new ones is what tells.

    Raises:
        KubeError: it does not say.
    """
    found = await _found(sender, resource)
    return found is not None and "create" in found.verbs


async def has_no_subresource(sender: Sender, resource: Resource, name: str) -> bool:
    """Whether a server serves this resource, and no subresource of it with this name.

    Raises:
        KubeError: it does not say.
    """
    listed = await _listed(sender, resource)
    names = {one.name for one in listed}
    return resource.plural in names and f"{resource.plural}/{name}" not in names


async def served_versions(sender: Sender, resource: Resource) -> tuple[str, ...]:
    """The versions in which a server serves this resource of a group; its own one alone where that is among them.

    Raises:
        KubeError: it does not say.
    """
    if await is_served(sender, resource):
        return (resource.version,)
    try:
        raw = await sender.send(Request("get", "GET", f"/apis/{resource.group}", deadline_seconds=DEADLINE_SECONDS))
    except (NotFound, NotServed, PageNotFound):
        return ()
    try:
        group = msgspec.json.decode(raw, type=_Group)
    except JUNK as error:
        raise BadAnswer("the response is not an API group") from error
    others = [one.version for one in group.versions[:MOST_VERSIONS] if one.version != resource.version]
    return tuple([one for one in others if await is_served(sender, replace(resource, version=one))])


async def _found(sender: Sender, resource: Resource) -> _Resource | None:
    return next((one for one in await _listed(sender, resource) if one.name == resource.plural), None)


async def _listed(sender: Sender, resource: Resource) -> list[_Resource]:
    """All that its version serves; nothing where that is not served."""
    path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    try:
        raw = await sender.send(Request("get", "GET", path, deadline_seconds=DEADLINE_SECONDS))
    except (NotFound, NotServed, PageNotFound):
        return []
    try:
        return msgspec.json.decode(raw, type=_ResourceList).resources
    except JUNK as error:
        raise BadAnswer("the response is not a list of resources") from error
