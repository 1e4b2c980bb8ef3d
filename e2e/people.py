"""Users of a management cluster as ServiceAccounts, who type ``kubectl mirror``. Used by tests of what users see.

Not here: operators' commands (``commands``), and the manager that answers (``serving``).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.commands import Said, said_by
from e2e.controlplane.assets import find_binaries
from e2e.controlplane.client import Client
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import installed_mirror
from e2e.manager import ManagerProcess
from mirror.kube.resources import JOBS, Resource

RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a kubeconfig, and kubectl with our plugin in the ``PATH``."""

    kubeconfig: str
    namespace: str
    manager_namespace: str

    async def start(self, *arguments: str, under: str = "mirror") -> asyncio.subprocess.Process:
        """Begin ``kubectl mirror …``."""
        pipe, path = asyncio.subprocess.PIPE, os.environ.get("PYTHONPATH")
        return await asyncio.create_subprocess_exec(
            find_binaries("kubectl")["kubectl"],
            *([under] if under else []),
            *arguments,
            stdout=pipe,
            stderr=pipe,
            # Tests may run in the background of a shell, where it is ignored; a user's terminal does not ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            env={
                "PATH": f"{installed_mirror().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
                "HOME": str(Path(self.kubeconfig.split(os.pathsep)[0]).parent),
                "KUBECONFIG": self.kubeconfig,
                "MIRROR_MANAGER_NAMESPACE": self.manager_namespace,
                **({"PYTHONPATH": path} if path else {}),  # as ``Program`` has it
            },
        )

    async def says(self, *arguments: str, under: str = "mirror") -> Said:
        """Run it to its end."""
        return await said_by(await self.start(*arguments, under=under))

    async def mirror(self, *arguments: str) -> str:
        """What it prints, which has to go well."""
        said = await self.says(*arguments, *(() if "-n" in arguments else ("-n", self.namespace)))
        assert said.code == 0, said
        return said.output

    async def refused(self, *arguments: str) -> str:
        """What it says, which has to go wrong, in one line."""
        said = await self.says(*arguments, "-n", self.namespace)
        assert (said.code, said.output) == (1, ""), said
        assert said.errors.count("\n") == 1, said
        return said.errors


async def person(
    plane: ControlPlane, namespace: str, name: str, manager: ManagerProcess, *, may_view: bool, also: str = ""
) -> Person:
    """A ServiceAccount of this namespace, perhaps with the right to view it."""
    kubeconfig = await plane.service_account_kubeconfig(namespace, name)
    if may_view:
        body = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        async with plane.client() as client:
            await client.create(f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings", body)
            await until_allowed(client, namespace, f"system:serviceaccount:{namespace}:{name}")
    files = str(kubeconfig) + (f"{os.pathsep}{also}" if also else "")
    return Person(files, namespace, manager.namespace)


async def until_allowed(
    client: Client, namespace: str, user: str, groups: Sequence[str] = (), *, kind: Resource = JOBS
) -> None:
    """An API server learns of new rights a moment later."""
    asked = {"verb": "list", "group": kind.group, "resource": kind.plural, "namespace": namespace}
    spec = {"user": user, "groups": list(groups), "resourceAttributes": asked}
    async with asyncio.timeout(120):
        while True:
            answer = await client.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
            if answer["status"]["allowed"]:
                return
            await asyncio.sleep(0.1)


READ = ("get", "list", "watch")
WRITE = (*READ, "create", "patch", "delete")


async def may_read(client: Client, one: Person, name: str, kind: Resource, *, verbs: Sequence[str] = READ) -> None:
    """Give the user ``name`` permission on the objects of a kind in its namespace, and wait until it holds."""
    collection, called = f"/apis/{RBAC}/v1/namespaces/{one.namespace}", f"{name}-{kind.plural}"
    rule = {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(verbs)}
    await client.create(f"{collection}/roles", {"metadata": {"name": called}, "rules": [rule]})
    body = {
        "metadata": {"name": called},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": called},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": one.namespace}],
    }
    await client.create(f"{collection}/rolebindings", body)
    await until_allowed(client, one.namespace, f"system:serviceaccount:{one.namespace}:{name}", kind=kind)
