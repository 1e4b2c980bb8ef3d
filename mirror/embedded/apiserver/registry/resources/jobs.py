"""Jobs: the hooks of the server around defaults, preparation and rules (DF1–DF21)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import MappingProxyType

from mirror.batch import conditions
from mirror.batch.times import BadTime
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.apimachinery import canonical, errors
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json, Strategy, Update
from mirror.embedded.apiserver.registry import printers, storage_form
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.registry.resources import job_defaults, job_strategy, job_warnings
from mirror.embedded.apiserver.validation import jobs

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
    """Defaults are in ``job_defaults``, preparation in ``job_strategy``, rules in ``validation/jobs``."""

    struct = "Job"
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
        self.subresources = {"status": Update(job_strategy.prepare_status_update, _check_status, resets=(("spec",),))}

    def decode(self, body: Json) -> Json:
        found = canonical.canonical(body)
        if "spec" not in found:
            found["spec"] = canonical.canonical({}, "JobSpec")
        found.setdefault("status", {})
        if _has_empty_template_labels(body):
            found["spec"]["template"]["metadata"]["labels"] = {}
        return found

    def default(self, body: Json, context: Context) -> None:
        has_labels = bool(body["metadata"].get("labels"))
        job_defaults.fill(body, gates=context.gates)
        labels = body["spec"]["template"]["metadata"].get("labels")
        if labels and not has_labels:
            # One map, as in the server (DF7): labels that are generated for the pods come to both, unless a copy is
            # made meanwhile (by a webhook, or to generate a name).
            body["metadata"]["labels"] = labels

    def prepare_create(self, body: Json, context: Context) -> Json:
        return job_strategy.prepare_create(body, context)

    def check_create(self, body: Json, context: Context) -> Sequence[Violation]:
        return jobs.check_create(body, gates=context.gates)

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        return job_strategy.prepare_update(new, old, context)

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return jobs.check_update(new, old, gates=context.gates)

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        return job_warnings.warnings_of(new, old)

    def delete_warnings(self, propagation: str | None) -> Sequence[str]:
        return (ORPHANED,) if propagation is None else ()

    def served(self, stored: Json) -> Json:
        found = storage_form.stored(stored, self.struct)
        found["metadata"] = dict(found["metadata"])
        canonical.fill_labels(found)
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
