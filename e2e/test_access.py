"""Users read logs, pods, events and differences of their Jobs' mirrors: real API servers, RBAC, and the shipped rights.

Simulated nodes have no kubelet; a stub of one answers the API server's requests for logs on a port of this machine.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import aiohttp
import pytest
import pytest_asyncio

from e2e.controlplane.client import Client, Json
from e2e.controlplane.components import NODE_NAME
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, job, until
from e2e.kubelets import StubKubelet, stub_kubelet, with_kubelet
from e2e.manager import ManagerProcess
from e2e.serving import https_at
from e2e.test_sharding import SLOTS, managers_that, replicas
from mirror.sharding.slots import slot_of_worker

URL = "https://mirror.example"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RULES: list[Json] = [
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "create"]},
    {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
]
_SERVING = re.compile(r" https: serving listen=127\.0\.0\.1:(\d+)")
_PAGE = re.compile(r" page: started listen=127\.0\.0\.1:(\d+)")


@pytest_asyncio.fixture(loop_scope="session")
async def kubelet(east: ControlPlane) -> AsyncIterator[StubKubelet]:
    """East's node has one, for the time of a test."""
    status = f"/api/v1/nodes/{NODE_NAME}/status"
    async with stub_kubelet() as stub, Client(east.kubeconfig) as client:
        before = (await client.get(f"/api/v1/nodes/{NODE_NAME}"))["status"]
        await with_kubelet(east, stub)
        yield stub
        await client.merge(
            status, {"status": {"addresses": before.get("addresses"), "daemonEndpoints": before.get("daemonEndpoints")}}
        )


@dataclass(frozen=True, slots=True)
class User:
    """A service account of the management cluster, and the manager's server as it sees it."""

    session: aiohttp.ClientSession
    base: str
    token: str
    namespace: str

    async def get(self, what: str, *, token: str | None = None) -> tuple[int, bytes]:
        async with self.open(what, token=token) as answer:
            return answer.status, await answer.read()

    def open(self, what: str, *, token: str | None = None) -> aiohttp.client._RequestContextManager:
        path = what if what.startswith("/") else f"/v1/namespaces/{self.namespace}/jobs/{what}"
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        return self.session.get(self.base + path, headers=headers)


@pytest_asyncio.fixture(loop_scope="session")
async def serving(management: ControlPlane, east: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """A manager that serves users, with exactly the shipped rights."""
    settings = {
        "https": https_at("127.0.0.1:0"),
        "access": {"enabled": True, "url": URL},
        "page": {"enabled": True, "listen": "127.0.0.1:0", "login": True},
    }
    async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
        yield manager


@asynccontextmanager
async def user(manager: ManagerProcess, scene: Scene, name: str, rules: list[Json]) -> AsyncIterator[User]:
    """An account with these rights in the scene's namespace; address and authority are found as users find them."""
    namespace, plane = scene.namespace, manager.management
    kubeconfig = await plane.service_account_kubeconfig(namespace, name)
    roles, bindings = (f"{RBAC}/namespaces/{namespace}/{kind}" for kind in ("roles", "rolebindings"))
    await manager.client.create(roles, {"metadata": {"name": name}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    await manager.client.create(bindings, {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})
    wanted = attributes(rules[-1]) | {"namespace": namespace}
    asked = {"spec": {"user": f"system:serviceaccount:{namespace}:{name}", "resourceAttributes": wanted}}
    # The server hears of new rights a moment later.
    await until(lambda: manager.client.create(REVIEWS, asked), lambda found: found["status"]["allowed"])
    told_at = f"/api/v1/namespaces/{manager.namespace}/configmaps/jobmirror-access"
    await manager.client.wait_until(told_at, bool)
    async with Client(kubeconfig) as own:
        told = (await own.get(told_at))["data"]
        token = own._access.headers["authorization"].removeprefix("Bearer ")
    assert told["url"] == URL
    tls = ssl.create_default_context(cadata=told["ca.crt"])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
        yield User(session, f"https://127.0.0.1:{_port(manager)}", token, namespace)


def attributes(rule: Json) -> Json:
    """The first right that a rule gives, as a review asks for it."""
    resource, _, subresource = rule["resources"][0].partition("/")
    return {"verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": resource, "subresource": subresource}


async def _running(
    manager: ManagerProcess, scene: Scene, east: ControlPlane, *, annotations: Mapping[str, str] | None = None
) -> str:
    """A Job that runs on east; gives its pod's name."""
    await scene.create(job("train", manager.managed_by, run_for="never", annotations=annotations))
    async with Client(east.kubeconfig) as client, asyncio.timeout(120):
        while True:
            pods = await client.list(f"/api/v1/namespaces/{scene.namespace}/pods")
            if pods and pods[0]["status"].get("phase") == "Running":
                return str(pods[0]["metadata"]["name"])
            await asyncio.sleep(0.1)


async def test_a_user_reads_and_follows_a_log_without_rights_on_the_worker(
    serving: ManagerProcess, scene: Scene, east: ControlPlane, kubelet: StubKubelet
) -> None:
    """Token → rights → the mirror's pod → the worker's API server → its kubelet, and the bytes all the way back."""
    pod = await _running(serving, scene, east)
    async with user(serving, scene, "reader", RULES) as reader:
        assert await reader.get("train/log?tailLines=5") == (200, f"log of {pod}\n".encode())
        assert "tailLines=5" in kubelet.asked[-1]
        async with reader.open("train/log?follow=true") as following:
            assert await following.content.readline() == f"log of {pod}\n".encode()
            kubelet.go_on.set()
            assert await following.read() == b"\xff the end\n"
            assert following.headers["X-Jobmirror-Worker"] == "east"


async def test_a_user_sees_pods_events_differences_and_the_story(
    serving: ManagerProcess, scene: Scene, east: ControlPlane
) -> None:
    """What the real servers answer is what is understood here."""
    pod = await _running(serving, scene, east)
    async with user(serving, scene, "viewer", RULES) as viewer:
        # The worker's Job controller sends them beside its work.
        await until(lambda: viewer.get("train/events"), lambda found: b"SuccessfulCreate" in found[1])
        found = {what: await viewer.get(f"train{what}") for what in ("", "/pods", "/diff")}
        assert [code for code, _ in found.values()] == [200] * 3, found
        assert pod.encode() in found["/pods"][1]
        assert b"spec.managedBy" in found["/diff"][1]
        assert b'"kind":"Placed"' in found[""][1]


async def test_what_a_user_may_not_is_refused_plainly(
    serving: ManagerProcess, scene: Scene, east: ControlPlane
) -> None:
    """A right too few, another namespace, a pod of somebody else, a token that is none."""
    await _running(serving, scene, east)
    async with Client(east.kubeconfig) as client:
        body = {"metadata": {"name": "other"}, "spec": {"containers": [{"name": "main", "image": "any"}]}}
        await client.create(f"/api/v1/namespaces/{scene.namespace}/pods", body)
    async with user(serving, scene, "few", RULES[:1]) as few, user(serving, scene, "full", RULES) as full:
        code, text = await few.get("train/log")
        assert (code, b"cannot get pods/log in namespace" in text) == (403, True)
        assert (await full.get("/v1/namespaces/kube-system/jobs/train"))[0] == 403
        assert (await full.get("train/log?pod=other"))[0] == 404
        assert (await full.get("train", token="nonsense"))[0] == 401
    lines = [line for line in serving.log_lines() if " access: access " in line]
    assert any("verdict=refused code=403" in line and "few" in line for line in lines)
    assert not any(few.token in line or full.token in line for line in lines)


async def test_the_page_shows_a_user_their_namespace_and_what_is_inside_their_mirrors(
    serving: ManagerProcess, scene: Scene, east: ControlPlane, kubelet: StubKubelet
) -> None:
    """With a login: by their own token and rights, a live log with them; others' Jobs are not there."""
    pod = await _running(serving, scene, east)
    port = next(found[1] for line in serving.log_lines() if (found := _PAGE.search(line)))
    page, train = f"http://127.0.0.1:{port}", f"/jobs/{scene.namespace}/train"
    async with user(serving, scene, "looker", RULES) as looker, user(serving, scene, "blind", RULES[1:]) as blind:

        async def get(path: str, token: str, header: str = "X-Forwarded-Access-Token") -> tuple[int, str]:
            async with aiohttp.ClientSession() as session, session.get(page + path, headers={header: token}) as answer:
                return answer.status, await answer.text()

        assert (await get("/", "nonsense"))[0] == 401
        code, text = await get("/", f"Bearer {looker.token}", "Authorization")
        assert (code, f">{scene.namespace}/</span>" in text) == (200, True)
        code, text = await get("/", blind.token)
        assert (code, f">{scene.namespace}/</span>" in text) == (200, False)
        assert (await get(train, blind.token))[0] == 403
        assert (await get(train, looker.token))[0] == 200
        code, text = await get(f"{train}/pods", looker.token)
        assert (code, pod in text) == (200, True)
        code, text = await get(f"{train}/manifest", looker.token)
        assert (code, "Mirror on east" in text, 'class="minus"' in text) == (200, True, True)
        code, text = await get(f"{train}/log?tailLines=9", looker.token)
        assert (code, text) == (200, f"log of {pod}\n")
        headers = {"Authorization": f"Bearer {looker.token}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"{page}{train}/log?follow=true") as log,
        ):
            assert await log.content.readline() == f"log of {pod}\n".encode()
            kubelet.go_on.set()
            assert await log.read() == b"\xff the end\n"
    lines = serving.log_lines()
    assert not any(looker.token in line for line in lines)


async def test_any_of_several_managers_answers_a_user(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene, kubelet: StubKubelet
) -> None:
    """Each is asked over its own address; what the holder of east's slot knows, it gives to the others, over TLS.

    kill -9 of that one: the others say which manager does not answer, and a log breaks; then all know again.
    """
    settings: Json = {
        "https": https_at("127.0.0.1:0"),
        "access": {"enabled": True, "url": URL},
        "sharding": {"slots": SLOTS, "address": "127.0.0.1"},
    }
    async with replicas(management, {"east": east, "west": west}, settings=settings) as managers:
        pod = await _running(managers[0], scene, east, annotations={"worker-order": "east"})
        async with user(managers[0], scene, "reader", RULES) as reader:
            everywhere = [replace(reader, base=f"https://127.0.0.1:{_port(one)}") for one in managers]
            for one in everywhere:
                await until(partial(one.get, "train/log?tailLines=5"), lambda got: got == (200, _log(pod)))
                code, text = await one.get("train")
                assert (code, b'"kind":"Mirrored"' in text, b"unavailable" in text) == (200, True, False)
                assert pod.encode() in (await one.get("train/pods"))[1]
            (holder,) = await managers_that(managers, slot=slot_of_worker("east", SLOTS).index)
            others = [one for number, one in enumerate(everywhere) if number != holder]
            async with others[0].open("train/log?follow=true") as following:
                assert await following.content.readline() == _log(pod)
                await managers[holder].kill()
                code, text = await others[0].get("train/pods")
                assert (code, b"which follows worker east, does not answer" in text) == (503, True)
                with pytest.raises(aiohttp.ClientPayloadError):
                    await following.read()
            for one in others:
                await until(partial(one.get, "train/pods"), lambda got: got[0] == 200 and pod.encode() in got[1])
            managers[holder].launch()
            await managers[holder].wait_until_ready(is_leading=False)


def _log(pod: str) -> bytes:
    return f"log of {pod}\n".encode()


def _port(manager: ManagerProcess) -> str:
    """Of its HTTPS address."""
    return next(found[1] for line in manager.log_lines() if (found := _SERVING.search(line)))
