"""What the API refuses in the environment, the volume mounts and the volume devices of a container (C31)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mirror.batch.syntax import (
    backstep_problems,
    config_key_problems,
    descending_path_problems,
    env_name_problems,
    label_problems,
    prefix_problems,
    qualified_name_problems,
    subdomain_problems,
)
from mirror.batch.violations import (
    Violation,
    forbidden,
    invalid_text,
    invalid_texts,
    not_found,
    not_supported,
    not_supported_text,
    required,
)
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.apimachinery.errors import Json

_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_FILE_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_CONVERTIBLE = frozenset((*_FIELDS, *_FILE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"))
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_SUBSCRIPT = re.compile(r"(.+?)\['(.*)'\]", re.DOTALL)
_BYTES = ("1", *(f"1{unit}{binary}" for binary in ("", "i") for unit in ("k" if not binary else "K", *"MGTPE")))
_DIVISORS = {
    "cpu": (("1m", "1"), "1m and 1", "cpu"),
    "memory": (_BYTES, ", ".join(_BYTES), "memory"),
    "ephemeral-storage": (_BYTES, ", ".join(_BYTES), "local ephemeral storage"),
    "hugepages": (_BYTES, ", ".join(_BYTES), "hugepages"),
}


def check_variables(field: str, variables: Sequence[Json]) -> Iterator[Violation]:
    """Names, and where values come from."""
    for position, variable in enumerate(variables):
        path, name = f"{field}[{position}]", variable["name"]
        if name:
            yield from invalid_texts(f"{path}.name", name, env_name_problems(name))
        else:
            yield required(f"{path}.name")
        if "valueFrom" in variable:
            yield from _check_value_from(f"{path}.valueFrom", variable["valueFrom"], variable.get("value", ""))


def check_sources(field: str, sources: Sequence[Json]) -> Iterator[Violation]:
    """Whole ConfigMaps and Secrets."""
    for position, source in enumerate(sources):
        path, prefix = f"{field}[{position}]", source.get("prefix", "")
        yield from invalid_texts(f"{path}.prefix", prefix, env_name_problems(prefix))
        found = [one for one in ("configMapRef", "secretRef") if one in source]
        for one in found:
            name = source[one].get("name", "")
            if name:
                yield from invalid_texts(f"{path}.{one}.name", name, prefix_problems(name))
            else:
                yield required(f"{path}.{one}.name")
        if not found:
            yield invalid_text(field, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(found) > 1:
            yield invalid_text(field, "", "may not have more than one field specified at a time")


def check_file_field(field: str, selector: Json) -> Iterator[Violation]:
    """A field of the pod in a file."""
    yield from _check_field(field, selector, _FILE_FIELDS)


def check_resource(field: str, selector: Json, *, in_file: bool) -> Iterator[Violation]:
    """A resource of a container, in a variable or a file."""
    resource = selector["resource"]
    if in_file and not selector.get("containerName"):
        yield required(f"{field}.containerName")
    elif not resource:
        yield required(f"{field}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield not_supported_text(f"{field}.resource", resource, _RESOURCES)
    divisor = quantities.parse(selector["divisor"])
    kind = "hugepages" if resource.startswith(_HUGE_PAGES) else resource.partition(".")[2]
    if divisor is None or not divisor.nano or (kind != "hugepages" and resource not in _RESOURCES):
        return
    supported, listed, name = _DIVISORS[kind]
    if divisor.text not in supported:
        detail = f"only divisor's values {listed} are supported with the {name} resource"
        yield invalid_text(f"{field}.divisor", resource, detail)


def _check_value_from(field: str, source: Json, value: str) -> Iterator[Violation]:
    found = [one for one in _SOURCES if one in source]
    if "fieldRef" in source:
        yield from _check_field(f"{field}.fieldRef", source["fieldRef"], _FIELDS)
    if "resourceFieldRef" in source:
        yield from check_resource(f"{field}.resourceFieldRef", source["resourceFieldRef"], in_file=False)
    for one in ("configMapKeyRef", "secretKeyRef"):
        if one in source:
            yield from _check_key(f"{field}.{one}", source[one])
    if "fileKeyRef" in source:
        yield from _check_file_key(f"{field}.fileKeyRef", source["fileKeyRef"])
    if not found:
        yield invalid_text(field, "", _NO_SOURCE)
    elif value:
        yield invalid_text(field, "", "may not be specified when `value` is not empty")
    elif len(found) > 1:
        yield invalid_text(field, "", "may not have more than one field specified at a time")


def _check_field(field: str, selector: Json, supported: Sequence[str]) -> Iterator[Violation]:
    version, path = selector["apiVersion"], selector["fieldPath"]
    if not path:
        yield required(f"{field}.fieldPath")
        return
    if version != "v1":
        yield _bad_path(field, path, f"unsupported pod version: {version}")
        return
    found = _SUBSCRIPT.fullmatch(path)
    if found is not None:
        if found[1] not in ("metadata.annotations", "metadata.labels"):
            yield _bad_path(field, path, f"field label does not support subscript: {path}")
            return
        key = found[2].lower() if found[1] == "metadata.annotations" else found[2]
        yield from invalid_texts(field, key, qualified_name_problems(key))
        return
    path = "spec.nodeName" if path == "spec.host" else path
    if path not in _CONVERTIBLE:
        yield _bad_path(field, path, f"field label not supported: {path}")
    elif path not in supported:
        yield not_supported_text(f"{field}.fieldPath", path, supported)


def _bad_path(field: str, path: str, problem: str) -> Violation:
    return invalid_text(f"{field}.fieldPath", path, f"error converting fieldPath: {problem}")


def _check_key(field: str, selector: Json) -> Iterator[Violation]:
    name, key = selector.get("name", ""), selector["key"]
    yield from invalid_texts(f"{field}.name", name, subdomain_problems(name))
    if key:
        yield from invalid_texts(f"{field}.key", key, config_key_problems(key))
    else:
        yield required(f"{field}.key")


def _check_file_key(field: str, selector: Json) -> Iterator[Violation]:
    for name, problems in (("key", env_name_problems), ("volumeName", label_problems), ("path", backstep_problems)):
        value = selector[name]
        if value:
            yield from invalid_texts(f"{field}.{name}", value, problems(value))
        else:
            yield required(f"{field}.{name}")


# Volume mounts and volume devices.

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
