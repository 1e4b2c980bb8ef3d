"""Defaults that pods have and pod templates do not: requests, ports of the host, service links. In place."""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery.strategy import Json
from mirror.embedded.apiserver.registry.resources import pod_defaults
from mirror.embedded.apiserver.registry.resources.pod_defaults import round_amounts
from mirror.embedded.apiserver.validation.pods.resources import needed_by

_HUGE_PAGES = "hugepages-"
_OF_PODS = ("cpu", "memory")


def fill(pod: Json) -> None:
    """Everything that a pod lacks."""
    _round_status(pod["status"])
    spec = pod["spec"]
    pod_defaults.fill(spec)
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
