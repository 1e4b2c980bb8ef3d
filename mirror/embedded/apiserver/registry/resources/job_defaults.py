"""Defaults of a Job, as the API sets them whenever it decodes one, from a request and from storage alike (DF1–DF8).

The pod template's are in ``pod_defaults``.
"""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery.canonical import Json, fill_labels
from mirror.embedded.apiserver.apimachinery.gates import ApiGates
from mirror.embedded.apiserver.registry.resources import pod_defaults

UNLIMITED = 2**31 - 1
BACKOFF_LIMIT = 6


def fill(job: Json, *, gates: ApiGates) -> None:
    """Set what a canonical Job lacks, in place."""
    job["apiVersion"], job["kind"] = "batch/v1", "Job"
    spec = job.setdefault("spec", {"template": {"metadata": {}, "spec": {}}})
    _fill_counts(spec)
    _fill_modes(spec, gates)
    pod_defaults.fill(spec["template"]["spec"])
    fill_labels(job)


def _fill_counts(spec: Json) -> None:
    """DF2, DF3."""
    if "parallelism" not in spec:
        if "completions" not in spec:
            spec["completions"] = 1
        spec["parallelism"] = 1
    spec.setdefault("backoffLimit", UNLIMITED if "backoffLimitPerIndex" in spec else BACKOFF_LIMIT)


def _fill_modes(spec: Json, gates: ApiGates) -> None:
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
