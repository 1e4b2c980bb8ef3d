"""The object that registers a worker: a Secret of the manager's namespace, or what else declares it (decision 0012).

Which object declares a worker the manager has recorded, since commands know no settings. It belongs to somebody else:
our annotations and the worker's labels are changed there, nothing else, with the operator's permissions, and it is
never deleted. Used by whatever is said about a worker by its name. Not here: what the manager's record is
(``workers.inventory``), and what declarations say (``workers.declared_secrets``, ``workers.cluster_profiles``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.kube import requests
from mirror.kube.errors import BadAnswer, Conflict, Forbidden, Invalid, NotFound
from mirror.kube.kubeconfig import KubeconfigRefused
from mirror.kube.objects import Object
from mirror.kube.resources import SECRETS, Resource
from mirror.model import names
from mirror.model.text import clean, nearest
from mirror.workers import cluster_profiles, declared_secrets
from mirror.workers.cluster_profiles import CLUSTER_PROFILES, BadProfile, SecretRef
from mirror.workers.gone_record import only_takes_back
from mirror.workers.inventory import Declared, WorkerInventory
from mirror.workers.spec import BadSecret, WorkerSpec, read_spec, spec_of

_RESOURCES = {resource.kind: resource for resource in (SECRETS, CLUSTER_PROFILES)}
_BY = re.compile(r"(\w+) ([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)/((?=.{1,253}$)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)")


class Unusable(ValueError):
    """The object leads to no cluster; the text says why and quotes no secret."""


class Gone(ClusterError):
    """What the manager has recorded as a worker's declaration does not exist, or is another worker's by now."""


@dataclass(frozen=True, slots=True)
class WorkerObject:
    """One worker's object, as it was read."""

    worker: str
    resource: Resource
    found: Object
    declared: Declared | None = None
    """What the manager has recorded of it; None: it is a Secret that registers the worker."""

    @property
    def by(self) -> str:
        """What declares the worker, as text: ``Secret clusters/prod-kubeconfig``; empty: its own Secret."""
        return "" if self.declared is None else clean(self.declared.by, longest=400)

    @property
    def unregistering(self) -> str:
        """What ends the registration of a worker that something else declares: a person does that."""
        what = f"delete {self.by}"
        if self.resource is SECRETS:
            what += ", or remove the label from it that workers.secretSources selects"
        return f"to unregister it, {what}"


async def find(home: ManagementCluster, name: str) -> WorkerObject:
    """Read the object that registers a worker.

    Raises:
        ClusterError: there is no such worker, or it may not be read.
    """
    try:
        found = await home.secret(name)
    except ClusterError as trouble:
        # Who may write what others declare need not read our Secrets: where one of ours counts, the record says so.
        declared = await _declared_anyway(home, name) if isinstance(trouble.__cause__, Forbidden) else None
        if declared is None:
            raise
        return await find_declared(home, name, declared)
    own = WorkerObject(name, SECRETS, found) if found is not None and found.labels.get(names.WORKER) == "true" else None
    if own is not None and not only_takes_back(own.found):
        return own
    if (declared := (await home.inventory()).entry(name).declared) is not None:
        try:
            return await find_declared(home, name, declared)
        except Gone:
            if own is None:
                raise
    if own is not None:
        return own
    if found is not None and names.KUBECONFIG_KEY in found.data_dict():
        raise ClusterError(_not_registered(home, found))
    raise ClusterError(f"worker {name} not found in namespace {home.namespace}; {await _meant(home, name)}")


def own_secrets(secrets: Iterable[Object], inventory: WorkerInventory) -> dict[str, Object]:
    """The Secrets that register workers, by name, but for those that make way for what the manager has recorded."""
    return {
        secret.metadata.name: secret
        for secret in secrets
        if not only_takes_back(secret) or inventory.entry(secret.metadata.name).declared is None
    }


async def find_declared(home: ManagementCluster, name: str, declared: Declared) -> WorkerObject:
    """Read what declares a worker, as the manager has recorded it.

    Raises:
        Gone: it does not exist, or does not declare this worker any more.
        ClusterError: it may not be read, or which object it is cannot be told.
    """
    by = clean(declared.by, longest=400)
    told = _BY.fullmatch(declared.by)
    resource = _RESOURCES.get(told[1]) if told else None
    if told is None or resource is None:
        raise ClusterError(f"worker {name} is declared by {by}: the record does not tell which object that is")
    found = await home.site.find(resource, told[3], namespace=told[2])
    if found is None:
        raise Gone(f"worker {name} is declared by {by}, which does not exist any more")
    is_it = found.metadata.name == name or (resource is SECRETS and name in found.labels.values())
    if not is_it or found.labels.get(names.WORKER) == "true":
        raise Gone(f"{by} does not declare worker {name} any more; see: mirror worker list")
    return WorkerObject(name, resource, found, declared)


async def read_connection(home: ManagementCluster, worker: WorkerObject) -> WorkerSpec:
    """What the object says of its worker, with the kubeconfig that leads there, as the manager reads it.

    Raises:
        Unusable: it leads to no cluster.
        ClusterError: a Secret that a ClusterProfile names may not be read.
    """
    found, declared = worker.found, worker.declared
    try:
        if declared is None:
            return read_spec(found)
        if worker.resource is CLUSTER_PROFILES:
            return await _of_profile(home, found, declared)
        return _of_secret(worker.worker, found, declared)
    except (BadSecret, BadProfile) as error:
        raise Unusable(str(error)) from error


async def annotate(
    home: ManagementCluster,
    worker: WorkerObject,
    annotations: Mapping[str, str | None],
    *,
    labels: Mapping[str, str | None] | None = None,
) -> None:
    """Change annotations and labels of a worker's object.

    Args:
        home: where it is.
        worker: as it was read; another object of its name is left alone.
        annotations: new values by key; None removes one.
        labels: the same.

    Raises:
        ClusterError: the object is gone, or another one by now, may not be changed, or would not declare it any more.
    """
    meta, by = worker.found.metadata, worker.by
    for key in labels or {}:
        if by and worker.found.labels.get(key) == worker.worker:
            raise ClusterError(f"label {key} of {by} may be what names the worker: use kubectl label to change it")
    body = {"metadata": {"uid": meta.uid, "annotations": dict(annotations), "labels": dict(labels or {})}}
    namespace = meta.namespace or home.namespace
    wanted = requests.merge_patch(worker.resource, meta.name, body, namespace=namespace)
    try:
        await home.site.send(wanted, worker.resource, name=meta.name, namespace=namespace)
    except NotFound:
        raise ClusterError(f"{by or f'worker {meta.name}'} was deleted in the meantime") from None
    except ClusterError as trouble:
        if isinstance(trouble.__cause__, Conflict | Invalid):  # another uid is either, by the kind and the server
            now = await home.site.find(worker.resource, meta.name, namespace=namespace)
            if now is None or now.metadata.uid != meta.uid:
                text = f"{by or f'worker {meta.name}'} was replaced in the meantime: rerun"
                raise ClusterError(text) from trouble.__cause__
        raise


def _of_secret(name: str, found: Object, declared: Declared) -> WorkerSpec:
    key = declared.key
    if not key:  # as managers wrote it before they recorded the key
        try:
            (key,) = found.data_dict()
        except (ValueError, BadAnswer):
            raise Unusable("the manager has not recorded which key of it is the kubeconfig: it is too old") from None
    kubeconfig, labels = declared_secrets.kubeconfig_in(found, key), declared_secrets.worker_labels(found.labels)
    reduced = Object(metadata=declared_secrets.reduced_metadata(found))
    return spec_of(reduced, name=name, kubeconfig=kubeconfig, labels=labels)


async def _of_profile(home: ManagementCluster, found: Object, declared: Declared) -> WorkerSpec:
    profile = cluster_profiles.reduced_profile(found)
    access = cluster_profiles.access_of(profile, own_namespace=home.namespace)
    ref = access.credentials
    secret = await _credentials(home, ref, declared.account)
    try:
        user = cluster_profiles.credentials_of(secret, ref)
    except KubeconfigRefused as error:
        raise Unusable(f"Secret {ref.namespace}/{secret.metadata.name}: {error}") from error
    declaration = cluster_profiles.declared_by(profile, cluster_profiles.kubeconfig_of(access, user))
    if declaration.spec is None:
        raise Unusable(declaration.problem)
    return declaration.spec


async def _credentials(home: ManagementCluster, ref: SecretRef, account: str) -> Object:
    """The Secret that a profile names."""
    if ref.provider == cluster_profiles.OCM:
        beside = home.site.each(SECRETS, namespace=ref.namespace, labels=cluster_profiles.OCM_SELECTOR)
        return cluster_profiles.choose_ocm_secret([one async for one in beside], ref.name, account)
    found = await home.site.find(SECRETS, ref.name, namespace=ref.namespace)
    if found is None:
        raise Unusable(f"Secret {ref.namespace}/{ref.name} not found")
    return found


async def _declared_anyway(home: ManagementCluster, name: str) -> Declared | None:
    with suppress(ClusterError):
        return (await home.inventory()).entry(name).declared
    return None


def _not_registered(home: ManagementCluster, secret: Object) -> str:
    """What keeps a Secret that has a kubeconfig from being a worker."""
    name, label = secret.metadata.name, f"{names.WORKER}=true"
    has = secret.labels.get(names.WORKER)
    why = f"has no label {label}" if has is None else f"has label {names.WORKER}={clean(has)} instead of true"
    fix = f"kubectl label secret {name} --namespace {home.namespace} --overwrite {label}"
    return f"Secret {name} is no worker: it {why}; {fix}"


async def _meant(home: ManagementCluster, name: str) -> str:
    """What may help with the name of a worker that there is not."""
    meant = None
    with suppress(ClusterError):
        await home.check_namespace()
        meant = nearest(name, await home.worker_names())
    return f"did you mean {meant}?" if meant else "see: mirror worker list"
