"""What a Job refers to and a worker has to have by itself, since only the Job is copied; and other cautions. Pure.

Used by ``differences``. Whether a worker has it is not asked: users' Jobs may not be a way to look around there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mirror.batch.rule_names import BadRuleNames
from mirror.batch.views import items, mapping, text
from mirror.kinds.batch_job import rule_names
from mirror.kinds.own_annotations import mistakes
from mirror.kinds.report import Caution
from mirror.kube.objects import Object
from mirror.model import names

MOST_CAUTIONS = 100
_KINDS = ("initContainers", "containers", "ephemeralContainers")
_POD = "spec.template.spec"

Json = Mapping[str, object]


def cautions(source: Object, managed_by: str) -> tuple[Caution, ...]:
    """Everything to look after before this Job is sent, each thing once."""
    spec = source.spec_dict()
    pod = mapping(mapping(spec.get("template")).get("spec"))
    found = dict.fromkeys((*_about_job(source, spec, managed_by), *_about_pods(pod), *_references(pod)))
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
    account = text(pod.get("serviceAccountName")) or text(pod.get("serviceAccount"))
    if account not in ("", "default"):
        yield _not_copied(f"{_POD}.serviceAccountName", "ServiceAccount", account)
    for one in items(pod.get("imagePullSecrets")):
        yield _not_copied(f"{_POD}.imagePullSecrets", "Secret", text(mapping(one).get("name")))
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


def _references(pod: Json) -> Iterator[Caution]:
    for one in items(pod.get("volumes")):
        yield from _of_volume(mapping(one), f"{_POD}.volumes[{text(mapping(one).get('name'))}]")
    for kind in _KINDS:
        for one in items(pod.get(kind)):
            container = mapping(one)
            yield from _of_container(container, f"{_POD}.{kind}[{text(container.get('name'))}]")


def _of_volume(volume: Json, path: str) -> Iterator[Caution]:
    yield from _of_sources(volume, path)
    claim = mapping(volume.get("persistentVolumeClaim"))
    if claim:
        yield _not_copied(f"{path}.persistentVolumeClaim", "PersistentVolumeClaim", text(claim.get("claimName")))
    if "hostPath" in volume:
        yield Caution(f"{path}.hostPath", "the path is one of the worker's node")
    for one in items(mapping(volume.get("projected")).get("sources")):
        yield from _of_sources(mapping(one), f"{path}.projected")


def _of_sources(found: Json, path: str) -> Iterator[Caution]:
    for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        source = mapping(found.get(field))
        name = text(source.get("name")) or text(source.get("secretName"))
        if name and source.get("optional") is not True:
            yield _not_copied(f"{path}.{field}", kind, name)


def _of_container(container: Json, path: str) -> Iterator[Caution]:
    for one in items(container.get("env")):
        variable = mapping(one)
        where = f"{path}.env[{text(variable.get('name'))}]"
        yield from _of_refs(mapping(variable.get("valueFrom")), where, ("configMapKeyRef", "secretKeyRef"))
    for one in items(container.get("envFrom")):
        yield from _of_refs(mapping(one), f"{path}.envFrom", ("configMapRef", "secretRef"))


def _of_refs(found: Json, path: str, fields: Iterable[str]) -> Iterator[Caution]:
    for field in fields:
        ref = mapping(found.get(field))
        if text(ref.get("name")) and ref.get("optional") is not True:
            kind = "ConfigMap" if field.startswith("configMap") else "Secret"
            yield _not_copied(path, kind, text(ref.get("name")))


def _not_copied(path: str, kind: str, name: str) -> Caution:
    return Caution(path, f"{kind} {name} is not copied: it has to exist in the Job's namespace on the worker")
