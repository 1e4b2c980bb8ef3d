"""Which changes of a pod template the API allows: those of a suspended Job that runs nothing (U4–U10).

The rules look at the stored Job only: one write may resume a Job and change its template.
"""

from __future__ import annotations

from collections.abc import Iterator

from mirror.batch import conditions
from mirror.batch.feature_gates import FeatureGates
from mirror.batch.violations import IMMUTABLE, Violation, invalid
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.objects import canonical, same
from mirror.embedded.apiserver.apimachinery.printing import text

_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")
_DESCRIPTIONS = ("annotations", "labels")


def check(spec: Json, old: Json, gates: FeatureGates) -> Iterator[Violation]:
    """Whether the template of this spec may follow that of the stored Job."""
    new, stored = spec["template"], canonical(old["spec"]["template"], "PodTemplateSpec")
    is_suspended = old["spec"].get("suspend") is True
    if _may_change_directives(old, gates):
        stored = _with_directives(stored, new)
    if is_suspended and gates.mutable_pod_resources_for_suspended_jobs and is_mutable(old):
        if not same(new["spec"], _with_resources(stored["spec"], new["spec"])):
            yield invalid("spec.template.spec", text(new["spec"], "PodSpec"), IMMUTABLE)
    elif not same(new, stored):
        yield invalid("spec.template", text(new, "PodTemplateSpec"), IMMUTABLE)


def is_mutable(job: Json) -> bool:
    """U4, U10: suspended, with no active pods, and either never started or known to be suspended."""
    status = job.get("status") or {}
    if job["spec"].get("suspend") is not True or status.get("active"):
        return False
    return status.get("startTime") is None or conditions.is_true(conditions.of(status), conditions.SUSPENDED)


def _may_change_directives(job: Json, gates: FeatureGates) -> bool:
    """U6; with the gate off the rule of older servers, which does not look at pods (U9)."""
    if gates.mutable_scheduling_directives_for_suspended_jobs:
        return is_mutable(job)
    return job["spec"].get("suspend") is True and (job.get("status") or {}).get("startTime") is None


def _with_directives(stored: Json, new: Json) -> Json:
    """The stored template with what may differ taken from the new one (U6, U7)."""
    return {
        **stored,
        "metadata": _taking(stored["metadata"], new["metadata"], _DESCRIPTIONS),
        "spec": _with_affinity(_taking(stored["spec"], new["spec"], _DIRECTIVES), new["spec"]),
    }


def _with_affinity(stored: Json, new: Json) -> Json:
    """U7: of an affinity, only the part about nodes may differ; it may come and go with the whole."""
    old_affinity, affinity = stored.get("affinity"), new.get("affinity")
    if affinity is None and old_affinity is None:
        return stored
    changed = _taking(old_affinity or {}, affinity or {}, ("nodeAffinity",))
    rest = {name: value for name, value in stored.items() if name != "affinity"}
    return rest if affinity is None and not changed else {**rest, "affinity": changed}


def _with_resources(stored: Json, new: Json) -> Json:
    """U6: containers that are the same by position and name may have other resources."""
    changed = dict(stored)
    for kind in ("containers", "initContainers"):
        ours, theirs = stored.get(kind) or (), new.get(kind) or ()
        if ours and len(ours) == len(theirs):
            changed[kind] = [
                _taking(one, other, ("resources",)) if one["name"] == other["name"] else one
                for one, other in zip(ours, theirs, strict=True)
            ]
    return changed


def _taking(target: Json, source: Json, names: tuple[str, ...]) -> Json:
    """The target with these fields as they are in the source, absent where they are absent there."""
    kept = {name: value for name, value in target.items() if name not in names}
    return kept | {name: source[name] for name in names if name in source}
