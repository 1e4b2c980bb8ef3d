"""What the API refuses in the spec of a Job, whether it is new or changed (C7–C31).

Specs are canonical and defaulted. Policies are in ``policy_rules``, the pod template in ``pods``.
"""

from __future__ import annotations

from collections.abc import Iterator

from mirror.batch.quoting import json_text
from mirror.batch.syntax import http_path_problem, size, subdomain_problems
from mirror.batch.violations import (
    Violation,
    invalid,
    invalid_text,
    invalid_texts,
    not_negative,
    not_supported,
    required,
    too_long,
)
from mirror.embedded.apiserver.apimachinery import selectors
from mirror.embedded.apiserver.apimachinery.canonical import Json
from mirror.embedded.apiserver.apimachinery.printing import labels_text, text
from mirror.embedded.apiserver.validation import job_policies
from mirror.embedded.apiserver.validation.pods import template

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
        yield from not_negative(f"spec.{name}", spec.get(name))
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
    yield from selectors.check_selector("spec.selector", selector, allow_bad_values=allow_bad_values)
    if selectors.matches(selector, labels or {}) is False:
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels_text(labels), detail)
