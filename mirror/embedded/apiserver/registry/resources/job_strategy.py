"""What the API makes of a Job before it validates and stores it: create, update, update of the status (D9–D12, D21).

The embedded API server calls these between decoding and the rules. No input is changed; results are canonical and share
nothing with the request. What storage gives back of them is ``canonical.served``.
"""

from __future__ import annotations

from copy import deepcopy

from mirror.batch import views
from mirror.embedded.apiserver.apimachinery.canonical import Json, canonical, fill_labels, same
from mirror.embedded.apiserver.apimachinery.gates import ALL_ON, ApiGates
from mirror.embedded.apiserver.registry.resources import job_defaults
from mirror.embedded.apiserver.validation.jobs import LEGACY_NAME_LABEL, LEGACY_UID_LABEL, NAME_LABEL, UID_LABEL

_LONGEST_PREFIX, _SUFFIX = 58, 5
"""Of generated names (D9)."""
_SYSTEM_FIELDS = ("deletionTimestamp", "deletionGracePeriodSeconds")


def prepare_create(job: Json, *, uid: str, now: str, gates: ApiGates = ALL_ON) -> Json:
    """A Job as it will be validated and stored (D9). Its name and its namespace are set already."""
    made = canonical(job)
    had_labels = bool(made["metadata"].get("labels"))
    job_defaults.fill(made, gates=gates)
    meta, spec = made["metadata"], made["spec"]
    for name in _SYSTEM_FIELDS:
        meta.pop(name, None)
    meta["uid"], meta["creationTimestamp"], meta["generation"] = uid, now, 1
    made["status"] = {}
    if not spec["manualSelector"]:
        _generate_selector(made)
    labels = spec["template"]["metadata"].get("labels")
    if labels and not had_labels and _are_labels_shared(job):
        meta["labels"] = dict(labels)
    _drop_on_create(spec, gates)
    return made


def prepare_update(new: Json, old: Json, *, gates: ApiGates = ALL_ON) -> Json:
    """A changed Job as it will be validated and stored (D11). ``old`` is as the server serves it."""
    made = job_defaults.set_defaults(new, gates=gates)
    _drop_on_update(made["spec"], old["spec"], gates)
    made["status"] = deepcopy(old.get("status") or {})
    _keep_system_fields(made["metadata"], old["metadata"])
    if not same(made["spec"], canonical(old["spec"], "JobSpec")):
        made["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return made


def prepare_status_update(new: Json, old: Json) -> Json:
    """A Job whose status was written (D12): its spec stays, its metadata comes with the request."""
    made = canonical(new)
    made["apiVersion"], made["kind"] = "batch/v1", "Job"
    made["spec"] = deepcopy(old["spec"])
    _keep_system_fields(made["metadata"], old["metadata"])
    fill_labels(made)
    return made


def _are_labels_shared(job: Json) -> bool:
    """Whether a Job without labels gets the generated ones, too (D7).

    On a server its labels are one map with those of the template, be it an empty one, to which generated labels are
    added then. But an object whose name is generated has been copied before.
    """
    meta = views.mapping(job.get("metadata"))
    name, prefix = views.text(meta.get("name")), views.text(meta.get("generateName"))
    is_generated = prefix and name[:-_SUFFIX] == prefix[:_LONGEST_PREFIX]
    template = views.mapping(views.mapping(job.get("spec")).get("template"))
    return not is_generated and isinstance(views.mapping(template.get("metadata")).get("labels"), dict)


def _generate_selector(job: Json) -> None:
    """D10: labels and a selector that nobody else can have."""
    name, uid = job["metadata"].get("name", ""), job["metadata"]["uid"]
    generated = {LEGACY_NAME_LABEL: name, NAME_LABEL: name, LEGACY_UID_LABEL: uid, UID_LABEL: uid}
    template = job["spec"]["template"]["metadata"]
    template["labels"] = generated | template.get("labels", {})
    selector = job["spec"].setdefault("selector", {})
    selector["matchLabels"] = {UID_LABEL: uid} | selector.get("matchLabels", {})


def _keep_system_fields(meta: Json, old: Json) -> None:
    """What no client can change. What it gives beside that is for the rules, which find that it differs (U11)."""
    meta.pop("generation", None)
    for name in ("generation", "creationTimestamp", "deletionTimestamp"):
        if name in old:
            meta[name] = old[name]
    for name in ("uid", "resourceVersion", "namespace", "deletionGracePeriodSeconds"):
        if name in old:
            meta.setdefault(name, old[name])


def _drop_on_create(spec: Json, gates: ApiGates) -> None:
    """D21."""
    if not gates.job_managed_by:
        spec.pop("managedBy", None)
    if not gates.job_success_policy:
        spec.pop("successPolicy", None)
    if not gates.job_pod_replacement_policy:
        spec.pop("podReplacementPolicy", None)
    policy = spec.get("podFailurePolicy")
    if not gates.job_backoff_limit_per_index:
        spec.pop("backoffLimitPerIndex", None)
        spec.pop("maxFailedIndexes", None)
        if policy is not None:
            policy["rules"] = [rule for rule in policy["rules"] or () if rule["action"] != "FailIndex"]
    if not gates.pod_failure_policy_name:
        for rule in (policy or {}).get("rules") or ():
            rule.pop("name", None)


def _drop_on_update(spec: Json, old: Json, gates: ApiGates) -> None:
    """D21, RN4: what the stored Job has already is kept."""
    unknown = (
        ("successPolicy", gates.job_success_policy),
        ("backoffLimitPerIndex", gates.job_backoff_limit_per_index),
        ("maxFailedIndexes", gates.job_backoff_limit_per_index),
        ("podReplacementPolicy", gates.job_pod_replacement_policy),
    )
    for name, is_known in unknown:
        if not is_known and old.get(name) is None:
            spec.pop(name, None)
    if gates.pod_failure_policy_name:
        return
    old_rules = (old.get("podFailurePolicy") or {}).get("rules") or ()
    for position, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        if position >= len(old_rules) or old_rules[position].get("name") is None:
            rule.pop("name", None)
