"""``mirror worker add``: account and rights on the worker, a token, the Secret on the management cluster; step by step.

Every step may be repeated: what is there is brought to what is wanted. Nothing is made before everything that can be
asked beforehand is known to be good. What the objects look like is ``roles`` and ``enrolment``; how it went in the end
``checking`` says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from mirror.cli.worker.operations import roles
from mirror.cli.worker.operations.enrolment import Enrolment, changes_for, check_enrolment, kubeconfig_for, secret_for
from mirror.cli.worker.operations.roles import ACCOUNT, KINDS, Json
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster, Site
from mirror.kube import requests
from mirror.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from mirror.kube.kubeconfig import Cluster, KubeconfigRefused, check_kubeconfig
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from mirror.model import names
from mirror.model.durations import format_duration
from mirror.workers.inventory import IdentityRejected
from mirror.workers.probes import OLDEST_MINOR, Unsupported, check_version
from mirror.workers.spec import BadSecret, read_kubeconfig
from mirror.workers.tokens import read_token

Report = Callable[[str], None]
"""Takes what has been done, one line each."""


class _Status(msgspec.Struct):
    token: str = ""


class _Answer(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


@dataclass(frozen=True, slots=True)
class Added:
    """What there is now."""

    name: str
    server: str
    uid: str
    version: str
    token_expires: datetime | None
    is_new: bool


def plan(wanted: Enrolment, reached_at: Cluster) -> tuple[list[Json], Json]:
    """What would be made on the worker, and on the management cluster, with a placeholder for the token.

    Raises:
        ClusterError: the manager would refuse it.
    """
    check_enrolment(wanted, reached_at)
    return roles.objects(wanted.grant), secret_for(wanted, kubeconfig_for(reached_at, "TOKEN"))


async def add(home: ManagementCluster, worker: Site, wanted: Enrolment, reached_at: Cluster, report: Report) -> Added:
    """Do it all.

    Args:
        home: where the manager is.
        worker: the new worker, with the operator's rights there.
        wanted: what it is to be.
        reached_at: how the manager reaches it.
        report: called with each step.

    Raises:
        ClusterError: something is in the way; what was done so far stays, and may be done again.
    """
    check_enrolment(wanted, reached_at)
    report(f"kubeconfig for {reached_at.server}: accepted")
    version, uid = await _look_at(worker)
    found = await _check_registration(home, wanted, uid, reached_at)
    report(f"{worker.title}: Kubernetes {version}, cluster {uid}")
    await _make(worker, wanted, report)
    token = await _token(worker, wanted)
    expires = read_token(token).expires
    report(f"token of {wanted.grant.namespace}/{ACCOUNT}{_until(expires, wanted.token_seconds)}")
    await _store(home, wanted, kubeconfig_for(reached_at, token), found)
    report(f"secret {home.namespace}/{wanted.name} on {home.site.title}: {'changed' if found else 'created'}")
    return Added(wanted.name, reached_at.server, uid, version, expires, found is None)


async def _look_at(worker: Site) -> tuple[str, str]:
    try:
        version = await check_version(worker.client, OLDEST_MINOR)
    except Unsupported as error:
        raise ClusterError(f"{worker.title}: {error}") from error
    except KubeError as error:
        raise worker.trouble(error, "get", NAMESPACES, name="kube-system") from error
    return version, await worker.uid()


async def _check_registration(
    home: ManagementCluster, wanted: Enrolment, uid: str, reached_at: Cluster
) -> Object | None:
    """The worker's Secret if it is there already; what stands against it is said before anything is made."""
    if await home.site.find(NAMESPACES, home.namespace) is None:
        missing = f"namespace {home.namespace} not found on {home.site.title}"
        raise ClusterError(f"{missing}: install the manager first, or use --namespace")
    found = await home.secret(wanted.name)
    if found is not None and found.labels.get(names.WORKER) != "true":
        raise ClusterError(
            f"secret {home.namespace}/{wanted.name} exists and does not register a worker (label {names.WORKER}: "
            f'"true" is missing): choose another name'
        )
    inventory, prefix = await home.inventory(), wanted.annotations.get("namespace-prefix", "")
    if found is not None:
        prefix = prefix or found.annotations.get(names.NAMESPACE_PREFIX, "")
        if not inventory.entry(wanted.name).uid:
            _check_server(found, wanted, reached_at)
    try:
        inventory.check_identity(wanted.name, uid, management_uid=await home.site.uid(), has_prefix=bool(prefix))
    except IdentityRejected as error:
        soon = "" if found else "; a removed worker is forgotten within a minute"
        raise ClusterError(f"worker {wanted.name}: {error}{soon}") from error
    return found


def _check_server(found: Object, wanted: Enrolment, reached_at: Cluster) -> None:
    """The manager has not written down yet which cluster a Secret leads to: its address has to do."""
    try:
        before = check_kubeconfig(read_kubeconfig(found), wanted.allow).server
    except (KubeconfigRefused, BadSecret):
        return
    if before != reached_at.server:
        raise ClusterError(
            f"worker {wanted.name} is registered with server {before}, whose cluster the manager has not identified "
            f"yet: run mirror worker remove {wanted.name} first, or choose another name"
        )


async def _make(worker: Site, wanted: Enrolment, report: Report) -> None:
    bodies = roles.objects(wanted.grant)
    for body in bodies:
        await _apply(worker, body)
        report(f"{_named(body)} on {worker.title}")
    await _take_back(worker, wanted, {_named(body) for body in bodies}, report)


async def _apply(worker: Site, body: Json) -> None:
    kind, meta = KINDS[body["kind"]], body["metadata"]
    name, namespace = meta["name"], meta.get("namespace")
    try:
        wanted = requests.apply(kind, name, body, namespace=namespace)
        await worker.send(wanted, kind, name=name, namespace=namespace or "")
    except NotFound:
        hint = f"kubectl{worker.kubectl} create namespace {namespace}"
        raise ClusterError(f"namespace {namespace} not found on {worker.title}: run {hint}") from None


async def _take_back(worker: Site, wanted: Enrolment, kept: set[str], report: Report) -> None:
    """What an earlier call gave and this one does not: rights that are not wanted any more."""
    label = f"{names.WORKER_RIGHTS}={wanted.grant.namespace}"
    for kind in reversed(list(KINDS.values())):
        if kind in (NAMESPACES, SERVICE_ACCOUNTS):
            continue
        try:
            given = [one async for one in worker.each(kind, labels=label)]
        except ClusterError:
            continue  # who may not list them all has given none before
        for found in given:
            meta = found.metadata
            named = _named({"kind": kind.kind, "metadata": {"name": meta.name, "namespace": meta.namespace}})
            if named not in kept:
                await remove_object(worker, found, kind.kind)
                report(f"{named} on {worker.title}: deleted")


async def remove_object(worker: Site, found: Object, kind_name: str) -> None:
    """Delete one object that was made here.

    Raises:
        ClusterError: it may not be deleted.
    """
    kind, meta = KINDS[kind_name], found.metadata
    namespace = meta.namespace or None
    wanted = requests.delete(kind, meta.name, namespace=namespace, uid=meta.uid)
    try:
        await worker.send(wanted, kind, name=meta.name, namespace=meta.namespace)
    except NotFound:
        return


async def _token(worker: Site, wanted: Enrolment) -> str:
    namespace = wanted.grant.namespace
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": wanted.token_seconds},
    }
    request = requests.create_for(SERVICE_ACCOUNTS, ACCOUNT, "token", body, namespace=namespace)
    try:
        answer = await worker.send(request, SERVICE_ACCOUNTS, name=f"{ACCOUNT}/token", namespace=namespace)
        token = msgspec.json.decode(answer, type=_Answer).status.token
    except (NotFound, *JUNK):
        token = ""
    if not token:
        raise ClusterError(f"{worker.title} issues no tokens for service accounts")
    return token


async def _store(home: ManagementCluster, wanted: Enrolment, kubeconfig: bytes, found: Object | None) -> None:
    if found is None:
        request = requests.create(SECRETS, secret_for(wanted, kubeconfig), namespace=home.namespace)
    else:
        body = changes_for(wanted, kubeconfig, found)
        request = requests.merge_patch(SECRETS, wanted.name, body, namespace=home.namespace)
    secret = f"secret {home.namespace}/{wanted.name}"
    try:
        await home.site.send(request, SECRETS, name=wanted.name, namespace=home.namespace)
    except NotFound:
        raise ClusterError(f"{secret} was deleted in the meantime: rerun the command") from None
    except ClusterError as trouble:
        if isinstance(trouble.__cause__, AlreadyExists | Conflict):
            text = f"{secret} was changed by another client in the meantime: rerun the command"
            raise ClusterError(text) from trouble.__cause__
        raise


def _named(body: Json) -> str:
    meta = body["metadata"]
    where = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{body['kind'].lower()} {where}{meta['name']}"


def _until(expires: datetime | None, asked_seconds: int) -> str:
    """When a token ends, with a remark if the server gave it less than it was asked for."""
    if expires is None:
        return ""
    left = (expires - datetime.now(UTC)).total_seconds()
    less = f" (the server shortened it: {format_duration(asked_seconds)} were requested)"
    return f", expires at {expires:%Y-%m-%dT%H:%M:%SZ}{less if left < 0.95 * asked_seconds else ''}"
