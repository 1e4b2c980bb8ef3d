"""What the API refuses when a Job is created, changed, or its status is written: the server's lists, in its order (E3).

All objects are prepared by their strategy; metadata.namespace is set. Not here: ``metadata.check_any_update``, which
the registry puts before the rules of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator

from mirror.batch.quoting import json_text
from mirror.batch.status_rules import check_status_update
from mirror.batch.syntax import label_problems
from mirror.batch.violations import IMMUTABLE, Violation, invalid, invalid_text, required
from mirror.embedded.apiserver.apimachinery import selectors
from mirror.embedded.apiserver.apimachinery.canonical import Json, same
from mirror.embedded.apiserver.apimachinery.gates import ALL_ON, ApiGates
from mirror.embedded.apiserver.apimachinery.printing import labels_text, text
from mirror.embedded.apiserver.validation import job_policies, job_spec, job_template_update, metadata

LEGACY_NAME_LABEL, NAME_LABEL = "job-name", "batch.kubernetes.io/job-name"
LEGACY_UID_LABEL, UID_LABEL = "controller-uid", "batch.kubernetes.io/controller-uid"
_FIXED_AFTER_TEMPLATE = (
    ("completionMode", "*s"),
    ("podFailurePolicy", "*PodFailurePolicy"),
    ("backoffLimitPerIndex", "*i"),
    ("managedBy", "*s"),
    ("successPolicy", "*SuccessPolicy"),
)


def check_create(job: Json, *, gates: ApiGates = ALL_ON) -> list[Violation]:
    """The causes for which the API would refuse this new Job; empty when it accepts (C1–C31, P, SP, RN3)."""
    found = list(_check_job(job, list(job_spec.check_spec(job["spec"])), prefixed_labels=True))
    return [*found, *job_policies.check_rule_names(job["spec"])] if gates.pod_failure_policy_name else found


def check_update(new: Json, old: Json, *, gates: ApiGates = ALL_ON) -> list[Violation]:
    """The causes for which the API would refuse to replace the stored Job by this one (U1–U11)."""
    old_labels = old["spec"]["template"].get("metadata", {}).get("labels", {})
    prefixed_labels = NAME_LABEL in old_labels and UID_LABEL in old_labels
    allow_bad = selectors.has_bad_values(old["spec"].get("selector"))
    of_spec = list(job_spec.check_spec(new["spec"], allow_bad_selector_values=allow_bad))
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
    if selectors.matches(selector, expected) is False:
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


def _check_changes(spec: Json, old: Json, gates: ApiGates) -> Iterator[Violation]:
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
