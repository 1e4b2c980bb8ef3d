"""CustomResourceDefinitions on a control plane for as long as a test needs them.

A cluster is everybody's: who defines a kind takes it away again, and is done when nothing of it is left. A definition
with the same name would be refused until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from itertools import product

from e2e.controlplane.client import Client, Json, StatusError
from e2e.jobs import until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GOES_SECONDS = 300.0
"""An API server makes its OpenAPI anew for each that goes; thirteen on three clusters take two cores minutes."""


@asynccontextmanager
async def defined(clients: Iterable[Client], definitions: Iterable[Json]) -> AsyncIterator[None]:
    """These kinds are served on each of these clusters."""
    pairs = list(product(clients, definitions))
    try:
        await asyncio.gather(*(define(client, definition) for client, definition in pairs))
        yield
    finally:
        await asyncio.gather(*(undefine(client, name_of(definition)) for client, definition in pairs))


async def define(client: Client, definition: Json) -> None:
    """Serve a kind, in each of the versions that its definition serves.

    Discovery lists it then, too, which lags behind: a controller that finds its kind missing there may end.
    """
    await client.create(DEFINITIONS, definition)
    for path in _lists(definition):
        version, _, plural = path.rpartition("/")
        await until(partial(client.list, path), lambda _: True)
        await until(partial(client.get, version), partial(_is_listed, plural))


async def undefine(client: Client, name: str) -> None:
    """Serve a kind no more; with that, all its objects go. ``name`` is ``PLURAL.GROUP``; one that is not there is gone.

    Raises:
        TimeoutError: something of it stays, such as an object that a finalizer keeps.
    """
    path = f"{DEFINITIONS}/{name}"
    try:
        definition = await client.get(path)
    except StatusError as error:
        if error.status == 404:
            return
        raise
    await client.delete(path)
    for one in (path, *_lists(definition)):
        await until(partial(_is_there, client, one), lambda there: not there, seconds=GOES_SECONDS)


def name_of(definition: Json) -> str:
    """``PLURAL.GROUP``."""
    name: str = definition["metadata"]["name"]
    return name


def _lists(definition: Json) -> list[str]:
    spec = definition["spec"]
    versions = [version["name"] for version in spec["versions"] if version["served"]]
    return [f"/apis/{spec['group']}/{version}/{spec['names']['plural']}" for version in versions]


def _is_listed(plural: str, discovered: Json) -> bool:
    return any(one["name"] == plural for one in discovered["resources"])


async def _is_there(client: Client, path: str) -> bool:
    try:
        await client.get(path)
    except StatusError as error:
        if error.status != 404:
            raise
        return False
    return True
