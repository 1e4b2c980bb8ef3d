"""What a pod says about its containers and its end; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from mirror.embedded.controllers.client import Json
from mirror.kube.objects import Object

FINAL = frozenset(("Succeeded", "Failed"))
_FIRST_BACKOFF_SECONDS = 10.0
MOST_BACKOFF_SECONDS = 300.0
LONG_RUN_SECONDS = 2 * MOST_BACKOFF_SECONDS
"""A container that has run for so long begins anew with short pauses."""


def pod_of(found: Object) -> Json:
    """A pod as a dict, with the parts of its metadata that matter on a node."""
    meta = found.metadata
    return {
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "generation": meta.generation,
            "labels": meta.labels or {},
            "annotations": meta.annotations or {},
            "deletionTimestamp": meta.deletion_timestamp,
            "deletionGracePeriodSeconds": meta.deletion_grace_period_seconds,
        },
        "spec": found.spec_dict(),
        "status": found.status_dict(),
    }


def described(pod: Mapping[str, Any]) -> str:
    """``name_namespace(uid)``, as kubelets write it."""
    meta = pod["metadata"]
    return f"{meta['name']}_{meta['namespace']}({meta['uid']})"


def containers(spec: Mapping[str, Any]) -> Iterator[tuple[Json, bool]]:
    """All containers with whether they are init containers, those first."""
    for one in spec.get("initContainers") or ():
        yield one, True
    for one in spec.get("containers") or ():
        yield one, False


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """An init container that runs beside the others."""
    return container.get("restartPolicy") == "Always"


def restarts(spec: Mapping[str, Any], container: Mapping[str, Any], exit_code: int, *, is_init: bool) -> bool:
    """Whether a container that has ended so is started again."""
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        is_in = exit_code in (codes.get("values") or ())
        if is_in == (codes.get("operator") == "In"):
            return bool(rule.get("action") == "Restart")
    policy = container.get("restartPolicy") or spec.get("restartPolicy") or "Always"
    if is_init and not is_sidecar(container) and exit_code == 0:
        return False
    if policy == "Always":
        return True
    return policy == "OnFailure" and exit_code != 0


def next_backoff(current: float) -> float:
    """How long the restart after the next waits."""
    return min(2 * current, MOST_BACKOFF_SECONDS) if current else _FIRST_BACKOFF_SECONDS


def go_seconds(seconds: float) -> str:
    """Whole seconds as Go prints a duration: ``10s``, ``1m20s``, ``5m0s``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def grace_seconds(pod: Mapping[str, Any]) -> float:
    """How long a deleted pod may take; of a pod that ends otherwise, what its spec says."""
    of_deletion = pod["metadata"].get("deletionGracePeriodSeconds")
    seconds = of_deletion if of_deletion is not None else pod["spec"].get("terminationGracePeriodSeconds")
    return float(min(max(30 if seconds is None else seconds, 0), 2**31))


def moment(text: object) -> datetime | None:
    """A time of the API; None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
