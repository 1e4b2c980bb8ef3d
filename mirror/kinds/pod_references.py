"""Where a pod refers to ConfigMaps, Secrets and ServiceAccounts of its namespace: every place of core/v1 PodSpec. Pure.

For all kinds that have pod templates. ``tests/kinds/test_pod_references.py`` compares it with the API's own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mirror.batch.views import items, mapping, text
from mirror.kinds.dependencies import Reference
from mirror.kube.resources import CONFIGMAPS, SECRETS, SERVICE_ACCOUNTS

_CONFIG_MAP, _SECRET, _SERVICE_ACCOUNT = CONFIGMAPS.kind, SECRETS.kind, SERVICE_ACCOUNTS.kind
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_SECRET_REFS = (
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("csi", "nodePublishSecretRef"),
    ("flexVolume", "secretRef"),
    ("iscsi", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("storageos", "secretRef"),
)
"""Volumes that name a Secret of the pod's namespace, and where."""
IMAGE_PULL_SECRETS = "imagePullSecrets"
PRIORITY_CLASS, RUNTIME_CLASS, VOLUME_CLAIM = "PriorityClass", "RuntimeClass", "PersistentVolumeClaim"

EVERYWHERE = frozenset(
    {(_SERVICE_ACCOUNT, "default"), (_CONFIG_MAP, "kube-root-ca.crt"), (_CONFIG_MAP, "openshift-service-ca.crt")}
)
"""What each cluster puts into each namespace, with contents of its own: copied it would be another cluster's."""

Json = Mapping[str, object]


def pod_references(pod: Json, path: str) -> Iterator[Reference]:
    """Everything that a pod's spec refers to, in the order of its fields; one object perhaps several times.

    What is in every namespace of every cluster (``EVERYWHERE``) is no reference.
    """
    for one in _references(pod, path):
        if (one.kind, one.name) not in EVERYWHERE:
            yield one


def _references(pod: Json, path: str) -> Iterator[Reference]:
    account = text(pod.get("serviceAccountName")) or text(pod.get("serviceAccount"))
    if account:
        yield Reference(_SERVICE_ACCOUNT, account, f"{path}.serviceAccountName")
    for one in items(pod.get(IMAGE_PULL_SECRETS)):
        if name := text(mapping(one).get("name")):
            # The kubelet goes on without one that is missing.
            yield Reference(_SECRET, name, f"{path}.{IMAGE_PULL_SECRETS}", is_optional=True)
    for one in items(pod.get("volumes")):
        yield from _of_volume(mapping(one), f"{path}.volumes[{text(mapping(one).get('name'))}]")
    for field in _CONTAINERS:
        for one in items(pod.get(field)):
            container = mapping(one)
            yield from _of_container(container, f"{path}.{field}[{text(container.get('name'))}]")


def pod_requirements(pod: Json, path: str) -> Iterator[Reference]:
    """What else a pod's spec names that never goes along: a worker has it, or the pods do not run."""
    for field, kind in (("priorityClassName", PRIORITY_CLASS), ("runtimeClassName", RUNTIME_CLASS)):
        name = text(pod.get(field))
        if name and not name.startswith("system-"):
            yield Reference(kind, name, f"{path}.{field}")
    for one in items(pod.get("volumes")):
        volume = mapping(one)
        if name := text(mapping(volume.get("persistentVolumeClaim")).get("claimName")):
            yield Reference(VOLUME_CLAIM, name, f"{path}.volumes[{text(volume.get('name'))}].persistentVolumeClaim")


def _of_volume(volume: Json, path: str) -> Iterator[Reference]:
    yield from _of_source(volume, path)
    for one in items(mapping(volume.get("projected")).get("sources")):
        yield from _of_source(mapping(one), f"{path}.projected")
    if name := text(mapping(volume.get("azureFile")).get("secretName")):
        yield Reference(_SECRET, name, f"{path}.azureFile")
    for field, reference in _SECRET_REFS:
        if name := text(mapping(mapping(volume.get(field)).get(reference)).get("name")):
            yield Reference(_SECRET, name, f"{path}.{field}.{reference}")


def _of_source(found: Json, path: str) -> Iterator[Reference]:
    """Of a volume, or of a part of a projected one."""
    for field, kind in (("configMap", _CONFIG_MAP), ("secret", _SECRET)):
        source = mapping(found.get(field))
        if name := text(source.get("name")) or text(source.get("secretName")):
            yield Reference(kind, name, f"{path}.{field}", is_optional=source.get("optional") is True)


def _of_container(container: Json, path: str) -> Iterator[Reference]:
    for one in items(container.get("env")):
        variable = mapping(one)
        where = f"{path}.env[{text(variable.get('name'))}]"
        yield from _of_keys(mapping(variable.get("valueFrom")), where, ("configMapKeyRef", "secretKeyRef"))
    for one in items(container.get("envFrom")):
        yield from _of_keys(mapping(one), f"{path}.envFrom", ("configMapRef", "secretRef"))


def _of_keys(found: Json, path: str, fields: tuple[str, str]) -> Iterator[Reference]:
    for field, kind in zip(fields, (_CONFIG_MAP, _SECRET), strict=True):
        reference = mapping(found.get(field))
        if name := text(reference.get("name")):
            yield Reference(kind, name, path, is_optional=reference.get("optional") is True)
