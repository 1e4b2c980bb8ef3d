"""Which resources a server serves, by its discovery documents; whoever is authenticated may read those.

Needed where a refusal says nothing: a server refuses who has no permission before it looks whether it knows the kind.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from mirror.kube.errors import BadAnswer, NotFound, NotServed, PageNotFound
from mirror.kube.objects import JUNK
from mirror.kube.requests import Request
from mirror.kube.resources import Resource

DEADLINE_SECONDS = 10.0


class Sender(Protocol):
    """Sends a request and returns the answer's body."""

    async def send(self, request: Request) -> bytes: ...


class _Resource(msgspec.Struct):
    name: str = ""


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] = []


async def is_served(sender: Sender, resource: Resource) -> bool:
    """Whether a server serves this resource in its version.

    Raises:
        KubeError: it does not say.
    """
    path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    try:
        raw = await sender.send(Request("get", "GET", path, deadline_seconds=DEADLINE_SECONDS))
    except (NotFound, NotServed, PageNotFound):
        return False
    try:
        found = msgspec.json.decode(raw, type=_ResourceList)
    except JUNK as error:
        raise BadAnswer("the response is not a list of resources") from error
    return any(one.name == resource.plural for one in found.resources)
