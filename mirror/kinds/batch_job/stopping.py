"""A Job's mirror that is stopped, so that its source can leave a worker that is drained (D14). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.batch import conditions, views
from mirror.batch.conditions import SUSPENDED
from mirror.kinds.batch_job.body import SUSPEND
from mirror.kinds.batch_job.spec_facts import facts_of
from mirror.kinds.following import noted_as
from mirror.kube.objects import Object
from mirror.model import names

_PODS = ("active", "ready", "terminating")


def operations(mirror: Object) -> tuple[Mapping[str, Any], ...]:
    """Suspend it, and note that: that it shall run is then a change of its source, should it stay (D9)."""
    carried = noted_as(mirror.annotations.get(names.CARRIED, ""), SUSPEND.name, value=True)
    annotations = dict(mirror.annotations) | {names.CARRIED: carried}
    return (
        {"op": "add", "path": SUSPEND.pointer, "value": True},
        {"op": "add", "path": "/metadata/annotations", "value": annotations},
    )


def is_resuming(mirror: Object) -> bool:
    """Whether its controller has not answered yet that it is to run: it may make pods, and its status is of before."""
    return not facts_of(mirror.spec).is_suspended and conditions.is_true(conditions.of(mirror.status_dict()), SUSPENDED)


def ends_when_suspended(mirror: Object) -> bool:
    """Without ``completions`` a Job is complete once a pod of it has succeeded and none runs, whatever ended those.

    One whose size cannot be read is treated alike: a worker may answer anything (D7).
    """
    size = facts_of(mirror.spec).size
    return size is None or size.completions is None


def has_succeeded(found: Object) -> bool:
    """Whether a pod of it has, counted or not."""
    status = found.status_dict()
    return bool(status.get("succeeded")) or bool(views.mapping(status.get("uncountedTerminatedPods")).get("succeeded"))


def has_stopped(mirror: Object) -> bool:
    """Suspended, by its controller's word too, and every pod is gone and counted."""
    status = mirror.status_dict()
    if mirror.spec_dict().get("suspend") is not True or any(status.get(name) for name in _PODS):
        return False
    uncounted = status.get("uncountedTerminatedPods")
    if isinstance(uncounted, Mapping) and any(uncounted.values()):
        return False
    return conditions.is_true(conditions.of(status), SUSPENDED)
