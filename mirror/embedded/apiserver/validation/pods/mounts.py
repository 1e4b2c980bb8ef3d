"""What the API refuses in the volume mounts and volume devices of a container (C31)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mirror.batch.syntax import backstep_problems, descending_path_problems
from mirror.batch.violations import (
    Violation,
    forbidden,
    invalid_text,
    invalid_texts,
    not_found,
    not_supported,
    required,
)
from mirror.embedded.apiserver.apimachinery.canonical import Json

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def check(path: str, container: Json, volumes: Mapping[str, Json]) -> Iterator[Violation]:
    """Mounts and devices, which must not meet."""
    mounts, devices = container.get("volumeMounts", ()), container.get("volumeDevices", ())
    mounted = {one["name"]: one["mountPath"] for one in mounts}
    attached = {one["name"]: one["devicePath"] for one in devices}
    attached_paths = frozenset(attached.values())
    is_privileged = container.get("securityContext", {}).get("privileged", False)
    paths: set[str] = set()
    for position, mount in enumerate(mounts):
        field = f"{path}.volumeMounts[{position}]"
        yield from _check_place(field, mount, volumes, paths)
        if mount["name"] in attached:
            yield invalid_text(f"{field}.name", mount["name"], "must not already exist in volumeDevices")
        if mount["mountPath"] in attached_paths:
            detail = "must not already exist as a path in volumeDevices"
            yield invalid_text(f"{field}.mountPath", mount["mountPath"], detail)
        # The server names the list in what follows, not the mount.
        yield from _check_options(f"{path}.volumeMounts", field, mount, is_privileged=is_privileged)
    yield from _check_devices(f"{path}.volumeDevices", container, volumes, mounted)


def _check_place(field: str, mount: Json, volumes: Mapping[str, Json], paths: set[str]) -> Iterator[Violation]:
    name, path = mount["name"], mount["mountPath"]
    if not name:
        yield required(f"{field}.name")
    if name not in volumes:
        yield not_found(f"{field}.name", name)
    if not path:
        yield required(f"{field}.mountPath")
    if path in paths:
        yield invalid_text(f"{field}.mountPath", path, "must be unique")
    paths.add(path)


def _check_options(mounts: str, field: str, mount: Json, *, is_privileged: bool) -> Iterator[Violation]:
    sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    yield from invalid_texts(f"{mounts}.subPath", sub_path, descending_path_problems(sub_path))
    if expression and sub_path:
        detail = "subPathExpr and subPath are mutually exclusive"
        yield invalid_text(f"{field}.subPathExpr", expression, detail)
    yield from invalid_texts(f"{mounts}.subPathExpr", expression, descending_path_problems(expression))
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None and propagation not in _PROPAGATIONS:
        yield not_supported(f"{mounts}.mountPropagation", propagation, _PROPAGATIONS)
    if propagation == "Bidirectional" and not is_privileged:
        detail = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden(f"{mounts}.mountPropagation", detail)
    if recursive is not None and recursive not in _RECURSIVE:
        yield not_supported(f"{mounts}.recursiveReadOnly", recursive, _RECURSIVE)
    elif recursive not in (None, "Disabled"):
        if not mount.get("readOnly"):
            yield forbidden(f"{mounts}.recursiveReadOnly", "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            yield forbidden(f"{mounts}.recursiveReadOnly", detail)


def _check_devices(
    field: str, container: Json, volumes: Mapping[str, Json], mounted: Mapping[str, str]
) -> Iterator[Violation]:
    names: set[str] = set()
    paths: set[str] = set()
    mounted_paths = frozenset(mounted.values())
    for position, device in enumerate(container.get("volumeDevices", ())):
        spot, name, path = f"{field}[{position}]", device["name"], device["devicePath"]
        if not name:
            yield required(f"{spot}.name")
        if name in names:
            yield invalid_text(f"{spot}.name", name, "must be unique")
        if name not in volumes:
            yield not_found(f"{spot}.name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid_text(f"{spot}.name", name, detail)
        if not path:
            yield required(f"{spot}.devicePath")
        if path in paths:
            yield invalid_text(f"{spot}.devicePath", path, "must be unique")
        if backstep_problems(path):
            yield invalid_text(f"{spot}.devicePath", path, "can not contain backsteps ('..')")
        else:
            paths.add(path)
        if name in mounted:
            yield invalid_text(f"{spot}.name", name, "must not already exist in volumeMounts")
        if path in mounted_paths:
            yield invalid_text(f"{spot}.devicePath", path, "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)
