"""What all test worlds with whole managers share: a manager's settings, a worker's Secret, what a source says."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.decide.snapshot import Policy
from mirror.kinds.base import MirrorTransform
from mirror.model import names

HOME = "jobmirror-system"

Body = dict[str, Any]


def settings_of(origin: str, **changes: Any) -> MirroringSettings:
    """Default settings for a management cluster."""
    plain = MirroringSettings(
        namespace=HOME,
        management_uid=origin,
        managed_by=names.DEFAULT_MANAGED_BY,
        transform=MirrorTransform(origin),
        policy=Policy(),
        closed_namespaces=("kube-*", HOME),
    )
    return replace(plain, **changes)


def worker_secret(
    name: str,
    kubeconfig: str,
    annotations: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    *,
    namespace: str = HOME,
) -> Body:
    """The Secret that registers a worker; annotations are ours."""
    metadata: Body = {"name": name, "namespace": namespace, "labels": {names.WORKER: "true", **(labels or {})}}
    metadata["annotations"] = {names.PREFIX + key: value for key, value in annotations.items()}
    return {"metadata": metadata, "data": {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()}}


def conditions(body: Body | None) -> dict[str, str]:
    """Type → reason of the True conditions of a Job."""
    return {one["type"]: one.get("reason", "") for one in _listed(body) if one["status"] == "True"}


def placed(body: Body | None) -> str | None:
    """The worker that is recorded on a source."""
    is_so = (names.PLACED, "True")
    return next((one["message"] for one in _listed(body) if (one["type"], one["status"]) == is_so), None)


def _listed(body: Body | None) -> list[Body]:
    return list(((body or {}).get("status") or {}).get("conditions") or ())
