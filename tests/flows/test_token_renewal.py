"""Tokens of workers are renewed by the leader, on whole clusters with RBAC, in virtual time.

Kubeconfigs hold real tokens of the embedded API servers, and lead to them by the name of their host.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from flow_world import HOME, FlowWorld, error_lines, has_ended, repeatable
from prometheus_client.parser import text_string_to_metric_families

from mirror.embedded import virtual
from mirror.embedded.apiserver.authn.tokens import account_user
from mirror.embedded.faults.kinds import Loss
from mirror.embedded.faults.targets import Which
from mirror.kube.client import Client
from mirror.kube.kubeconfig import check_kubeconfig
from mirror.model import names
from mirror.planes.api import Api, Json
from mirror.runtime.environment import Environment
from mirror.telemetry.logs import get_log
from mirror.workers import renewing
from mirror.workers.connection import State
from mirror.workers.renewing import Renewer
from mirror.workers.tokens import Token, bearer_of, read_token
from mirror.workers.worker import Worker

pytestmark = pytest.mark.slow
RBAC = Path(__file__).parents[2] / "config" / "rbac"
SECRET = f"/api/v1/namespaces/{HOME}/secrets/east"
HOUR = 3600
COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}


class TokenWorld(FlowWorld):
    """One worker, reached with a token of its service account only."""

    def __init__(self, scope: asyncio.TaskGroup, *, files: tuple[str, ...], is_enabled: bool) -> None:
        super().__init__(scope, ["east"])
        self.files = files
        self.is_enabled = is_enabled
        self.renewer: Renewer | None = None
        for plane in self.planes.values():
            plane.shape = msgspec.structs.replace(plane.shape, authorization="RBAC")

    async def start(self) -> None:
        await super().start()
        for name, plane in self.planes.items():
            for file in self.files:
                if file.startswith("worker") == (name != "management"):
                    await self.apply(plane.api, file)
        await self.issue(HOUR)
        self._renewing = self._scope.create_task(self._renew(), name="renew")
        await asyncio.sleep(5)

    async def stop(self) -> None:
        self._renewing.cancel()
        await super().stop()

    async def apply(self, api: Api, file: str) -> None:
        for body in yaml.safe_load_all((RBAC / file).read_text()):
            collection = COLLECTIONS[body["kind"]].format(body["metadata"].get("namespace", ""))
            await tolerant(api.create(collection, body))

    async def register(self, name: str, **annotations: str) -> None:
        """Not before there is a token."""

    async def issue(self, seconds: int) -> None:
        """A new kubeconfig, as an operator makes one."""
        api = self.workers["east"].api
        accounts = f"/api/v1/namespaces/{HOME}/serviceaccounts"
        answer = await api.create(f"{accounts}/jobmirror/token", {"spec": {"expirationSeconds": seconds}})
        await self.write(kubeconfig_of("east", answer["status"]["token"]))

    async def write(self, kubeconfig: bytes) -> None:
        metadata = {"name": "east", "namespace": HOME, "labels": {names.WORKER: "true", "region": "eu"}}
        body = {"metadata": metadata, "data": {"kubeconfig": base64.b64encode(kubeconfig).decode()}}
        api = self.management.api
        if await tolerant(api.create(f"/api/v1/namespaces/{HOME}/secrets", body)) is None:
            await api.merge(SECRET, {"data": body["data"]})

    async def kubeconfig(self) -> bytes:
        secret = await self.management.api.get(SECRET)
        return base64.b64decode(secret["data"]["kubeconfig"])

    async def token(self) -> Token:
        return read_token(bearer_of(await self.kubeconfig()))

    async def texts(self, reason: str) -> list[str]:
        events = await self.management.api.list("/api/v1/events")
        return [event["message"] for event in events if event["reason"] == reason]

    async def _connect(self, name: str, kubeconfig: bytes) -> Client:
        token = check_kubeconfig(kubeconfig, {}).user.token
        return self.workers["east"].client(name, user=None, token=token, peer="manager")

    async def _renew(self) -> None:
        assert self.registry is not None
        assert self.mirroring is not None
        management = self.management.client(user=account_user(HOME, "jobmirror"), peer="renewer")
        self.renewer = Renewer(
            management,
            self.registry,
            is_enabled=self.is_enabled,
            is_leading=lambda: True,
            warn=self.mirroring.warn_about_secret,
            environment=Environment(self.clock, get_log("mirror"), self.metrics),
        )
        try:
            await self.renewer.run()
        finally:
            await management.close()

    def sample(self, name: str, **labels: str) -> float | None:
        text = self.metrics.render()[0].decode()
        for family in text_string_to_metric_families(text):
            for one in family.samples:
                if one.name == name and labels.items() <= one.labels.items():
                    return float(one.value)
        return None


ALL_FILES = ("worker.yaml", "worker-tokens.yaml", "management-tokens.yaml")


def in_a_world(*, files: tuple[str, ...] = ALL_FILES, is_enabled: bool = True) -> Callable[..., Callable[[], None]]:
    """Run a flow in virtual time."""

    def around(flow: Callable[[TokenWorld], Awaitable[None]]) -> Callable[[], None]:
        async def lived() -> None:
            with repeatable(0), error_lines():
                async with asyncio.TaskGroup() as scope, world_of(scope, files, is_enabled) as world:
                    await flow(world)

        @wraps(flow)
        def test() -> None:
            virtual.run(lived())

        del test.__wrapped__  # pytest would ask for its arguments
        return test

    return around


@asynccontextmanager
async def world_of(scope: asyncio.TaskGroup, files: tuple[str, ...], is_enabled: bool) -> AsyncIterator[TokenWorld]:
    world = TokenWorld(scope, files=files, is_enabled=is_enabled)
    try:
        await world.start()
        yield world
    finally:
        await world.stop()


async def tolerant(work: Awaitable[Any]) -> Any:
    from mirror.embedded.apiserver.apimachinery.errors import StatusError

    try:
        return await work
    except StatusError:
        return None


def kubeconfig_of(name: str, token: str) -> bytes:
    document: Json = {
        "current-context": "w",
        "contexts": [{"name": "w", "context": {"cluster": "w", "user": "w"}}],
        "clusters": [{"name": "w", "cluster": {"server": f"https://{name}.example:6443"}}],
        "users": [{"name": "w", "user": {"token": token}}],
    }
    return b"# kept\n" + yaml.safe_dump(document, width=10**6).encode()


@in_a_world()
async def test_a_token_is_renewed_and_nobody_notices(world: TokenWorld) -> None:
    """The connection stays, a Job that runs meanwhile is not restarted, and everything else in the Secret is kept."""
    await world.create(run_for="65m")
    await asyncio.sleep(10)
    before, registry = await world.mirror("east"), world.registry
    assert before is not None
    assert registry is not None
    worker, states = registry.workers["east"], set[str]()
    first, since, note = await world.token(), worker.connection.since, registry.on_transition

    def noted(changed: Worker) -> None:
        states.add(changed.connection.state.value)
        note(changed)

    registry.on_transition = noted
    await asyncio.sleep(0.75 * HOUR)

    second = await world.token()
    assert first.expires is not None
    assert second.expires is not None
    assert second.expires > first.expires
    assert (await world.kubeconfig()) == kubeconfig_of("east", bearer_of(await world.kubeconfig()))
    assert (await world.management.api.get(SECRET))["metadata"]["labels"]["region"] == "eu"
    assert worker.connection.since == since
    assert worker.is_reachable
    await asyncio.sleep(0.7 * HOUR)
    assert has_ended(await world.source())
    after = await world.mirror("east")
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"].get("failed", 0) == 0
    assert await world.texts("TokenExpiring") == []
    assert await world.texts("WorkerLost") == []
    assert states == {"Connected"}
    renewed = world.sample("jobmirror_token_renewals_total", worker="east", result="renewed")
    assert renewed is not None
    assert renewed == 2
    expiry = world.sample("jobmirror_worker_token_expiry_timestamp_seconds", worker="east")
    latest = (await world.token()).expires
    assert latest is not None
    assert expiry == latest.timestamp()


@in_a_world(files=("worker.yaml", "management-tokens.yaml"))
async def test_a_missing_right_on_the_worker_is_told_once(world: TokenWorld) -> None:
    """Nothing else is disturbed while the token lasts."""
    await asyncio.sleep(0.95 * HOUR)
    assert len(told := await world.texts("TokenExpiring")) == 1
    assert "asking the worker for a new token: missing permission" in told[0]
    assert "mirror worker add east" in told[0]
    assert world.sample("jobmirror_token_renewals_total", worker="east", result="refused")
    assert world.registry is not None
    assert world.registry.workers["east"].is_reachable


@in_a_world(files=("worker.yaml", "worker-tokens.yaml"))
async def test_a_missing_right_on_the_management_cluster_is_told_once(world: TokenWorld) -> None:
    """And once it is given, the token is renewed."""
    await asyncio.sleep(0.75 * HOUR)
    assert len(told := await world.texts("TokenExpiring")) == 1
    assert "storing the new token: missing permission" in told[0]
    before = await world.token()
    await world.apply(world.management.api, "management-tokens.yaml")
    await asyncio.sleep(0.2 * HOUR)
    assert await world.token() != before


@in_a_world(is_enabled=False)
async def test_what_is_not_to_be_renewed_is_told(world: TokenWorld) -> None:
    """Setting ``workers.renewTokens``: somebody else has to."""
    before = await world.token()
    await asyncio.sleep(0.8 * HOUR)
    assert await world.token() == before
    assert len(told := await world.texts("TokenExpiring")) == 1
    assert "workers.renewTokens is false" in told[0]


@in_a_world()
async def test_a_worker_that_does_not_answer_is_asked_again(world: TokenWorld) -> None:
    """Trying goes on, with pauses, until it is done."""
    before = await world.token()
    which = Which("create", "serviceaccounts", subresource="token", peer="manager")
    world.workers["east"].faults.arrange(Loss.LOSE_ANSWER, which, times=3)
    await asyncio.sleep(0.9 * HOUR)
    assert await world.token() != before
    assert world.sample("jobmirror_token_renewals_total", worker="east", result="failed") == 3


@in_a_world()
async def test_an_expired_token_is_a_loss_that_a_new_one_ends(world: TokenWorld) -> None:
    """The manager was away too long: it cannot ask any more, and says so."""
    world.is_enabled = False
    assert world.renewer is not None
    world.renewer._is_enabled = False
    await asyncio.sleep(1.1 * HOUR)
    assert world.registry is not None
    connection = world.registry.workers["east"].connection
    assert (connection.state, connection.because) == (
        State.LOST,
        "its token has expired: 401 Unauthorized: Unauthorized",
    )
    world.renewer._is_enabled = True
    await asyncio.sleep(300)
    await world.issue(HOUR)
    await asyncio.sleep(20)
    assert world.registry.workers["east"].is_reachable


@in_a_world()
async def test_a_worker_whose_tokens_are_always_due_is_not_asked_all_the_time(world: TokenWorld) -> None:
    """It may say of its tokens what it likes; each renewal is a write to the management cluster and a connection."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renewing, "renew_at", lambda _, token: token.issued)
        await asyncio.sleep(HOUR)
        renewed = world.sample("jobmirror_token_renewals_total", worker="east", result="renewed")
    assert renewed is not None
    assert 6 <= renewed <= 13
