"""A management cluster with RBAC, two workers and a manager that serves users, in a thread, for tests of commands.

The commands run in the main thread or as processes of their own and reach everything over HTTPS, as users do. ``ann``
may do everything with Jobs and Drills in ``team-a``; ``bob`` may only read Jobs; ``eve`` may do nothing.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
import yaml

from mirror.cli.embedded import logs_into, manager
from mirror.embedded import certificates, kubeconfigs
from mirror.embedded.apiserver.messages import AUTHENTICATED_GROUP, User
from mirror.planes.fleet import Fleet, fleet
from mirror.planes.shape import Shape
from mirror.serving.x509 import Authority
from mirror.settings.kinds import KindEntry
from mirror.settings.schema import Access, Https
from mirror.telemetry.metrics import Metrics

T = TypeVar("T")

NAMESPACE = "team-a"
USERS = ("ann", "bob", "eve")
ROLES = Path(__file__).parents[2] / "config" / "rbac" / "access.yaml"
RBAC = "rbac.authorization.k8s.io"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RULES: dict[str, list[dict[str, Any]]] = {
    "ann": [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["*"]},
        {"apiGroups": ["example.com"], "resources": ["drills"], "verbs": ["*"]},
        {"apiGroups": ["ray.io"], "resources": ["rayjobs"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list"]},
    ],
    "bob": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch"]}],
}


@dataclass
class UserFleet:
    """What runs, and how a test gets at it."""

    fleet: Fleet
    url: str
    """Of the manager's server."""
    loop: asyncio.AbstractEventLoop
    folder: Path
    names: list[str] = field(default_factory=list)

    def do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run something in the planes' loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work(), self.loop).result(20)

    def kubeconfig(self, user: str) -> str:
        """A user's: the management cluster first, and each worker as administrator."""
        served = self.fleet.management
        found = yaml.safe_load(served.kubeconfig)
        if user != "admin":
            found["users"] = [{"name": "management", "user": {"token": f"token-of-{user}"}}]
        found["contexts"][0]["context"]["namespace"] = NAMESPACE
        for worker in self.fleet.workers.values():
            other = yaml.safe_load(worker.kubeconfig)
            for plural in ("clusters", "users", "contexts"):
                found[plural] += other[plural]
        path = self.folder / f"{user}.yaml"
        path.write_text(yaml.safe_dump(found))
        path.chmod(0o600)
        return str(path)

    def certificate_kubeconfig(self, user: str, *, is_ours: bool = True) -> str:
        """A user's with a client certificate, as kind and kubeadm give them; or one of a foreign authority."""
        served = self.fleet.management
        now = served.plane.clock.now()
        authority = certificates.kept_authority(served.plane.storage, "", now=now)
        signer = authority if is_ours else Authority.new("foreign", now=now)
        path = self.folder / f"certificate-of-{user}{'' if is_ours else '-foreign'}.yaml"
        pair = signer.issue_client(user)
        text = kubeconfigs.kubeconfig(served.url, authority=authority.certificate, user=pair, namespace=NAMESPACE)
        kubeconfigs.write(path, text)
        return str(path)

    def create(
        self,
        name: str,
        command: str,
        *,
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        node_selector: dict[str, str] | None = None,
        restart_policy: str = "Never",
        **spec: Any,
    ) -> None:
        """A source whose container runs this shell command."""
        pod = {
            "restartPolicy": restart_policy,
            "nodeSelector": node_selector or {},
            "containers": [{"name": "main", "image": "x", "command": ["sh", "-c", command]}],
        }
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}},
            "spec": {"managedBy": "jobmirror.io/controller", "backoffLimit": 0, **spec, "template": {"spec": pod}},
        }
        self.do(lambda: self.fleet.management.plane.api.create(JOBS, body))
        self.names.append(name)

    def wait(self, name: str, is_so: Callable[[dict[str, Any]], Any], *, seconds: float = 120.0) -> dict[str, Any]:
        """A source once it is so."""

        async def look() -> dict[str, Any]:
            async with asyncio.timeout(seconds):
                while True:
                    found = await self.fleet.management.plane.api.get(f"{JOBS}/{name}")
                    if is_so(found):
                        return found
                    await asyncio.sleep(0.02)

        return self.do(look)


def has(kind: str) -> Callable[[dict[str, Any]], bool]:
    """Whether a condition of this type is True."""
    return lambda job: any(
        one["type"] == kind and one["status"] == "True" for one in job.get("status", {}).get("conditions") or ()
    )


@contextmanager
def user_fleet(folder: Path, *definitions: dict[str, Any], kinds: tuple[KindEntry, ...] = ()) -> Iterator[UserFleet]:
    """Everything, ready, while the block runs; every cluster serves these definitions of custom resources, too.

    Args:
        folder: for kubeconfigs and the log.
        definitions: of custom resources.
        kinds: the setting of this name.
    """
    ready: list[UserFleet] = []
    is_ready, failures = threading.Event(), []
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def live() -> None:
        loop, wanted = asyncio.get_running_loop(), asyncio.Event()
        stop.append((loop, wanted))
        port = _free_port()
        url = f"https://127.0.0.1:{port}"
        tokens = {f"token-of-{name}": User(name, (AUTHENTICATED_GROUP,)) for name in USERS}
        shape = Shape(authorization="RBAC", tokens=tokens, pods="process")
        async with fleet(["east", "west"], folder, shape) as made:
            settings = msgspec.structs.replace(
                made.settings(),
                https=Https(listen=f"127.0.0.1:{port}", names=("127.0.0.1",)),
                access=Access(enabled=True, url=url),
                kinds=kinds,
            )
            await _allow(made)
            for served in (made.management, *made.workers.values()):
                for one in definitions:
                    await served.plane.api.create(DEFINITIONS, one)
            async with manager(settings, 2, metrics=Metrics(), stop=asyncio.Event()):
                await _until_told(made)
                ready.append(UserFleet(made, url, loop, folder))
                is_ready.set()
                await wanted.wait()

    def run() -> None:
        try:
            with logs_into(folder / "log"):
                asyncio.run(live())
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            failures.append(error)
        finally:
            is_ready.set()

    thread = threading.Thread(target=run, name="planes")
    thread.start()
    try:
        assert is_ready.wait(60)
        if failures:
            raise failures[0]
        with pytest.MonkeyPatch.context() as patched:
            # An earlier fleet may have had this one's port: whom it trusted is not remembered here.
            patched.setenv("XDG_CONFIG_HOME", str(folder))
            yield ready[0]
    finally:
        for loop, wanted in stop:
            loop.call_soon_threadsafe(wanted.set)
        thread.join(20)
    assert not failures, failures
    assert not thread.is_alive()


async def _allow(made: Fleet) -> None:
    """The users' own rights, and that of everybody to read where the manager is."""
    api = made.management.plane.api
    for served in (made.management, *made.workers.values()):
        await served.plane.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for document in yaml.safe_load_all(ROLES.read_text()):
        plural = {"Role": "roles", "RoleBinding": "rolebindings"}.get(document["kind"])
        if plural is not None:
            await api.create(f"/apis/{RBAC}/v1/namespaces/{document['metadata']['namespace']}/{plural}", document)
    base = f"/apis/{RBAC}/v1/namespaces/{NAMESPACE}"
    for user, rules in RULES.items():
        await api.create(f"{base}/roles", {"metadata": {"name": user}, "rules": rules})
        binding = {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": user},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        }
        await api.create(f"{base}/rolebindings", binding)


async def _until_told(made: Fleet) -> None:
    """Until the manager has published where it is."""
    path = "/api/v1/namespaces/jobmirror-system/configmaps"
    async with asyncio.timeout(120):
        while True:
            found = await made.management.plane.api.list(path)
            if "jobmirror-access" in {one["metadata"]["name"] for one in found}:
                return
            await asyncio.sleep(0.02)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
