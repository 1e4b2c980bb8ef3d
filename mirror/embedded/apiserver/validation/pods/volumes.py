"""What the API refuses in the volumes of a pod template (C31). Which kinds are looked into: ``_KINDS``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from mirror.batch.quoting import quoted
from mirror.batch.syntax import (
    backstep_problems,
    descending_path_problems,
    label_problems,
    local_path_problems,
    range_problems,
    size,
    subdomain_problems,
)
from mirror.batch.violations import (
    Violation,
    duplicate,
    forbidden,
    invalid,
    invalid_text,
    invalid_texts,
    not_supported,
    one_of,
    required,
    too_long,
)
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.apimachinery.batch_schema import STRUCTS
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.validation.metadata import check_annotations, check_labels
from mirror.embedded.apiserver.validation.pods import env
from mirror.embedded.apiserver.validation.pods.old_volumes import OLD_KINDS

# The order in which the server looks for kinds, where it is not that of the fields.
_ORDER = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
_MISSPELT = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Fields that the server calls otherwise when it says that there are two kinds."""
_CALLED = {"gcePersistentDisk": "persistentDisk"}
"""Fields that the server calls otherwise when it looks into them."""
_HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_LARGEST_MODE = 0o777
_ISCSI_NAMES = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\s]+)\Z", re.ASCII),
    "eui": re.compile(r"^eui.[a-zA-Z0-9]{16}\Z"),
    "naa": re.compile(r"^naa.[a-zA-Z0-9]{32}\Z"),
}
_LONGEST_DRIVER = 63
_TEN_MINUTES, _LONGEST_TOKEN = 600, 2**32
_TEMPLATE_META = ("annotations", "labels")

_KindRule: TypeAlias = Callable[[str, Json], Iterator[Violation]]


def check(field: str, volumes: Sequence[Json], *, is_pod: bool) -> tuple[Mapping[str, Json], list[Violation]]:
    """The volumes that are right, by name, and what is wrong with the others. Those of a pod, unlike those of a
    template, must say of which image they are.
    """
    usable: dict[str, Json] = {}
    found: list[Violation] = []
    for position, volume in enumerate(volumes):
        problems = list(_check_one(f"{field}[{position}]", volume, usable, is_pod=is_pod))
        if not problems:
            usable[volume["name"]] = volume
        found.extend(problems)
    return usable, found


def _check_one(field: str, volume: Json, usable: Mapping[str, Json], *, is_pod: bool) -> Iterator[Violation]:
    name = volume["name"]
    first, *others = [one for one in _ORDER if one in volume]
    if first == "image" and is_pod and not volume["image"].get("reference"):
        yield required(f"{field}.image.reference")
    if first in _KINDS:
        yield from _KINDS[first](f"{field}.{_CALLED.get(first, first)}", volume[first])
    for one in others:
        yield forbidden(f"{field}.{_MISSPELT.get(one, one)}", "may not specify more than 1 volume type")
    if name:
        yield from invalid_texts(f"{field}.name", name, label_problems(name))
    else:
        yield required(f"{field}.name")
    if name in usable:
        yield duplicate(f"{field}.name", quoted(name))


def _check_empty_dir(field: str, source: Json) -> Iterator[Violation]:
    limit = quantities.parse(source["sizeLimit"]) if "sizeLimit" in source else None
    if limit is not None and limit.nano < 0:
        yield forbidden(f"{field}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _check_host_path(field: str, source: Json) -> Iterator[Violation]:
    if not source["path"]:
        yield required(f"{field}.path")
        return
    yield from invalid_texts(f"{field}.path", source["path"], backstep_problems(source["path"]))
    if source["type"] not in _HOST_PATHS:
        yield not_supported(f"{field}.type", source["type"], _HOST_PATHS)


def _check_git_repo(field: str, source: Json) -> Iterator[Violation]:
    if not source["repository"]:
        yield required(f"{field}.repository")
    directory = source.get("directory", "")
    yield from invalid_texts(f"{field}.directory", directory, descending_path_problems(directory))


def _check_secret(field: str, source: Json) -> Iterator[Violation]:
    if not source.get("secretName"):
        yield required(f"{field}.secretName")
    yield from _check_mode(f"{field}.defaultMode", source["defaultMode"])
    yield from _check_items(f"{field}.items", source)


def _check_config_map(field: str, source: Json) -> Iterator[Violation]:
    if not source.get("name"):
        yield required(f"{field}.name")
    yield from _check_mode(f"{field}.defaultMode", source["defaultMode"])
    yield from _check_items(f"{field}.items", source)


def _check_nfs(field: str, source: Json) -> Iterator[Violation]:
    for name in ("server", "path"):
        if not source[name]:
            yield required(f"{field}.{name}")
    if not source["path"].startswith("/"):
        yield invalid_text(f"{field}.path", source["path"], "must be an absolute path")


def _check_iscsi(field: str, source: Json) -> Iterator[Violation]:
    if not source["targetPortal"]:
        yield required(f"{field}.targetPortal")
    if source["iqn"]:
        yield from _check_iscsi_name(f"{field}.iqn", source["iqn"])
    else:
        yield required(f"{field}.iqn")
    for problem in range_problems(source["lun"], 0, 255):
        yield invalid(f"{field}.lun", source["lun"], problem)
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and "secretRef" not in source:
        yield required(f"{field}.secretRef")
    if "initiatorName" in source:
        yield from _check_iscsi_name(f"{field}.initiatorname", source["initiatorName"])


def _check_iscsi_name(field: str, name: str) -> Iterator[Violation]:
    shape = _ISCSI_NAMES.get(name[:3])
    if shape is None:
        yield invalid_text(field, name, "must be valid format starting with iqn, eui, or naa")
    elif not shape.search(name):
        yield invalid_text(field, name, "must be valid format")


def _check_claim(field: str, source: Json) -> Iterator[Violation]:
    if not source["claimName"]:
        yield required(f"{field}.claimName")


def _check_downward(field: str, source: Json) -> Iterator[Violation]:
    yield from _check_mode(f"{field}.defaultMode", source["defaultMode"])
    for file in source.get("items", ()):
        # The server names the volume here, not the file.
        yield from _check_file(field, file)


def _check_csi(field: str, source: Json) -> Iterator[Violation]:
    driver, secret = source["driver"], source.get("nodePublishSecretRef")
    if not driver:
        yield required(f"{field}.driver")
    if size(driver) > _LONGEST_DRIVER:
        yield too_long(f"{field}.driver", _LONGEST_DRIVER)
    if driver:
        yield from invalid_texts(f"{field}.driver", driver, subdomain_problems(driver.lower()))
    if secret is not None:
        name = secret.get("name", "")
        if name:
            yield from invalid_texts(f"{field}.name", name, subdomain_problems(name))
        else:
            yield required(f"{field}.nodePublishSecretRef.name")


def _check_ephemeral(field: str, source: Json) -> Iterator[Violation]:
    template, path = source.get("volumeClaimTemplate"), f"{field}.volumeClaimTemplate"
    if template is None:
        yield required(path)
        return
    meta = template["metadata"]
    yield from check_annotations(f"{path}.metadata.annotations", meta.get("annotations"))
    yield from check_labels(f"{path}.metadata.labels", meta.get("labels"))
    for name in STRUCTS["ObjectMeta"]:
        if name in meta and name not in _TEMPLATE_META:
            spelt = {"uid": "uID"}.get(name, name)
            yield forbidden(f"{path}.metadata.{spelt}", "cannot be set")
    if not template["spec"].get("accessModes"):
        yield required(f"{path}.spec.accessModes", "at least 1 access mode is required")
    if "storage" not in template["spec"]["resources"].get("requests", {}):
        yield required(f"{path}.spec.resources[storage]")


def _check_image(field: str, source: Json) -> Iterator[Violation]:
    yield from one_of(f"{field}.pullPolicy", source["pullPolicy"], _PULL_POLICIES)


def _check_projected(field: str, source: Json) -> Iterator[Violation]:
    yield from _check_mode(f"{field}.defaultMode", source["defaultMode"])
    paths: set[str] = set()
    for position, one in enumerate(source["sources"] or ()):
        spot = f"{field}.sources[{position}]"
        for kind in ("secret", "configMap"):
            if kind in one:
                yield from _check_keys(field, f"{spot}.{kind}", one[kind], paths)
        for file in one.get("downwardAPI", {}).get("items", ()):
            yield from _check_file(f"{spot}.downwardAPI", file)
            yield from _check_once(field, file["path"], file["path"], paths)
        if "serviceAccountToken" in one:
            yield from _check_token(field, f"{spot}.serviceAccountToken", one["serviceAccountToken"])
        if len(one) > 1:
            yield forbidden(spot, "may not specify more than 1 volume type per source")


def _check_keys(field: str, path: str, source: Json, paths: set[str]) -> Iterator[Violation]:
    if not source.get("name"):
        yield required(f"{path}.name")
    for position, item in enumerate(source.get("items", ())):
        yield from _check_item(f"{path}.items[{position}]", item)
        yield from _check_once(field, item["path"], source.get("name", ""), paths)


def _check_once(field: str, path: str, printed: str, paths: set[str]) -> Iterator[Violation]:
    if path in paths:
        yield invalid_text(field, printed, "conflicting duplicate paths")
    elif path:
        paths.add(path)


def _check_token(field: str, path: str, token: Json) -> Iterator[Violation]:
    seconds = token["expirationSeconds"]
    if seconds < _TEN_MINUTES:
        detail = "may not specify a duration less than 10 minutes"
        yield invalid(f"{path}.expirationSeconds", seconds, detail)
    if seconds > _LONGEST_TOKEN:
        detail = "may not specify a duration larger than 2^32 seconds"
        yield invalid(f"{path}.expirationSeconds", seconds, detail)
    if token["path"]:
        yield from invalid_texts(f"{field}.path", token["path"], local_path_problems(token["path"]))
    else:
        yield required(f"{field}.path")


def _check_items(field: str, source: Json) -> Iterator[Violation]:
    for position, item in enumerate(source.get("items", ())):
        yield from _check_item(f"{field}[{position}]", item)


def _check_item(field: str, item: Json) -> Iterator[Violation]:
    for name in ("key", "path"):
        if not item[name]:
            yield required(f"{field}.{name}")
    yield from invalid_texts(f"{field}.path", item["path"], local_path_problems(item["path"]))
    yield from _check_mode(f"{field}.mode", item.get("mode"))


def _check_file(field: str, file: Json) -> Iterator[Violation]:
    if not file["path"]:
        yield required(f"{field}.path")
    yield from invalid_texts(f"{field}.path", file["path"], local_path_problems(file["path"]))
    if "fieldRef" in file:
        yield from env.check_file_field(f"{field}.fieldRef", file["fieldRef"])
        if "resourceFieldRef" in file:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid_text(field, "resource", detail)
    elif "resourceFieldRef" in file:
        yield from env.check_resource(f"{field}.resourceFieldRef", file["resourceFieldRef"], in_file=True)
    else:
        yield required(field, "one of fieldRef and resourceFieldRef is required")
    yield from _check_mode(f"{field}.mode", file.get("mode"))


def _check_mode(field: str, mode: int | None) -> Iterator[Violation]:
    if mode is not None and not 0 <= mode <= _LARGEST_MODE:
        yield invalid(field, mode, "must be a number between 0 and 0777 (octal), both inclusive")


_KINDS: Mapping[str, _KindRule] = {
    "emptyDir": _check_empty_dir,
    "hostPath": _check_host_path,
    "gitRepo": _check_git_repo,
    "secret": _check_secret,
    "nfs": _check_nfs,
    "iscsi": _check_iscsi,
    "persistentVolumeClaim": _check_claim,
    "downwardAPI": _check_downward,
    "configMap": _check_config_map,
    "projected": _check_projected,
    "csi": _check_csi,
    "ephemeral": _check_ephemeral,
    "image": _check_image,
    **OLD_KINDS,
}
