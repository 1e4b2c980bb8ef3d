"""Who the manager is on a worker: service accounts with rights that tests give and take away. Used by fault tests."""

from __future__ import annotations

from pathlib import Path

from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import until

NAMESPACE = "e2e-access"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_RULES: list[Json] = [
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
]


async def account(worker: ControlPlane, name: str) -> Path:
    """A kubeconfig of a service account that may do on a worker what a manager needs, and no more."""
    path = await worker.service_account_kubeconfig(NAMESPACE, name)
    await allow(worker, name)
    return path


async def allow(worker: ControlPlane, name: str) -> None:
    """Give the account its rights."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "e2e-access"}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    binding: Json = {"metadata": {"name": f"e2e-{name}"}, "roleRef": reference, "subjects": [subject]}
    async with Client(worker.kubeconfig) as client:
        await _create(client, f"{_RBAC}/clusterroles", {"metadata": {"name": "e2e-access"}, "rules": _RULES})
        await _create(client, f"{_RBAC}/clusterrolebindings", binding)


async def forbid(worker: ControlPlane, name: str) -> None:
    """Take the account's rights away, and wait until the server knows it."""
    asked = {"resource": "jobs", "group": "batch", "verb": "watch"}
    spec = {"user": f"system:serviceaccount:{NAMESPACE}:{name}", "resourceAttributes": asked}
    async with Client(worker.kubeconfig) as client:
        await client.delete(f"{_RBAC}/clusterrolebindings/e2e-{name}")
        await until(lambda: client.create(_REVIEWS, {"spec": spec}), lambda found: not found["status"]["allowed"])


async def revoke(worker: ControlPlane, name: str) -> None:
    """Delete the account; its tokens are refused from now on, but for a few seconds of the API server's memory."""
    async with Client(worker.kubeconfig) as client:
        await client.delete(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}")


async def _create(client: Client, collection: str, body: Json) -> None:
    try:
        await client.create(collection, body)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise
