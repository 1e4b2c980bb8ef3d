"""Defaults of pod templates (DF8) and of pods, which have more of them; in place, on canonical objects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.validation.pods.resources import needed_by

_FILE_MODE = 0o644
_HOUR_SECONDS = 3600
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

_POD: Mapping[str, object] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_PROBE: Mapping[str, object] = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_VOLUMES: Mapping[str, Mapping[str, object]] = {
    "hostPath": {"type": ""},
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
}


def fill(pod: Json) -> None:
    """Set what the spec of a pod template lacks."""
    _add(pod, _POD)
    pod.setdefault("securityContext", {})
    _pair_service_accounts(pod)
    for volume in pod.get("volumes", ()):
        _fill_volume(volume)
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in pod.get(name) or ():
            _fill_container(container)
    round_amounts(pod, "overhead")
    if "resources" in pod:
        _round_resources(pod["resources"])


def _add(target: Json, defaults: Mapping[str, object]) -> None:
    for name, value in defaults.items():
        target.setdefault(name, value)


def _pair_service_accounts(pod: Json) -> None:
    """The old name of the field is served beside the new one, which wins."""
    name = pod.get("serviceAccountName") or pod.get("serviceAccount")
    if name:
        pod["serviceAccountName"] = pod["serviceAccount"] = name


def _fill_volume(volume: Json) -> None:
    sources = [name for name in volume if name != "name"]
    if not sources:
        volume["emptyDir"] = {}
    for name in sources:
        _add(volume[name], _VOLUMES.get(name, {}))
    if "image" in volume:
        volume["image"].setdefault("pullPolicy", _pull_policy(volume["image"].get("reference", "")))
    claim = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if claim is not None:
        claim["spec"].setdefault("volumeMode", "Filesystem")
        _round_resources(claim["spec"]["resources"])
    for file in _files(volume):
        if "fieldRef" in file:
            file["fieldRef"].setdefault("apiVersion", "v1")


def _files(volume: Json) -> Iterator[Json]:
    """Files with content of the downward API; tokens get their default, too."""
    yield from volume.get("downwardAPI", {}).get("items", ())
    for source in volume.get("projected", {}).get("sources") or ():
        yield from source.get("downwardAPI", {}).get("items", ())
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", _HOUR_SECONDS)


def _fill_container(container: Json) -> None:
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", ()):
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            source["fieldRef"].setdefault("apiVersion", "v1")
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)
    _round_resources(container["resources"])
    for name in _PROBES:
        if name in container:
            _add(container[name], _PROBE)
            _fill_handler(container[name])
    for handler in container.get("lifecycle", {}).values():
        _fill_handler(handler)


def _fill_handler(handler: Json) -> None:
    if "httpGet" in handler:
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")
    if "grpc" in handler and handler["grpc"]["service"] is None:
        handler["grpc"]["service"] = ""


def _pull_policy(image: str) -> str:
    return "Always" if tag_of(image) == LATEST else "IfNotPresent"


def _round_resources(resources: Json) -> None:
    round_amounts(resources, "limits")
    round_amounts(resources, "requests")


def round_amounts(owner: Json, name: str) -> None:
    """Finer than a thousandth is rounded up, in the list of resources of this name."""
    listed: Json = owner.get(name, {})
    for resource, text in listed.items():
        found = quantities.parse(text)
        if found is not None:
            listed[resource] = quantities.rounded_up(found).text


LATEST = "latest"

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>{_DOMAIN}/{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?"
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_LONGEST_NAME = 255


def tag_of(image: str) -> str:
    """The tag; ``latest`` if there is neither a tag nor a digest, and nothing if this is no image name at all."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    first, slash, rest = image.partition("/")
    if not slash or not (set(".:") & set(first) or first == "localhost" or first != first.lower()):
        first, rest = "docker.io", image
    if first in ("docker.io", "index.docker.io") and "/" not in rest:
        rest = f"library/{rest}"
    found = _REFERENCE.fullmatch(f"{first}/{rest}")
    if found is None or len(found["name"]) > _LONGEST_NAME:
        return ""
    return found["tag"] or ("" if found["digest"] else LATEST)


# What pods have and templates do not: requests, ports of the host, service links.

_HUGE_PAGES = "hugepages-"
_OF_PODS = ("cpu", "memory")


def fill_pod(pod: Json) -> None:
    """Everything that a pod lacks."""
    _round_status(pod["status"])
    spec = pod["spec"]
    fill(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for container in _containers(spec):
        resources = container["resources"]
        if "limits" in resources:
            resources["requests"] = resources["limits"] | resources.get("requests", {})
    if spec.get("resources"):
        _fill_pod_limits(spec)
        _fill_pod_requests(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in _containers(spec):
            for port in container.get("ports", ()):
                if not port.get("hostPort") and port["containerPort"]:
                    port["hostPort"] = port["containerPort"]


def fill_addresses(status: Json) -> None:
    """``podIP`` is the first of ``podIPs``; where they differ, the single one wins."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0]["ip"] != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses:
        status["podIP"] = addresses[0]["ip"]


def _round_status(status: Json) -> None:
    """Amounts in a status are as fine as those of a spec."""
    owners = [status]
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        owners += status.get(kind, ())
    for owner in owners:
        round_amounts(owner, "allocatedResources")
        for name in ("limits", "requests"):
            round_amounts(owner.get("resources", {}), name)


def _containers(spec: Json) -> list[Json]:
    return [*(spec.get("containers") or ()), *spec.get("initContainers", ())]


def _fill_pod_limits(spec: Json) -> None:
    """Huge pages of all containers together."""
    resources = spec["resources"]
    if not resources.get("limits") and not resources.get("requests"):
        return
    for name, amount in needed_by(spec, "limits").items():
        if name.startswith(_HUGE_PAGES) and name not in resources.get("requests", {}):
            resources.setdefault("limits", {}).setdefault(name, amount.text)


def _fill_pod_requests(spec: Json) -> None:
    """What all containers request together, or else the pod's own limits."""
    resources = spec["resources"]
    if not resources.get("limits"):
        return
    requests = dict(resources.get("requests", {}))
    for name, amount in needed_by(spec, "requests").items():
        if name in _OF_PODS:
            requests.setdefault(name, amount.text)
    for name, text in resources["limits"].items():
        if name in _OF_PODS or name.startswith(_HUGE_PAGES):
            requests.setdefault(name, text)
    if requests:
        resources["requests"] = requests
