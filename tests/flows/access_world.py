"""A flow world whose management cluster knows users and their rights, and ``access`` over it, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from flow_world import FlowWorld

from mirror.access.answers import Answer, StatusError
from mirror.access.bounds import Bounds
from mirror.access.request_parsing import Asked
from mirror.access.service import Access
from mirror.embedded.apiserver.messages import AUTHENTICATED_GROUP, User
from mirror.http_services import access_sources
from mirror.model import names
from mirror.planes.api import Json
from mirror.serving.client_certificates import CertificateUser
from mirror.telemetry.logs import get_log

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
USERS = ("ann", "bob", "eve")
TOKENS = {f"token-of-{name}": User(name, (AUTHENTICATED_GROUP,)) for name in USERS}
RULES: list[Json] = [
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "create"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
]


@dataclass
class Got:
    """``service.Reply``: what an answer was, or is so far."""

    answer: Answer | None = None
    headers: dict[str, str] | None = None
    text: bytearray = field(default_factory=bytearray)
    on_write: Callable[[], Any] | None = None
    takes: asyncio.Event | None = None
    """Until it is set, nothing is read."""
    sent: bytes = b""
    """The request's body."""

    async def body(self, most_bytes: int) -> bytes:
        if len(self.sent) > most_bytes:
            raise StatusError(413, "too long")
        return self.sent

    async def whole(self, answer: Answer) -> None:
        self.answer = answer

    async def begin(self, headers: tuple[tuple[str, str], ...]) -> None:
        self.headers = dict(headers)

    async def write(self, piece: bytes) -> None:
        if self.takes is not None:
            await self.takes.wait()
        self.text += piece

    @property
    def code(self) -> int:
        return self.answer.status if self.answer else 200

    @property
    def json(self) -> Json:
        assert self.answer is not None
        found: Json = msgspec.json.decode(self.answer.body)
        return found

    @property
    def retry_after(self) -> str:
        assert self.answer is not None
        return dict(self.answer.headers).get("Retry-After", "")

    @property
    def message(self) -> str:
        return str(self.json["message"])


class AccessWorld(FlowWorld):
    """Users come by ``ask``; ann may everything in ``default``."""

    access: Access

    def __init__(self, scope: asyncio.TaskGroup, workers: list[str], *, bounds: Bounds | None = None) -> None:
        super().__init__(scope, workers, keep_history=True)
        self.bounds = bounds
        shape = self.management.shape
        self.management.shape = msgspec.structs.replace(shape, authorization="RBAC", tokens=TOKENS)

    async def open(self) -> None:
        """Start, and give ann her rights."""
        await self.start()
        await self.allow("ann", RULES)
        self.open_access()

    def open_access(self) -> None:
        """Over the manager that runs now."""
        assert self.mirroring is not None
        assert self.registry is not None
        management, known = self.management.client(), self.mirroring.known()
        workers, managed_by = self.registry.workers, names.DEFAULT_MANAGED_BY
        sources = access_sources(management, self.mirroring, known, workers, managed_by=managed_by)
        self.access = Access(sources, log=get_log("access"), bounds=self.bounds)

    async def allow(self, user: str, rules: list[Json], namespace: str = "default", *, kind: str = "User") -> None:
        base = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        await self.management.api.create(f"{base}/roles", {"metadata": {"name": user}, "rules": rules})
        group = "rbac.authorization.k8s.io"
        binding = {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": user},
            "subjects": [{"apiGroup": group, "kind": kind, "name": user}],
        }
        await self.management.api.create(f"{base}/rolebindings", binding)

    async def tokens_of(self, accounts: Iterable[str]) -> list[Mapping[str, str]]:
        """Headers with a token of each of these ServiceAccounts, which may as much as ann until they are deleted."""
        await self.allow("system:serviceaccounts:default", RULES, kind="Group")
        found, wanted = [], {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        made: set[str] = set()
        for account in accounts:
            if account not in made:
                await self.management.api.create(ACCOUNTS, {"metadata": {"name": account}})
                made.add(account)
            review = await self.management.api.create(f"{ACCOUNTS}/{account}/token", wanted)
            found.append({"authorization": f"Bearer {review['status']['token']}"})
        return found

    async def ask(
        self,
        what: str,
        *,
        user: str = "ann",
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        body: Any = None,
        got: Got | None = None,
        certificate: CertificateUser | None = None,
        peer: str = "10.0.0.1",
    ) -> Got:
        """``what`` begins with a slash, or comes after the path of the Jobs of ``default``; ``peer``: from where."""
        target = what if what.startswith("/") else f"/v1/namespaces/default/jobs/{what}"
        got = got or Got()
        given = headers if headers is not None else {"authorization": f"Bearer token-of-{user}"}
        got.sent = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        await self.access.handle(Asked(method, target, given, peer, certificate), got)
        return got

    async def running(self, name: str = "train", worker: str = "east", **spec: Any) -> Json:
        """A Job whose pods run; gives the first of them."""
        await self.create(name, **{"run_for": "never", **spec})

        async def has_pod() -> bool:
            return any(pod["status"].get("phase") == "Running" for pod in await self.pods(worker, name))

        await self.until(has_pod)
        return (await self.pods(worker, name))[0]

    async def pods(self, worker: str, name: str = "train") -> list[Json]:
        selector = f"batch.kubernetes.io/job-name={name}"
        return await self.workers[worker].api.list("/api/v1/namespaces/default/pods", labelSelector=selector)

    def writes(self, worker: str, pod: Json, text: bytes) -> None:
        """The pod's first container writes this."""
        plane = self.workers[worker]
        container_id = pod["status"]["containerStatuses"][0]["containerID"]
        log = plane.logs.find(container_id)
        assert log is not None
        log.write(text, plane.clock.now())


World = TypeVar("World", bound=AccessWorld)


@asynccontextmanager
async def access_world(
    *workers: str, bounds: Bounds | None = None, form: type[World] = AccessWorld
) -> AsyncIterator[World]:
    """Everything runs while the block does."""
    failure: BaseException | None = None
    async with asyncio.TaskGroup() as scope:
        world = form(scope, list(workers or ("east",)), bounds=bounds)
        try:
            await world.open()
            yield world
        except Exception as error:  # noqa: BLE001 - raised below: out of the scope it would come as a group
            failure = error
        finally:
            await world.stop()
    if failure is not None:
        raise failure
