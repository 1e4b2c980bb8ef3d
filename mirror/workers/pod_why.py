"""What a table says of a pod that does not run. Pure; used by ``mirror pods`` and the page's Pods tab.

What is in trouble comes first, in the manager's words (``pod_trouble``), be it an init container, another one or the
pod itself; else what a container, or the pod, says of itself, as the worker has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from mirror.batch import views
from mirror.kube.objects import JUNK
from mirror.model.reasons import Reason
from mirror.workers.pod_trouble import Trouble, trouble_of

Json = Mapping[str, object]

STATUSES = ("initContainerStatuses", "containerStatuses")
"""Fields of a pod's status, in the order in which their containers run."""


def why_of(pod: Json) -> str:
    """Reason and text; empty: it runs, has succeeded, or nobody has said a word about it."""
    status = views.mapping(pod.get("status"))
    trouble = _trouble_of(pod)
    if trouble is not None and trouble.reason != Reason.PODS_FAILING:  # which is of a Job, not of one pod
        return f"{trouble.reason}: {trouble.text}"
    own = _joined(status.get("reason"), status.get("message"))
    return next(filter(None, map(_of_container, container_statuses(status))), own)


def container_statuses(status: Json) -> Iterator[Json]:
    """Those of the init containers first."""
    return (views.mapping(one) for part in STATUSES for one in views.items(status.get(part)))


def _trouble_of(pod: Json) -> Trouble | None:
    try:
        return trouble_of(msgspec.json.encode(pod.get("status")), msgspec.json.encode(pod.get("spec")))
    except (*JUNK, UnicodeEncodeError):
        return None


def _of_container(status: Json) -> str:
    state = views.mapping(status.get("state"))
    waiting, ended = views.mapping(state.get("waiting")), views.mapping(state.get("terminated"))
    if waiting.get("reason"):
        return _joined(waiting.get("reason"), waiting.get("message"))
    code = views.number(ended.get("exitCode"))
    if not code:
        return ""
    told = _joined(f"{views.text(ended.get('reason')) or 'Error'} (exit code {code})", ended.get("message"))
    return _joined(f"container {views.text(status.get('name'))}", told)


def _joined(*texts: object) -> str:
    return ": ".join(filter(None, map(views.text, texts)))
