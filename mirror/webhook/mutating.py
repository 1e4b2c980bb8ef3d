"""Which new Jobs become ours, and how: the mutating half of the webhook (D16). Pure; called by ``routes``.

A claimed Job gets our ``managedBy`` and is suspended until it has a place; the mark ``held`` says that it was us. The
selectors of the webhook's configuration choose whom we are asked about; what is left alone for its own sake is here.
"""

from __future__ import annotations

from mirror.kinds.base import HELD, Kind
from mirror.kinds.registry import BUILT_IN, Kinds
from mirror.kube.objects import Object
from mirror.model import names
from mirror.webhook.reviews import CREATE, Question, Verdict

QUEUES = (names.QUEUE_NAME, "kueue.x-k8s.io/prebuilt-workload-name")
"""Labels and annotations of Jobs that another queue holds and releases."""
_RECORDS = (names.ASSIGNED_WORKER, names.MANAGER, names.WAITING_BECAUSE, names.MIRROR_UID)
"""Notes about another Job, where one was copied with its annotations."""


def mutate(
    question: Question, managed_by: str, *, namespaces: tuple[str, ...] = (), kinds: Kinds = BUILT_IN
) -> Verdict:
    """Claim the Job, or leave it as it is.

    Args:
        question: about a Job that a selector of the configuration chose.
        managed_by: what makes a Job ours.
        namespaces: those that the manager looks at; empty: all.
        kinds: those that are mirrored.
    """
    found = question.found
    if question.operation != CREATE or why_not(question.kind, found, kinds):
        return Verdict()
    if namespaces and question.namespace not in namespaces:
        # Nobody would ever release it.
        return Verdict(warnings=("not mirrored: jobmirror does not look at this namespace (setting namespaces)",))
    kind = question.kind
    operations = [*kind.claim_operations(found, kind.managed_by_value or managed_by)]
    annotations = {key: value for key, value in found.annotations.items() if key not in (*_RECORDS, names.HELD)}
    if kind.can_be_suspended and not kind.is_suspended(found):
        annotations[names.HELD] = HELD
    if annotations != found.annotations:
        operations.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
    return Verdict(operations=operations)


def why_not(kind: Kind, found: Object, kinds: Kinds = BUILT_IN) -> str:
    """Why a new object is left alone; empty for one that we claim."""
    if not bytes(found.spec).lstrip().startswith(b"{"):
        return "it has no spec, which its API server will say better than we"
    if kind.managed_by(found) is not None:
        return "it says itself who manages it"
    if names.ORIGIN in found.labels and names.SOURCE_UID in found.labels:
        return "it is a mirror"
    if any(key in found.labels or key in found.annotations for key in QUEUES):
        return "another queue holds it"
    # What such an owner makes belongs to its mirror, or, where somebody else runs the owner, to that one. So does what
    # its children make: of an owner no more than its kind is known here, and which kinds it makes its entry says.
    mirrored = {(one.resource.group, one.name) for one in kinds}
    mirrored |= {(made.group, made.kind) for one in kinds for made in one.pod_owners}
    for owner in found.metadata.owner_references or ():
        if owner.controller and (owner.api_version.rpartition("/")[0], owner.kind) in mirrored:
            return f"its owner, of kind {owner.kind}, is mirrored itself, or belongs to what is"
    return ""
