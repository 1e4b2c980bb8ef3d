"""What the API refuses in the environment of a container (C31)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mirror.batch.syntax import (
    backstep_problems,
    config_key_problems,
    env_name_problems,
    label_problems,
    prefix_problems,
    qualified_name_problems,
    subdomain_problems,
)
from mirror.batch.violations import Violation, invalid_text, invalid_texts, not_supported_text, required
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.apimachinery.canonical import Json

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
