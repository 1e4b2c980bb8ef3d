"""What of a Job's mirror is not as its source wants it (D9): what ``kinds.following`` needs to know of Jobs.

Which parts there are is in ``body``.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirror.batch import conditions
from mirror.kinds import following, queueing
from mirror.kinds.base import Changes, Json, MirrorTransform
from mirror.kinds.batch_job.body import POD_LABELS, SUSPEND, part_values, parts_of, wanted_body
from mirror.kube.objects import Object
from mirror.model import names


def changes(source: Object, mirror: Object, *, transform: MirrorTransform) -> Changes | None:
    """Compare a source with its mirror; None when there is nothing to write (D9)."""
    wanted = wanted_body(source, namespace=mirror.metadata.namespace, transform=transform)
    if names.FENCE in mirror.annotations:
        _leave_lease(wanted["spec"], mirror)
    found = following.changes(wanted, mirror, _FOLLOWED)
    return following.with_pod_labels(found, mirror, transform.pod_labels(source), _FOLLOWED)


def _leave_lease(wanted: Json, mirror: Object) -> None:
    """Its deadline is a lease, which ``decide.fencing`` keeps; what the user has is noted all the same."""
    wanted.pop("activeDeadlineSeconds", None)
    if (seconds := mirror.spec_dict().get("activeDeadlineSeconds")) is not None:
        wanted["activeDeadlineSeconds"] = seconds


def is_as_sent(sent: Mapping[str, Json], created: Object) -> bool:
    """Whether the worker has stored what was sent, all but additions."""
    return following.is_as_sent(sent, created, _FOLLOWED)


def _template_is_mutable(body: Json) -> bool:
    """U4: judged on the mirror as it is now."""
    status = body.get("status") or {}
    suspended = conditions.is_true(conditions.of(status), conditions.SUSPENDED)
    no_start = status.get("startTime") is None
    return bool(body["spec"].get("suspend")) and not status.get("active") and (no_start or suspended)


_FOLLOWED = following.Followed(
    parts=lambda wanted, _: parts_of(wanted),
    values=part_values,
    template_is_mutable=_template_is_mutable,
    suspend=SUSPEND,
    is_admitted=lambda body: queueing.is_admitted((body["spec"].get("template"),)),
    pod_labels=lambda _: (POD_LABELS,),
)
