"""What the API makes of a Job before it validates and stores it: create, update, update of the status (DF9–DF12, DF21).

Jobs come decoded and with their defaults, as the registry has them, and are changed in place; what is stored of them is
never changed.
"""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery.canonical import Json, canonical, fill_labels, same
from mirror.embedded.apiserver.apimachinery.gates import ApiGates
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.validation.jobs import LEGACY_NAME_LABEL, LEGACY_UID_LABEL, NAME_LABEL, UID_LABEL

_LONGEST_PREFIX, _SUFFIX = 58, 5
"""Of generated names (DF9)."""
_SYSTEM_FIELDS = ("deletionTimestamp", "deletionGracePeriodSeconds")


def prepare_create(job: Json, context: Context) -> Json:
    """A Job as it will be validated and stored (DF9). Its name, namespace and uid are set already."""
    meta, spec = job["metadata"], job["spec"]
    template = spec["template"]["metadata"]
    labels = template.get("labels")
    has_own_labels = bool(meta.get("labels")) and meta["labels"] is not labels
    shares_labels = not has_own_labels and labels is not None and not _has_generated_name(meta)
    _separate_labels(job)
    for name in _SYSTEM_FIELDS:
        meta.pop(name, None)
    meta["generation"] = 1
    job["status"] = {}
    if not spec["manualSelector"]:
        _generate_selector(job, context.uid)
    if shares_labels and template.get("labels"):
        meta["labels"] = dict(template["labels"])
    _drop_on_create(spec, context.gates)
    return job


def prepare_update(new: Json, old: Json, context: Context) -> Json:
    """A changed Job as it will be validated and stored (DF11). ``old`` is as the server serves it."""
    _separate_labels(new)
    _drop_on_update(new["spec"], old["spec"], context.gates)
    new["status"] = old.get("status") or {}
    if not same(new["spec"], canonical(old["spec"], "JobSpec")):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return new


def prepare_status_update(new: Json, old: Json, context: Context) -> Json:
    """A Job whose status was written (DF12): its spec stays, its metadata comes with the request."""
    _separate_labels(new)
    new["spec"] = old["spec"]
    fill_labels(new)
    return new


def _has_generated_name(meta: Json) -> bool:
    """Whether the object was copied once more, to give it a name, before it gets labels (DF7).

    On a server the labels of a Job without any are one map with those of its template, be it an empty one, to which
    generated labels are added then; a copy has a map of its own.
    """
    name, prefix = meta.get("name", ""), meta.get("generateName", "")
    return bool(prefix) and name[:-_SUFFIX] == prefix[:_LONGEST_PREFIX]


def _separate_labels(job: Json) -> None:
    """Defaults give a Job the very map of its template (DF7); from here on each has its own, and no empty one."""
    meta, template = job["metadata"], job["spec"]["template"]["metadata"]
    labels = template.get("labels")
    if labels and meta.get("labels") is labels:
        meta["labels"] = dict(labels)
    if labels == {}:
        del template["labels"]


def _generate_selector(job: Json, uid: str) -> None:
    """DF10: labels and a selector that nobody else can have."""
    name = job["metadata"].get("name", "")
    generated = {LEGACY_NAME_LABEL: name, NAME_LABEL: name, LEGACY_UID_LABEL: uid, UID_LABEL: uid}
    template = job["spec"]["template"]["metadata"]
    template["labels"] = generated | template.get("labels", {})
    selector = job["spec"].setdefault("selector", {})
    selector["matchLabels"] = {UID_LABEL: uid} | selector.get("matchLabels", {})


def _drop_on_create(spec: Json, gates: ApiGates) -> None:
    """DF21."""
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
    """DF21, RN4: what the stored Job has already is kept."""
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
