"""The FlowSchema for our Leases on a real API server: it is taken, and sorts what we send, and nothing else.

A server says in each response by which FlowSchema the request was sorted (API Priority and Fairness).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from e2e import shipped
from e2e.controlplane.client import MERGE_PATCH, Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.controlplane.kubeconfigs import read_kubeconfig
from e2e.jobs import until
from e2e.shipped import SHIPPED_NAMESPACE

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]

SCHEMA = shipped.RBAC.parent / "flow-schema.yaml"
SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
LEASE: Json = {"metadata": {"name": "jobmirror-slot-03-of-16"}, "spec": {"leaseDurationSeconds": 30}}
RIGHTS = ("management", "management-sharding")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    async with Cluster.start("flows", BARE) as started:
        yield started


async def account(cluster: Cluster, namespace: str) -> Path:
    """A kubeconfig of the account of an installation in this namespace, with the shipped rights."""
    return await shipped.account(cluster, namespace, shipped.read(*RIGHTS, namespace=namespace))


async def sorted_by(kubeconfig: Path, method: str, path: str, body: Json | None = None) -> tuple[int, str]:
    """The status of a response, and the uid of the FlowSchema by which the request was sorted."""
    access = read_kubeconfig(kubeconfig)
    content = MERGE_PATCH if method == "PATCH" else "application/json"
    headers: Mapping[str, str] = {**access.headers, "content-type": content}
    data = None if body is None else msgspec.json.encode(body)
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, access.server + path, data=data, headers=headers, ssl=access.tls or False) as response,
    ):
        return response.status, response.headers["X-Kubernetes-PF-FlowSchema-UID"]


async def test_a_server_sorts_requests_about_our_leases_as_leader_election(cluster: Cluster) -> None:
    """Of each verb that we use; what else we send, and what others send, stays where it was."""
    ours, others = await account(cluster, SHIPPED_NAMESPACE), await account(cluster, "elsewhere")
    here, elsewhere = LEASES.format(SHIPPED_NAMESPACE), LEASES.format("elsewhere")
    async with cluster.client() as client:
        uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await client.list(SCHEMAS)}
        as_others = uids["service-accounts"]
        assert await sorted_by(ours, "GET", here) == (200, as_others)

        said = await cluster.kubectl("apply", "--server-side", "--validate=strict", "--filename", str(SCHEMA))
        assert "Warning" not in said
        found = await client.wait_until(f"{SCHEMAS}/jobmirror-leases", dangles)
        assert dangles(found) == "False"  # the priority that it names is there
        as_leases = found["metadata"]["uid"]
        await until(lambda: sorted_by(ours, "GET", here), lambda answer: answer == (200, as_leases))

    one = f"{here}/{LEASE['metadata']['name']}"
    assert await sorted_by(ours, "POST", here, LEASE) == (201, as_leases)
    assert await sorted_by(ours, "GET", one) == (200, as_leases)
    assert await sorted_by(ours, "GET", f"{here}?watch=1&timeoutSeconds=1") == (200, as_leases)
    assert await sorted_by(ours, "PATCH", one, {"spec": {"holderIdentity": "one"}}) == (200, as_leases)
    async with cluster.client() as client:
        renewed = await client.get(one)
    assert await sorted_by(ours, "PUT", one, renewed) == (200, as_leases)
    assert await sorted_by(ours, "DELETE", one) == (200, as_leases)

    assert await sorted_by(ours, "GET", "/apis/batch/v1/jobs") == (200, as_others)
    assert await sorted_by(ours, "GET", elsewhere) == (403, as_others)
    assert await sorted_by(others, "GET", elsewhere) == (200, as_others)
    assert await sorted_by(others, "GET", here) == (403, as_others)


def dangles(found: Json | None) -> str:
    """What a FlowSchema's condition ``Dangling`` says; empty: nothing yet."""
    listed = ((found or {}).get("status") or {}).get("conditions") or ()
    return next((str(one["status"]) for one in listed if one["type"] == "Dangling"), "")
