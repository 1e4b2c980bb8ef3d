"""What a Job refers to, which goes along or has to be on the worker by itself (D27); and other cautions. Pure.

Used by ``differences``; ``references`` and ``requirements`` by the kind. Whether a worker has it is not asked here, but
by ``access.looking``, for who may see objects of that name at home: Jobs may not be a way to look around there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mirror.batch.rule_names import BadRuleNames
from mirror.batch.views import items, mapping, text
from mirror.kinds.batch_job import rule_names
from mirror.kinds.dependencies import RESOURCES, BadCarry, DependencyPolicy, Reference, requested_kinds
from mirror.kinds.own_annotations import mistakes
from mirror.kinds.pod_references import IMAGE_PULL_SECRETS, pod_references, pod_requirements
from mirror.kinds.report import Caution
from mirror.kube.objects import Object
from mirror.model import names

MOST_CAUTIONS = 100
_POD = "spec.template.spec"
_HAS_TO_EXIST = "it has to exist in the Job's namespace on the worker"

Json = Mapping[str, object]


def cautions(source: Object, managed_by: str, policy: DependencyPolicy | None = None) -> tuple[Caution, ...]:
    """Everything to look after before this Job is sent, each thing once. ``policy``: None where nobody knows it."""
    spec = source.spec_dict()
    pod = mapping(mapping(spec.get("template")).get("spec"))
    about_job, along = _about_job(source, spec, managed_by), _dependencies(source, policy)
    found = dict.fromkeys((*about_job, *_about_pods(pod), *along, *_volumes(pod)))
    return tuple(found)[:MOST_CAUTIONS]


def _about_job(source: Object, spec: Json, managed_by: str) -> Iterator[Caution]:
    manager = text(spec.get("managedBy"))
    if manager != managed_by:
        who = f"names {manager}" if manager else "is not set"
        yield Caution("spec.managedBy", f"{who}: it is mirrored only with {managed_by}, set by you or by the webhook")
    if "orphan" in (source.metadata.finalizers or ()):
        yield Caution("metadata.finalizers", "deleting with Orphan keeps no pods: those on the worker go with the Job")
    if source.metadata.owner_references:
        yield Caution("metadata.ownerReferences", "its owner is not on the worker; the mirror goes with this Job alone")
    if "ttlSecondsAfterFinished" in spec:
        yield Caution("spec.ttlSecondsAfterFinished", "when it is over, the mirror goes too, and with it pods and logs")
    for text_of_mistake in mistakes(source, (names.RULE_NAMES,)):
        yield Caution("metadata.annotations", text_of_mistake)
    try:
        rule_names.check(source)
    except BadRuleNames as error:
        yield Caution(f"metadata.annotations[{names.RULE_NAMES}]", str(error))


def _about_pods(pod: Json) -> Iterator[Caution]:
    for field, kind in (("priorityClassName", "PriorityClass"), ("runtimeClassName", "RuntimeClass")):
        name = text(pod.get(field))
        if name and not name.startswith("system-"):
            yield Caution(f"{_POD}.{field}", f"{kind} {name} has to exist on the worker")
    if (scheduler := text(pod.get("schedulerName"))) not in ("", "default-scheduler"):
        yield Caution(f"{_POD}.schedulerName", f"the worker needs a scheduler {scheduler}")
    for field in ("nodeSelector", "affinity", "nodeName"):
        if pod.get(field):
            yield Caution(f"{_POD}.{field}", "it is about the worker's nodes")
    for one in items(pod.get("resourceClaims")):
        claim = mapping(one)
        name = text(claim.get("resourceClaimName")) or text(claim.get("resourceClaimTemplateName"))
        yield _not_copied(f"{_POD}.resourceClaims", "what it claims", name)


def _dependencies(source: Object, policy: DependencyPolicy | None) -> Iterator[Caution]:
    """What goes along, and what the worker has to have (D27)."""
    try:
        requested = requested_kinds(source.annotations)
    except BadCarry as error:
        requested = frozenset()
        yield Caution(f"metadata.annotations[{names.CARRY}]", str(error))
    allowed = policy.allowed(source.metadata.namespace) if policy is not None else frozenset(RESOURCES)
    for reference in references(source):
        kind, name = reference.kind, reference.name
        if kind in requested & allowed:
            by_settings = "" if policy is not None else ", if the manager's setting dependencies allows it"
            if_there = " where it exists" if reference.is_optional else ""
            yield Caution(reference.path, f"{kind} {name} goes along{if_there}{by_settings}")
        elif kind in requested:
            why = "the manager's setting dependencies does not allow it"
            yield Caution(reference.path, f"{kind} {name} does not go along, since {why}: {_HAS_TO_EXIST}")
        elif not reference.is_optional or reference.path.endswith(IMAGE_PULL_SECRETS):
            yield _not_copied(reference.path, kind, name)


def references(source: Object) -> tuple[Reference, ...]:
    """What the pod template of a Job refers to."""
    pod = mapping(mapping(source.spec_dict().get("template")).get("spec"))
    return tuple(pod_references(pod, _POD))


def requirements(source: Object) -> tuple[Reference, ...]:
    """Everything that its pods name, whether it may go along or not."""
    pod = mapping(mapping(source.spec_dict().get("template")).get("spec"))
    return (*references(source), *pod_requirements(pod, _POD))


def _volumes(pod: Json) -> Iterator[Caution]:
    for one in items(pod.get("volumes")):
        volume = mapping(one)
        path = f"{_POD}.volumes[{text(volume.get('name'))}]"
        claim = mapping(volume.get("persistentVolumeClaim"))
        if claim:
            yield _not_copied(f"{path}.persistentVolumeClaim", "PersistentVolumeClaim", text(claim.get("claimName")))
        if "hostPath" in volume:
            yield Caution(f"{path}.hostPath", "the path is one of the worker's node")


def _not_copied(path: str, kind: str, name: str) -> Caution:
    return Caution(path, f"{kind} {name} is not copied: {_HAS_TO_EXIST}")
