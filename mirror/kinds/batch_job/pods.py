"""How the pods of a Job are found on its worker: by the labels that its controller sets there."""

from __future__ import annotations

from mirror.batch.label_selectors import selector_of
from mirror.kube.objects import Object

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
INDEX = "batch.kubernetes.io/job-completion-index"


def pod_selector(mirror: Object) -> str:
    """By the Job's uid, or by its own selector where its user wrote one."""
    spec = mirror.spec_dict()
    if spec.get("manualSelector") is not True:
        return f"{CONTROLLER_UID}={mirror.metadata.uid}"
    return str(selector_of(spec.get("selector")))
