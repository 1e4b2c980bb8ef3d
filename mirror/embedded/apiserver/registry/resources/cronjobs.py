"""CronJobs. Their Job template is judged as a Job without the rules about what the server generates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from mirror.batch.quoting import json_text
from mirror.batch.syntax import label_problems, size
from mirror.batch.violations import Violation, invalid, invalid_text, not_negative, not_supported, required
from mirror.embedded import schedules
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.printing import text
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import Builtin, status_update
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.registry.resources import pod_defaults
from mirror.embedded.apiserver.registry.resources.jobs import fill_conditions, warnings_of
from mirror.embedded.apiserver.validation import job_policies, jobs, metadata

_LONGEST_NAME = 52
"""Names of its Jobs are eleven characters longer, and at most 63."""
_POLICIES = ("Allow", "Forbid", "Replace")
_TEMPLATE = "spec.jobTemplate.spec"
_TEMPLATE_FIELDS = ("spec.selector", "spec.template.metadata.labels")
"""Of causes that a Job has for its selector, which is generated later."""
_SPEC_PATH = re.compile(r"\bspec(?=\.template|:)")
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}", re.ASCII)


class CronJobs(Builtin):
    """Their Jobs are made by the CronJob controller."""

    struct = "CronJob"
    has_generation = True
    columns = (
        printers.NAME,
        Column("Schedule", description=TEXTS["CRON_SCHEDULE"]),
        Column("Timezone", description=TEXTS["CRON_TIME_ZONE"]),
        Column("Suspend", type="boolean", description=TEXTS["CRON_SUSPEND"]),
        Column("Active", type="integer", description=TEXTS["CRON_ACTIVE"]),
        Column("Last Schedule", description=TEXTS["CRON_LAST"]),
        printers.AGE,
        Column("Containers", priority=1, description="Names of each container in the template."),
        Column("Images", priority=1, description="Images referenced by each container in the template."),
        Column("Selector", priority=1, description=TEXTS["JOB_SELECTOR"]),
    )

    def __init__(self) -> None:
        self.subresources = {"status": status_update(self, has_meta_rules=False)}

    def default(self, body: Json, context: Context) -> None:
        spec = body["spec"]
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        job = spec["jobTemplate"]["spec"]
        fill_conditions(job)
        pod_defaults.fill(job["template"]["spec"])

    def check_create(self, body: Json, context: Context) -> Sequence[Violation]:
        found = [*self.check_meta(body), *_check_spec(body["spec"], None, context)]
        if size(body["metadata"].get("name", "")) > _LONGEST_NAME:
            detail = f"must be no more than {_LONGEST_NAME} characters"
            found.append(invalid_text("metadata.name", body["metadata"]["name"], detail))
        return found

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return [*metadata.check_meta_update(new, old), *_check_spec(new["spec"], old["spec"], context)]

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        found = []
        if old is None and (problems := label_problems(new["metadata"].get("name", ""))):
            found.append(
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(problems)}]"
            )
        if old is None or new["metadata"].get("generation") != old["metadata"].get("generation"):
            job = {"metadata": {"name": "any"}, "spec": _with_defaults(new["spec"]["jobTemplate"]["spec"])}
            found.extend(_SPEC_PATH.sub(_TEMPLATE, one) for one in warnings_of(job, None))
        if old is not None and "TZ" in new["spec"]["schedule"]:
            # The path is the server's.
            found.append(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see"
                " https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )
        return found

    def cells(self, body: Json, now: datetime) -> list[object]:
        spec, status = body["spec"], body["status"]
        job, last = spec["jobTemplate"]["spec"], status.get("lastScheduleTime")
        return [
            body["metadata"]["name"],
            spec["schedule"],
            spec.get("timeZone", printers.NONE),
            _printed(spec.get("suspend")),
            len(status.get("active", ())),
            printers.NONE if last is None else printers.since(last, now),
            printers.age(body, now),
            *printers.containers(job["template"]["spec"].get("containers") or ()),
            printers.selector(job.get("selector")),
        ]


def _printed(value: bool | None) -> str:
    return printers.UNSET if value is None else "True" if value else "False"


def _check_spec(spec: Json, old: Json | None, context: Context) -> Iterator[Violation]:
    schedule, zone = spec["schedule"], spec.get("timeZone")
    if schedule:
        may_have_zone = old is not None and "TZ" in old["schedule"]
        yield from _check_schedule(schedule, zone, may_have_zone=may_have_zone)
    else:
        yield required("spec.schedule")
    yield from not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if zone is not None and (old is None or old.get("timeZone") != zone):
        yield from _check_zone(zone)
    if spec["concurrencyPolicy"] not in _POLICIES:
        yield not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _POLICIES)
    yield from _check_template(spec["jobTemplate"]["spec"], context)
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from not_negative(f"spec.{name}", spec.get(name))


def _check_schedule(schedule: str, zone: str | None, *, may_have_zone: bool) -> Iterator[Violation]:
    try:
        schedules.parse(schedule)
    except schedules.BadSchedule as error:
        yield invalid_text("spec.schedule", schedule, str(error))
    if "TZ" not in schedule:
        return
    if not may_have_zone:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid_text("spec.schedule", schedule, detail)
    elif zone is not None:
        yield invalid_text("spec.schedule", schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _check_zone(zone: str) -> Iterator[Violation]:
    field, printed = "spec.timeZone", json_text(zone)
    if not zone:
        yield invalid(field, printed, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            yield invalid(field, printed, f"unknown time zone {zone}")
            return
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(field, printed, detail)
    try:
        schedules.zone(zone)
    except schedules.BadZone as error:
        yield invalid(field, printed, str(error))


def _check_template(job: Json, context: Context) -> Iterator[Violation]:
    full = _with_defaults(job)
    found = list(jobs.check_spec(full))
    if "podFailurePolicy" in full and context.gates.pod_failure_policy_name:
        found.extend(job_policies.check_rule_names(full["podFailurePolicy"]))
    for violation in found:
        if not violation.field.startswith(_TEMPLATE_FIELDS):
            yield replace(violation, field=_TEMPLATE + violation.field.removeprefix("spec"))
    if "selector" in job:
        printed = text(job["selector"], "LabelSelector")
        yield invalid(f"{_TEMPLATE}.selector", printed, "`selector` will be auto-generated")
    if job.get("manualSelector"):
        field = f"{_TEMPLATE}.manualSelector"
        yield replace(not_supported(field, "", ("nil", "false")), message=_MANUAL)


_MANUAL = 'Unsupported value: true: supported values: "nil", "false"'


def _with_defaults(job: Json) -> Json:
    """As a Job's spec, which has defaults that a template of one has not; none of them is ever wrong."""
    return {"parallelism": 1, "completionMode": jobs.NON_INDEXED, **job}


def kind() -> Kind:
    """``batch/v1`` ``cronjobs``."""
    return Kind(
        "batch", "v1", "CronJob", "cronjobs", CronJobs(), singular="cronjob", short_names=("cj",), categories=("all",)
    )
