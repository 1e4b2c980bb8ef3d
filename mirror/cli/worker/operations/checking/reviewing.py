"""Which permissions an account has on a cluster, asked by access reviews; nothing is changed by them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.objects import JUNK
from mirror.kube.permissions import Permission
from mirror.kube.resources import Resource

DEADLINE_SECONDS = 5.0


class _Review(msgspec.Struct):
    status: Mapping[str, object] = {}


async def allowed(
    client: Client, reviews: Resource, wanted: Sequence[Permission], *, user: str = ""
) -> dict[Permission, bool | None]:
    """Which of these somebody has; None: the question was not answered.

    Args:
        client: whose account may ask.
        reviews: ``SelfSubjectAccessReview`` for that account's own, ``SubjectAccessReview`` for another's.
        wanted: what is asked for.
        user: the other account.
    """
    async with asyncio.TaskGroup() as scope:
        asked = {one: scope.create_task(_ask(client, reviews, one, user), name=f"may {one}") for one in wanted}
    return {one: task.result() for one, task in asked.items()}


async def _ask(client: Client, reviews: Resource, wanted: Permission, user: str) -> bool | None:
    spec: dict[str, object] = {"resourceAttributes": wanted.attributes}
    if user:
        spec["user"] = user
        namespace = user.split(":")[2]
        # What an API server adds to every request of a service account.
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        spec["groups"] = groups
    body = {"apiVersion": reviews.api_version, "kind": reviews.kind, "spec": spec}
    request = replace(requests.create(reviews, body), deadline_seconds=DEADLINE_SECONDS)
    try:
        answer = msgspec.json.decode(await client.send(request), type=_Review)
    except (KubeError, *JUNK):
        return None
    return answer.status.get("allowed") is True
