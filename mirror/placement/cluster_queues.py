"""What Kueue on a worker says about a queue: how much of its ClusterQueue's quota is free. Pure.

Both versions of its API have these fields: v1beta1 and v1beta2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from mirror.batch import views
from mirror.placement.quotas import amount_of

STOPPED = ("Hold", "HoldAndDrain")
"""``stopPolicy`` of a queue that admits nothing."""


def free_quota(spec: Mapping[str, object], status: Mapping[str, object]) -> float:
    """Of a ClusterQueue's nominal quota the share that is not reserved, of its scarcest resource, from 0 to 1.

    Flavors of a resource are added up. What could be borrowed from a cohort is not counted: others may take it.
    Without any quota nothing is free, as Kueue has it.
    """
    if spec.get("stopPolicy") in STOPPED:
        return 0.0
    nominal, reserved = defaultdict[str, float](float), defaultdict[str, float](float)
    for name, value in _nominal(spec):
        if (amount := amount_of(value)) is not None:
            nominal[name] += amount
    # What is reserved is more than what is in use: some of it waits for admission checks.
    for name, value in _taken(status, "flavorsReservation") or _taken(status, "flavorsUsage"):
        reserved[name] += amount_of(value) or 0.0
    shares = (max(0.0, 1.0 - reserved[name] / most) if most else 0.0 for name, most in nominal.items())
    return min(shares, default=0.0)


def cluster_queue_of(spec: Mapping[str, object]) -> str:
    """Where a LocalQueue leads; empty where it leads nowhere."""
    return views.text(spec.get("clusterQueue"))


def is_stopped(spec: Mapping[str, object]) -> bool:
    """Whether a LocalQueue admits nothing."""
    return spec.get("stopPolicy") in STOPPED


def _nominal(spec: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for group in _maps(spec.get("resourceGroups")):
        for flavor in _maps(group.get("flavors")):
            for resource in _maps(flavor.get("resources")):
                yield views.text(resource.get("name")), resource.get("nominalQuota")


def _taken(status: Mapping[str, object], where: str) -> list[tuple[str, object]]:
    return [
        (views.text(resource.get("name")), resource.get("total"))
        for flavor in _maps(status.get(where))
        for resource in _maps(flavor.get("resources"))
    ]


def _maps(value: object) -> Iterable[Mapping[str, object]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
