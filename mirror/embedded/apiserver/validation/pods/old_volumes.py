"""What the API refuses in volumes of the plugins that Kubernetes used to have built in (C31). Called by ``volumes``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from mirror.batch.quoting import json_texts
from mirror.batch.syntax import label_problems, range_problems
from mirror.batch.violations import (
    Violation,
    invalid,
    invalid_text,
    invalid_texts,
    not_supported,
    not_supported_text,
    required,
)
from mirror.embedded.apiserver.apimachinery.errors import Json

KindRule: TypeAlias = Callable[[str, Json], Iterator[Violation]]
"""Given the field and the volume's source."""

_LARGEST_PARTITION = _LARGEST_LUN = 255
_LONGEST_TENANT = 64
_HOST_AND_PORT = "must be a host:port pair or multiple pairs separated by commas"
_RESERVED = (".kubernetes.io", ".k8s.io")
_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_MANAGED = "Managed"
_DISK_KINDS = ("Dedicated", _MANAGED, "Shared")
_MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def _check_required(names: Sequence[str], field: str, source: Json) -> Iterator[Violation]:
    for name in names:
        if not source.get(name):
            yield required(f"{field}.{name}")


def _check_partitioned(name: str, field: str, source: Json) -> Iterator[Violation]:
    yield from _check_required((name,), field, source)
    partition = source.get("partition", 0)
    if partition:  # the whole disk otherwise, although the server's words say that there is no 0
        for problem in range_problems(partition, 1, _LARGEST_PARTITION):
            yield invalid(f"{field}.partition", partition, problem)


def _check_secret(field: str, source: Json) -> Iterator[Violation]:
    secret = source.get("secretRef")
    if secret is not None and not secret.get("name"):
        yield required(f"{field}.secretRef.name")


def _check_cinder(field: str, source: Json) -> Iterator[Violation]:
    yield from _check_required(("volumeID",), field, source)
    yield from _check_secret(field, source)


def _check_flocker(field: str, source: Json) -> Iterator[Violation]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield required(field, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield invalid_text(field, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield invalid_text(f"{field}.datasetName", name, "must not contain '/'")


def _check_quobyte(field: str, source: Json) -> Iterator[Violation]:
    registry = source["registry"]
    if not registry:
        yield required(f"{field}.registry", _HOST_AND_PORT)
    elif len(source.get("tenant", "").encode()) > _LONGEST_TENANT:
        yield required(f"{field}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            if not _is_host_and_port(pair):
                yield invalid_text(f"{field}.registry", registry, _HOST_AND_PORT)
    yield from _check_required(("volume",), field, source)


def _is_host_and_port(text: str) -> bool:
    """As Go splits them: a host with colons stands in brackets, and brackets stand nowhere else."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return False
    return bool(colon) and not any(bracket in host + port for bracket in "[]")


def _check_fc(field: str, source: Json) -> Iterator[Violation]:
    names: Sequence[str] | None = source.get("targetWWNs")
    lun: int | None = source.get("lun")
    if not names and not source.get("wwids"):
        yield required(f"{field}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if names and source.get("wwids"):
        detail = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid(f"{field}.targetWWNs", json_texts(names), detail)
    if not names:
        return
    if lun is None:
        yield required(f"{field}.lun", "lun is required if targetWWNs is specified")
    else:
        yield from (invalid(f"{field}.lun", lun, problem) for problem in range_problems(lun, 0, _LARGEST_LUN))


def _check_flex(field: str, source: Json) -> Iterator[Violation]:
    yield from _check_required(("driver",), field, source)
    for key in sorted(source.get("options", ())):
        domain = key.partition("/")[0]
        if f".{domain.lower()}".endswith(_RESERVED):
            yield invalid_text(f"{field}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def _check_azure_disk(field: str, source: Json) -> Iterator[Violation]:
    yield from _check_required(("diskName", "diskURI"), field, source)
    caching, kind, uri = source.get("cachingMode"), source.get("kind"), source["diskURI"]
    if caching is not None and caching not in _CACHING_MODES:
        yield not_supported(f"{field}.cachingMode", caching, _CACHING_MODES)
    if kind is not None and kind not in _DISK_KINDS:
        yield not_supported(f"{field}.kind", kind, _DISK_KINDS)
    if kind == _MANAGED and not uri.startswith("/subscriptions/"):
        yield not_supported_text(f"{field}.diskURI", uri, (_MANAGED_DISK,))
    if kind is not None and kind != _MANAGED and not uri.startswith("https://"):
        yield not_supported_text(f"{field}.diskURI", uri, (_BLOB_DISK,))


def _check_storageos(field: str, source: Json) -> Iterator[Violation]:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    if name:
        yield from invalid_texts(f"{field}.volumeName", name, label_problems(name))
    else:
        yield required(f"{field}.volumeName")
    if namespace:
        yield from invalid_texts(f"{field}.volumeNamespace", namespace, label_problems(namespace))
    yield from _check_secret(field, source)


OLD_KINDS: Mapping[str, KindRule] = {
    "gcePersistentDisk": partial(_check_partitioned, "pdName"),
    "awsElasticBlockStore": partial(_check_partitioned, "volumeID"),
    "glusterfs": partial(_check_required, ("endpoints", "path")),
    "flocker": _check_flocker,
    "rbd": partial(_check_required, ("monitors", "image")),
    "cinder": _check_cinder,
    "cephfs": partial(_check_required, ("monitors",)),
    "quobyte": _check_quobyte,
    "fc": _check_fc,
    "flexVolume": _check_flex,
    "azureFile": partial(_check_required, ("secretName", "shareName")),
    "vsphereVolume": partial(_check_required, ("volumePath",)),
    "photonPersistentDisk": partial(_check_required, ("pdID",)),
    "portworxVolume": partial(_check_required, ("volumeID",)),
    "azureDisk": _check_azure_disk,
    "storageos": _check_storageos,
    "scaleIO": partial(_check_required, ("gateway", "system", "volumeName")),
}
