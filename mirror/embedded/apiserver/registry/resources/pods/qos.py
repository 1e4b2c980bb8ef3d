"""The quality of service of a pod, which follows from what its containers request."""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.apimachinery.strategy import Json

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COUNTED = ("cpu", "memory")


def of(spec: Json) -> str:
    """The class of a pod with this spec (canonical, with defaults)."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    has_all_limits = True
    if "resources" in spec:
        _add(requests, spec["resources"].get("requests"))
        _add(limits, spec["resources"].get("limits"))
        has_all_limits = "limits" not in spec["resources"] or set(limits) == set(_COUNTED)
    else:
        for container in (*(spec.get("containers") or ()), *spec.get("initContainers", ())):
            _add(requests, container["resources"].get("requests"))
            has_all_limits &= _add(limits, container["resources"].get("limits")) == set(_COUNTED)
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if has_all_limits and requests == limits else BURSTABLE


def _add(total: dict[str, int], listed: dict[str, str] | None) -> set[str]:
    """The names of resources of which there is some."""
    found = set()
    for name in _COUNTED:
        amount = quantities.parse((listed or {}).get(name, ""))
        if amount is not None and amount.nano > 0:
            total[name] = total.get(name, 0) + amount.nano
            found.add(name)
    return found
