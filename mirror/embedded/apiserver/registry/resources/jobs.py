"""Jobs: defaults, preparation for storage, warnings, columns (DF1–DF21). The pod template's are in ``pod_defaults`` and
``validation/pods/warnings``; the rules are in ``validation/jobs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from types import MappingProxyType

from mirror.batch import conditions
from mirror.batch.feature_gates import FeatureGates
from mirror.batch.syntax import label_problems
from mirror.batch.times import BadTime
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.apimachinery import errors
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import canonical, same
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json, Strategy, Update
from mirror.embedded.apiserver.registry import object_meta, printers
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.registry.resources import pod_defaults
from mirror.embedded.apiserver.validation import jobs
from mirror.embedded.apiserver.validation.jobs import LEGACY_NAME_LABEL, LEGACY_UID_LABEL, NAME_LABEL, UID_LABEL
from mirror.embedded.apiserver.validation.pods.warnings import template_warnings

ORPHANED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them"
    " or set propagationPolicy=Orphan to suppress this warning"
)
_STATUSES = (
    (conditions.COMPLETE, "Complete"),
    (conditions.FAILED, "Failed"),
    ("", "Terminating"),
    (conditions.SUSPENDED, "Suspended"),
    (conditions.FAILURE_TARGET, "FailureTarget"),
    (conditions.SUCCESS_CRITERIA_MET, "SuccessCriteriaMet"),
)
"""Condition → what the table says, the first that is true; without a condition: it is being deleted (DF19)."""


class Jobs(Strategy):
    """The strategy of Jobs; its rules are in ``validation/jobs``."""

    struct = "Job"
    checks_metadata = True
    default_propagation = "Orphan"
    selectable = MappingProxyType({"status.successful": lambda body: str(body["status"].get("succeeded", 0))})
    selector_refusal = 'field label "{label}" not supported for Job'
    columns = (
        printers.NAME,
        Column("Status", description="Status of the job."),
        Column("Completions", description=TEXTS["JOB_SUCCEEDED"]),
        Column("Duration", description="Time required to complete the job."),
        printers.AGE,
        Column("Containers", priority=1, description="Names of each container in the template."),
        Column("Images", priority=1, description="Images referenced by each container in the template."),
        Column("Selector", priority=1, description=TEXTS["JOB_SELECTOR"]),
    )

    def __init__(self) -> None:
        self.subresources = {"status": Update(prepare_status_update, _check_status, resets=(("spec",),))}

    def decode(self, body: Json) -> Json:
        has_empty_labels = _has_empty_template_labels(body)
        found = canonical(body)
        if "spec" not in found:
            found["spec"] = canonical({}, "JobSpec")
        found.setdefault("status", {})
        if has_empty_labels:
            found["spec"]["template"]["metadata"]["labels"] = {}
        return found

    def default(self, body: Json, context: Context) -> None:
        has_labels = bool(body["metadata"].get("labels"))
        fill(body, gates=context.gates)
        labels = body["spec"]["template"]["metadata"].get("labels")
        if labels and not has_labels:
            # One map, as in the server (DF7): labels that are generated for the pods come to both, unless a copy is
            # made meanwhile (by a webhook, or to generate a name).
            body["metadata"]["labels"] = labels

    def prepare_create(self, body: Json, context: Context) -> Json:
        return prepare_create(body, context)

    def check_create(self, body: Json, context: Context) -> Sequence[Violation]:
        return jobs.check_create(body, gates=context.gates)

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        return prepare_update(new, old, context)

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return jobs.check_update(new, old, gates=context.gates)

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        return warnings_of(new, old)

    def delete_warnings(self, propagation: str | None) -> Sequence[str]:
        return (ORPHANED,) if propagation is None else ()

    def served(self, stored: Json) -> Json:
        found = object_meta.stored(stored, self.struct)
        found["metadata"] = dict(found["metadata"])
        fill_labels(found)
        return found

    def cells(self, body: Json, now: datetime) -> list[object]:
        spec, status = body["spec"], body["status"]
        names, images = printers.containers(spec["template"]["spec"].get("containers") or ())
        return [
            body["metadata"]["name"],
            _status(body),
            _completions(spec, status),
            _duration(status, now),
            printers.age(body, now),
            names,
            images,
            printers.selector(spec.get("selector")),
        ]


def _has_empty_template_labels(body: Json) -> bool:
    """Whether there is a map of labels without any, which the server then fills and shares (DF7)."""
    found: object = body
    for name in ("spec", "template", "metadata", "labels"):
        if not isinstance(found, dict):
            return False
        found = found.get(name)
    return found == {}


def _check_status(new: Json, old: Json, context: Context) -> Sequence[Violation]:
    try:
        return jobs.check_status_write(new, old)
    except BadTime as error:
        # Decoding has refused what is no time; years beyond 9999 in UTC remain.
        raise errors.bad_request(f"parsing time {error}") from error


def _status(body: Json) -> str:
    known = conditions.of(body["status"])
    for kind, word in _STATUSES:
        if _is_first_true(known, kind) if kind else "deletionTimestamp" in body["metadata"]:
            return word
    return "Running"


def _is_first_true(known: conditions.Conditions, kind: str) -> bool:
    found = conditions.find(known, kind)
    return found is not None and found.get("status") == conditions.TRUE


def _completions(spec: Json, status: Json) -> str:
    succeeded, completions = status.get("succeeded", 0), spec.get("completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(status: Json, now: datetime) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if start is None:
        return ""
    return printers.since(start, now) if end is None else printers.between(start, end)


def kind() -> Kind:
    """``batch/v1`` ``jobs``."""
    return Kind("batch", "v1", "Job", "jobs", Jobs(), singular="job", categories=("all",))


# Preparation: what the API makes of a Job before it validates and stores it (DF9–DF12, DF21).

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


def _drop_on_create(spec: Json, gates: FeatureGates) -> None:
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


def _drop_on_update(spec: Json, old: Json, gates: FeatureGates) -> None:
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


# Defaults, set whenever a Job is decoded, from a request and from storage alike (DF1–DF8).

UNLIMITED = 2**31 - 1
BACKOFF_LIMIT = 6


def fill(job: Json, *, gates: FeatureGates) -> None:
    """Set what a canonical Job lacks, in place."""
    job["apiVersion"], job["kind"] = "batch/v1", "Job"
    spec = job.setdefault("spec", {"template": {"metadata": {}, "spec": {}}})
    _fill_counts(spec)
    _fill_modes(spec, gates)
    fill_labels(job)
    pod_defaults.fill(spec["template"]["spec"])


def _fill_counts(spec: Json) -> None:
    """DF2, DF3."""
    if "parallelism" not in spec:
        if "completions" not in spec:
            spec["completions"] = 1
        spec["parallelism"] = 1
    spec.setdefault("backoffLimit", UNLIMITED if "backoffLimitPerIndex" in spec else BACKOFF_LIMIT)


def _fill_modes(spec: Json, gates: FeatureGates) -> None:
    """DF4, DF5, DF6."""
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    policy = spec.get("podFailurePolicy")
    if gates.job_pod_replacement_policy:
        spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if policy is None else "Failed")
    fill_conditions(spec)


def fill_conditions(spec: Json) -> None:
    """DF6, which templates of Jobs have, too; in place."""
    for rule in spec.get("podFailurePolicy", {}).get("rules") or ():
        for pattern in rule.get("onPodConditions", ()):
            pattern["status"] = pattern["status"] or "True"


def fill_labels(job: Json) -> None:
    """DF7, in place: a Job without labels has those of its pods. Reading from storage does this, too (DF1)."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


# Warnings (DF17).

_MANY_COMPLETIONS, _MANY_PARALLEL = 100_000, 10_000
_TOO_MANY_INDEXES = (
    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes"
    " might not be able to track completedIndexes when a big number of indexes fail"
)


def warnings_of(new: Json, old: Json | None) -> list[str]:
    """The texts for a prepared Job that the rules accept; ``old`` is None when it is created."""
    if old is not None and new["metadata"].get("generation") == old["metadata"].get("generation"):
        return []
    spec, found = new["spec"], [] if old else list(_name_warnings(new))
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    if spec["completionMode"] == "Indexed" and completions > _MANY_COMPLETIONS and parallelism > _MANY_PARALLEL:
        found.append(_TOO_MANY_INDEXES)
    return [*found, *template_warnings("spec.template", spec["template"])]


def _name_warnings(job: Json) -> Iterator[str]:
    problems = label_problems(job["metadata"].get("name", ""))
    if problems:
        yield (
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(problems)}]"
        )
