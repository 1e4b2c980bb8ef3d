"""``mirror worker check`` on a worker that cannot be connected to: what failed first, and nothing that needs more."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml
from aiohttp import web
from test_cli_worker import HOME, Clusters, clusters

from mirror.cli.user.failures import Failure
from mirror.cli.worker import add, check
from mirror.cli.worker.check import lines
from mirror.cli.worker.operations.checking import probing
from mirror.model import names

__all__ = ["clusters"]


@pytest.fixture
async def worker(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> Clusters:
    monkeypatch.setattr(probing, "DEADLINE_SECONDS", 1.0)
    await add.add(clusters.asked(no_check=True))
    return clusters


async def leads_to(clusters: Clusters, server: str) -> None:
    """The worker's address from now on."""
    path = f"/api/v1/namespaces/{HOME}/secrets/east"
    secret = await clusters.management.api.get(path)
    document: dict[str, Any] = yaml.safe_load(base64.b64decode(secret["data"]["kubeconfig"]))
    document["clusters"][0]["cluster"]["server"] = server
    data = {"kubeconfig": base64.b64encode(yaml.safe_dump(document, width=2**20).encode()).decode()}
    await clusters.management.api.merge(path, {"data": data})


async def told(clusters: Clusters, *allow: str) -> list[tuple[str, str, str]]:
    """All findings, in order."""
    async with check.clusters.home(clusters.where) as home:
        (report,) = await check.reports(home, check.Asked(allow=("loopback", *allow), where=clusters.where))
    assert not any("TLS" in line for line in lines("east", report.findings) if "connection" in line)
    return [(one.what, one.verdict, one.text) for one in report.findings]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


FINE = ["secret", "kubeconfig"]
"""What is checked without a connection, before and after it."""


async def test_a_closed_port_is_connection_refused(worker: Clusters) -> None:
    """No word of TLS, certificates or tokens: nothing of them is known."""
    await leads_to(worker, f"https://127.0.0.1:{closed_port()}")
    found = await told(worker)

    assert [*FINE, "connection", "manager"] == [what for what, _, _ in found]
    assert found[2][1:][0] == "fail"
    assert found[2][2].endswith(": connection refused")


async def test_the_managers_own_reason_follows_a_refused_kubeconfig(worker: Clusters) -> None:
    """What is not allowed here may be allowed there, and something else be wrong."""
    why = "this cluster is registered already, as worker west"
    entry = json.dumps({"state": "Lost", "since": "2026-03-01T12:00:00Z", "reason": why})
    record = {"metadata": {"name": names.WORKERS_CONFIGMAP, "namespace": HOME}, "data": {"east": entry}}
    await worker.management.api.create(f"/api/v1/namespaces/{HOME}/configmaps", record)
    async with check.clusters.home(worker.where) as home:
        (report,) = await check.reports(home, check.Asked(where=worker.where))

    assert [(one.what, one.verdict) for one in report.findings[1:]] == [("kubeconfig", "fail"), ("manager", "fail")]
    assert "loopback" in report.findings[1].text
    assert why in report.findings[2].text


async def test_the_check_of_a_worker_that_was_renamed_names_its_old_name(worker: Clusters) -> None:
    """Under that name its Jobs go on."""
    uid = (await worker.east.api.get("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    entry = json.dumps({"state": "Lost", "uid": uid, "reason": "its Secret was deleted; no Secret registers it"})
    record = {"metadata": {"name": names.WORKERS_CONFIGMAP, "namespace": HOME}, "data": {"old": entry}}
    await worker.management.api.create(f"/api/v1/namespaces/{HOME}/configmaps", record)
    async with check.clusters.home(worker.where) as home:
        (report,) = await check.reports(home, check.Asked(allow=("loopback",), where=worker.where))
    [identity] = [one for one in report.findings if one.what == "identity"]

    assert "as worker old, whose Secret was deleted" in identity.text
    assert identity.fix == "mirror worker remove east, then add it under old"


async def test_a_name_that_does_not_exist_is_dns(worker: Clusters) -> None:
    """The address is wrong, or the resolver."""
    await leads_to(worker, "https://nobody.invalid:6443")
    found = await told(worker)

    assert [*FINE, "connection", "manager"] == [what for what, _, _ in found]
    assert found[2] == ("connection", "fail", "https://nobody.invalid:6443: no such host (DNS)")


@pytest.mark.slow
async def test_silence_is_a_timeout(worker: Clusters) -> None:
    """A firewall that drops: no connection within the deadline."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        crowd = [socket.socket() for _ in range(3)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        await leads_to(worker, f"https://127.0.0.1:{full.getsockname()[1]}")
        found = await told(worker)
        for one in crowd:
            one.close()

    assert [*FINE, "connection", "manager"] == [what for what, _, _ in found]
    assert found[2][2].endswith(": connection timed out after 1 s")


@asynccontextmanager
async def plain_http() -> AsyncIterator[int]:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_a_server_without_tls_fails_at_tls(worker: Clusters) -> None:
    """It is reached, and is no API server."""
    async with plain_http() as port:
        await leads_to(worker, f"https://127.0.0.1:{port}")
        found = await told(worker)

    assert [*FINE, "TLS", "manager"] == [what for what, _, _ in found]
    assert found[2][2] == "TLS handshake failed: server does not speak TLS on this port"


@asynccontextmanager
async def another_program(status: int, text: str, **headers: str) -> AsyncIterator[int]:
    async def greet(_: web.Request) -> web.Response:
        return web.Response(text=text, status=status, content_type="text/html", headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", greet)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("status", [200, 404, 302])
async def test_a_server_that_is_no_kubernetes_is_called_so(worker: Clusters, status: int) -> None:
    """The advice is its address: it has no control plane that could be upgraded, and no credentials of ours."""
    async with another_program(status, "<html>welcome</html>") as port:
        await leads_to(worker, f"http://127.0.0.1:{port}")
        found = await told(worker, "http")

    assert [*FINE, "TLS", "connection", "manager"] == [what for what, _, _ in found]
    assert found[3][1] == "fail"
    assert f"http://127.0.0.1:{port} is not a Kubernetes API server: " in found[3][2]


async def test_credentials_that_are_rejected_by_a_wrong_clock_point_to_it(worker: Clusters) -> None:
    """A token that is good here may have expired there, or not be valid yet."""
    async with another_program(401, "", Date="Sun, 01 Jan 2040 00:00:00 GMT") as port:
        await leads_to(worker, f"http://127.0.0.1:{port}")
        found = await told(worker, "http")

    assert [*FINE, "TLS", "connection", "clock", "manager"] == [what for what, _, _ in found]
    assert found[3][2] == "credentials rejected (401 Unauthorized)"
    assert found[4][1] == "warn"
    assert "ahead of this machine's" in found[4][2]


async def test_the_command_fails_naming_the_worker(worker: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    """What is read, line by line."""
    port = closed_port()
    await leads_to(worker, f"https://127.0.0.1:{port}")
    capsys.readouterr()
    with pytest.raises(Failure, match=r"^checks failed: east$"):
        await check.check(check.Asked(allow=("loopback",), where=worker.where))

    assert capsys.readouterr().out.splitlines() == [
        "worker east",
        "  ✓ secret: well-formed",
        f"  ✓ kubeconfig: accepted; the server is https://127.0.0.1:{port}",
        f"  ✗ connection: https://127.0.0.1:{port}: connection refused",
        "      → nothing listens there: check that the API server runs, and its port in the kubeconfig",
        "  ! manager: has not reported this worker yet",
        "      → check that the manager runs in this namespace and is ready; if not, its log and /readyz say why",
    ]
