"""What the API refuses when a Job is created, changed, or its status is written: the server's lists, in its order (E3).

All objects are prepared by their strategy; metadata.namespace is set. Not here: ``metadata.check_any_update``, which
the registry puts before the rules of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator

from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates
from mirror.batch.quoting import json_text
from mirror.batch.status_rules import check_status_update
from mirror.batch.syntax import http_path_problem, label_problems, size, subdomain_problems
from mirror.batch.violations import (
    IMMUTABLE,
    NEGATIVE,
    Violation,
    invalid,
    invalid_text,
    invalid_texts,
    not_supported,
    required,
    too_long,
)
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.objects import same
from mirror.embedded.apiserver.apimachinery.printing import labels_text, text
from mirror.embedded.apiserver.validation import job_policies, job_template_update, metadata
from mirror.embedded.apiserver.validation.pods import template

LEGACY_NAME_LABEL, NAME_LABEL = "job-name", "batch.kubernetes.io/job-name"
LEGACY_UID_LABEL, UID_LABEL = "controller-uid", "batch.kubernetes.io/controller-uid"
_FIXED_AFTER_TEMPLATE = (
    ("completionMode", "*s"),
    ("podFailurePolicy", "*PodFailurePolicy"),
    ("backoffLimitPerIndex", "*i"),
    ("managedBy", "*s"),
    ("successPolicy", "*SuccessPolicy"),
)


def check_create(job: Json, *, gates: FeatureGates = DEFAULT_GATES) -> list[Violation]:
    """The causes for which the API would refuse this new Job; empty when it accepts (C1–C31, P, SP, RN3)."""
    found = list(_check_job(job, list(check_spec(job["spec"])), prefixed_labels=True))
    policy = job["spec"].get("podFailurePolicy")
    return [*found, *job_policies.check_rule_names(policy)] if policy and gates.pod_failure_policy_name else found


def check_update(new: Json, old: Json, *, gates: FeatureGates = DEFAULT_GATES) -> list[Violation]:
    """The causes for which the API would refuse to replace the stored Job by this one (U1–U11)."""
    old_labels = old["spec"]["template"].get("metadata", {}).get("labels", {})
    prefixed_labels = NAME_LABEL in old_labels and UID_LABEL in old_labels
    allow_bad = metadata.has_bad_values(old["spec"].get("selector"))
    of_spec = list(check_spec(new["spec"], allow_bad_selector_values=allow_bad))
    return [
        *_check_job(new, of_spec, prefixed_labels=prefixed_labels),
        *metadata.check_meta_update(new, old),
        *of_spec,
        *_check_changes(new["spec"], old, gates),
    ]


def check_status_write(new: Json, old: Json) -> list[Violation]:
    """The causes for which the API would refuse this write to ``/status``: metadata first (V41, V42).

    Raises:
        BadTime: as ``check_status_update``.
    """
    return [*metadata.check_meta_update(new, old), *check_status_update(old, new["status"])]


def _check_job(job: Json, of_spec: list[Violation], *, prefixed_labels: bool) -> Iterator[Violation]:
    yield from metadata.check_meta(job["metadata"])
    yield from _check_generated(job, prefixed_labels=prefixed_labels)
    yield from of_spec
    yield from _check_last_hostname(job)


def _check_generated(job: Json, *, prefixed_labels: bool) -> Iterator[Violation]:
    """C4, C5, C6: what the server generated has not been tampered with."""
    spec, meta = job["spec"], job["metadata"]
    selector = spec.get("selector")
    if spec["manualSelector"] or selector is None:
        return
    name, uid = meta.get("name", ""), meta.get("uid", "")
    if not uid:
        yield required("metadata.uid")
    expected = {LEGACY_UID_LABEL: uid, LEGACY_NAME_LABEL: name}
    if prefixed_labels:
        expected |= {UID_LABEL: uid, NAME_LABEL: name}
    labels = spec["template"]["metadata"].get("labels")
    for key, value in expected.items():
        field = f"spec.template.metadata.labels[{key}]"
        if key not in (labels or {}):
            yield required(field, f"must be '{value}'")
        elif labels[key] != value:
            yield invalid(field, labels_text(labels), f"must be '{value}'")
    if not metadata.selects(selector, expected) and metadata.is_well_formed(selector):
        yield invalid("spec.selector", text(selector, "LabelSelector"), "`selector` not auto-generated")


def _check_last_hostname(job: Json) -> Iterator[Violation]:
    """C3: the last index must still make a host name."""
    spec, name = job["spec"], job["metadata"].get("name", "")
    completions = spec.get("completions")
    if spec["completionMode"] != "Indexed" or completions is None or completions <= 0:
        return
    hostname = f"{name}-{completions - 1}"
    if label_problems(hostname):
        detail = f"will not able to create pod with invalid DNS label: {hostname}"
        yield invalid_text("metadata.name", name, detail)


def _check_changes(spec: Json, old: Json, gates: FeatureGates) -> Iterator[Violation]:
    """U2–U9, in the server's order."""
    old_spec = old["spec"]
    yield from _check_completions(spec, old_spec)
    yield from _check_fixed(spec, old_spec, "selector", "*LabelSelector")
    yield from job_template_update.check(spec, old, gates)
    for name, kind in _FIXED_AFTER_TEMPLATE:
        yield from _check_fixed(spec, old_spec, name, kind)


def _check_completions(spec: Json, old_spec: Json) -> Iterator[Violation]:
    """U3: elastic Indexed Jobs change completions together with parallelism."""
    if spec["completionMode"] != "Indexed":
        yield from _check_fixed(spec, old_spec, "completions", "*i")
        return
    completions = spec.get("completions")
    if completions is None or completions == old_spec.get("completions"):
        return
    if completions != spec["parallelism"]:
        detail = "can only be modified in tandem with spec.parallelism"
        yield invalid("spec.completions", completions, detail)


def _check_fixed(spec: Json, old_spec: Json, name: str, kind: str) -> Iterator[Violation]:
    """U2."""
    value, old_value = spec.get(name), old_spec.get(name)
    if not same(value, old_value):
        printed = json_text(value) if isinstance(value, str) else text(value, kind)
        yield invalid(f"spec.{name}", printed, IMMUTABLE)


# The spec of a Job, whether it is new or changed (C7–C31).

INDEXED, NON_INDEXED = "Indexed", "NonIndexed"
_MOST_PARALLEL = _MOST_FAILED = _MANY_COMPLETIONS = 100_000
_MOST_OF_MANY = 10_000
"""Parallelism and failed indexes of a Job with many completions and a backoff limit for each index."""
_LONGEST_MANAGED_BY = 63
_OF_MANY = (
    f"must be less than or equal to {_MOST_OF_MANY} when completions are above {_MANY_COMPLETIONS}"
    " and used with backoff limit per index"
)


def check_spec(spec: Json, *, allow_bad_selector_values: bool = False) -> Iterator[Violation]:
    """All rules of the spec, in the server's order."""
    yield from _check_counts(spec)
    yield from _check_managed_by(spec.get("managedBy"))
    yield from _check_mode(spec)
    if "podFailurePolicy" in spec:
        yield from job_policies.check_pod_failure_policy(spec)
    yield from _check_success_policy(spec)
    yield from _check_pod_replacement_policy(spec)
    yield from template.check(spec["template"], allow_bad_selector_values=allow_bad_selector_values)
    yield from _check_restart_policy(spec)
    yield from _check_selector(spec, allow_bad_values=allow_bad_selector_values)


def _check_counts(spec: Json) -> Iterator[Violation]:
    """C10, C11."""
    for name in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ):
        if (spec.get(name) or 0) < 0:
            yield invalid(f"spec.{name}", spec[name], NEGATIVE)
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")


def _check_managed_by(value: str | None) -> Iterator[Violation]:
    """C12–C16."""
    field = "spec.managedBy"
    if value is None:
        return
    host, _, path = value.partition("/")
    if not value:
        yield required(field)
    elif not host or not path:
        yield invalid_text(field, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from invalid_texts(field, host, subdomain_problems(host))
        if problem := http_path_problem(path):
            yield invalid_text(field, path, problem)
    if size(value) > _LONGEST_MANAGED_BY:
        yield too_long(field, _LONGEST_MANAGED_BY)


def _check_mode(spec: Json) -> Iterator[Violation]:
    """C17–C25."""
    mode = spec["completionMode"]
    if mode == INDEXED:
        yield from _check_indexed(spec)
    elif mode == NON_INDEXED:
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if name in spec:
                yield invalid(f"spec.{name}", spec[name], "requires indexed completion mode")
    else:
        yield not_supported("spec.completionMode", mode, (NON_INDEXED, INDEXED))


def _check_indexed(spec: Json) -> Iterator[Violation]:
    """C18–C24."""
    completions: int | None = spec.get("completions")
    most_failed: int | None = spec.get("maxFailedIndexes")
    parallelism: int = spec["parallelism"]
    if completions is None:
        yield required("spec.completions", "when completion mode is Indexed")
    if parallelism > _MOST_PARALLEL:
        detail = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
        yield invalid("spec.parallelism", parallelism, detail)
    if completions is not None and most_failed is not None and most_failed > completions:
        yield invalid("spec.maxFailedIndexes", most_failed, "must be less than or equal to completions")
    if most_failed is not None and most_failed > _MOST_FAILED:
        yield invalid("spec.maxFailedIndexes", most_failed, f"must be less than or equal to {_MOST_FAILED}")
    if completions is None or completions <= _MANY_COMPLETIONS or "backoffLimitPerIndex" not in spec:
        return
    if most_failed is None:
        yield required("spec.maxFailedIndexes", f"must be specified when completions is above {_MANY_COMPLETIONS}")
    if parallelism > _MOST_OF_MANY:
        yield invalid("spec.parallelism", parallelism, _OF_MANY)
    if most_failed is not None and most_failed > _MOST_OF_MANY:
        yield invalid("spec.maxFailedIndexes", most_failed, _OF_MANY)


def _check_success_policy(spec: Json) -> Iterator[Violation]:
    """SP1, and then the others."""
    policy = spec.get("successPolicy")
    if policy is None:
        return
    if spec["completionMode"] == INDEXED:
        yield from job_policies.check_success_policy(policy, spec.get("completions"))
    else:
        yield invalid("spec.successPolicy", text(policy, "SuccessPolicy"), "requires indexed completion mode")


def _check_pod_replacement_policy(spec: Json) -> Iterator[Violation]:
    """C26, C27."""
    supported = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
    policy = spec.get("podReplacementPolicy")
    if policy is not None and policy not in supported:
        yield not_supported("spec.podReplacementPolicy", policy, supported)


def _check_restart_policy(spec: Json) -> Iterator[Violation]:
    """C28, C29, C30."""
    field, policy = "spec.template.spec.restartPolicy", spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        yield required(field, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(field, policy, ("OnFailure", "Never"))
    elif "podFailurePolicy" in spec and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(field, json_text(policy), detail)


def _check_selector(spec: Json, *, allow_bad_values: bool) -> Iterator[Violation]:
    """C7, C8, C9."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is None:
        yield required("spec.selector")
    yield from metadata.check_selector("spec.selector", selector, allow_bad_values=allow_bad_values)
    if not metadata.selects(selector, labels or {}) and metadata.is_well_formed(selector):
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels_text(labels), detail)
