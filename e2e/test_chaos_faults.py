"""What a campaign breaks is broken as it says, and whole again: a disk that is full."""

from __future__ import annotations

from functools import partial

import aiohttp
import pytest

from e2e.chaos import faults
from e2e.chaos.etcd import Etcd
from e2e.chaos.world import Site
from e2e.controlplane.client import Client, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.jobs import until

NO_SPACE = "etcdserver: mvcc: database space exceeded"
PATH = "/api/v1/namespaces/default/configmaps"


async def refusal_of_a_write(client: Client) -> str:
    """What an API server says to one; empty: it was carried out."""
    try:
        await client.create(PATH, {"metadata": {"generateName": "some-"}})
    except (StatusError, aiohttp.ClientError) as error:
        return str(error)
    return ""


@pytest.mark.usefixtures("binaries")
async def test_a_full_disk_takes_nothing_until_it_is_larger() -> None:
    """etcd itself finds that its quota is used up, and serves reads and deletions; twice, since it is mended."""
    async with (
        Cluster.start("east", BARE) as cluster,
        Etcd.connected(cluster.directory / "etcd.sock") as etcd,
        cluster.client() as client,
    ):
        site, write = Site(cluster, etcd), partial(refusal_of_a_write, client)
        for _ in range(2):
            await until(write, lambda text: text == "")
            async with faults.full(site):
                await until(write, lambda text: NO_SPACE in text)
                (found, *_) = [one for one in await client.list(PATH) if one["metadata"]["name"].startswith("some-")]
                await client.delete(f"{PATH}/{found['metadata']['name']}")
            await until(write, lambda text: text == "")
