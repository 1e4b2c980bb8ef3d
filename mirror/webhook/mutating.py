"""Which new Jobs become ours, and how: the mutating half of the webhook (D16). Pure; called by ``routes``.

A claimed Job gets our ``managedBy`` and is suspended until it has a place; the mark ``held`` says that it was us. The
selectors of the webhook's configuration choose whom we are asked about; what is left alone for its own sake is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.kinds.base import HELD
from mirror.kinds.registry import BUILT_IN, JOB
from mirror.kube.objects import Object
from mirror.model import names
from mirror.webhook.reviews import CREATE, Question, Verdict

QUEUES = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/prebuilt-workload-name")
"""Labels and annotations of Jobs that another queue holds and releases."""
MIRRORED_KINDS = frozenset((kind.resource.group, kind.name) for kind in BUILT_IN)
"""What such an object makes belongs to its mirror, not to us."""
_RECORDS = (names.ASSIGNED_WORKER, names.WAITING_BECAUSE, names.MIRROR_UID)
"""Notes about another Job, where one was copied with its annotations."""


def mutate(question: Question, managed_by: str, *, namespaces: tuple[str, ...] = ()) -> Verdict:
    """Claim the Job, or leave it as it is.

    Args:
        question: about a Job that a selector of the configuration chose.
        managed_by: what makes a Job ours.
        namespaces: those that the manager looks at; empty: all.
    """
    found = question.found
    if question.operation != CREATE or why_not(found):
        return Verdict()
    if namespaces and question.namespace not in namespaces:
        # Nobody would ever release it.
        return Verdict(warnings=("not mirrored: jobmirror does not look at this namespace (setting namespaces)",))
    operations: list[Mapping[str, Any]] = [{"op": "add", "path": "/spec/managedBy", "value": managed_by}]
    annotations = {key: value for key, value in found.annotations.items() if key not in (*_RECORDS, names.HELD)}
    if not JOB.is_suspended(found):
        operations.append({"op": "add", "path": "/spec/suspend", "value": True})
        annotations[names.HELD] = HELD
    if annotations != found.annotations:
        operations.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
    return Verdict(operations=operations)


def why_not(found: Object) -> str:
    """Why a new Job is left alone; empty for one that we claim."""
    if not bytes(found.spec).lstrip().startswith(b"{"):
        return "it has no spec, which its API server will say better than we"
    if JOB.managed_by(found) is not None:
        return "it says itself who manages it"
    if names.ORIGIN in found.labels and names.SOURCE_UID in found.labels:
        return "it is a mirror"
    if any(key in found.labels or key in found.annotations for key in QUEUES):
        return "another queue holds it"
    for owner in found.metadata.owner_references or ():
        if owner.controller and (owner.api_version.rpartition("/")[0], owner.kind) in MIRRORED_KINDS:
            return f"its owner, a {owner.kind}, is mirrored itself"
    return ""
