"""Jobs and CronJobs: the server's hooks around ``mirror.batch``."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.batch.feature_gates import FeatureGates
from tests.embedded.apiserver.registry.resources.playing import (
    CONTAINERS,
    Json,
    context,
    create,
    kind_of,
    stored,
    update,
)

POD = {**CONTAINERS, "restartPolicy": "Never"}


def job(**spec: Any) -> Json:
    return {"spec": {"template": {"spec": POD}, **spec}}


def cron(schedule: str = "@daily", **spec: Any) -> Json:
    return {"spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": POD}}}, **spec}}


# -- Jobs ------------------------------------------------------------------------------------------------------------


def labels(body: Json) -> set[str]:
    return set(create("Job", body, group="batch").body["metadata"].get("labels", {}))


def test_labels_of_a_job_are_those_of_its_pods() -> None:
    """DF7: one map with them, if it has none of its own; then generated labels come to both."""
    generated = {"job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"}
    template = {"metadata": {"labels": {"x": "y"}}, "spec": POD}

    assert labels(job(template=template)) == {"x"} | generated
    assert labels(job(template={"metadata": {"labels": {}}, "spec": POD})) == generated
    assert labels(job(template=template) | {"metadata": {"labels": {"x": "y"}}}) == {"x"}


def test_a_copy_made_on_the_way_ends_the_sharing() -> None:
    """As a webhook makes one, or the generation of a name."""
    strategy = kind_of("Job", "batch").strategy
    body = strategy.decode(
        job(template={"metadata": {"labels": {"x": "y"}}, "spec": POD}) | {"metadata": {"name": "a"}}
    )
    strategy.default(body, context())
    body["metadata"]["labels"] = dict(body["metadata"]["labels"])

    assert strategy.prepare_create(body, context())["metadata"]["labels"] == {"x": "y"}


def test_causes_of_an_update_come_without_those_of_every_update() -> None:
    """E3: the server's other causes are put before them by the registry."""
    old = stored("Job", job(), group="batch")
    found = update("Job", old, {"spec": {"completions": 4, "parallelism": -1}}, group="batch").causes

    assert found == [
        "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
        "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
        "spec.completions: Invalid value: 4: field is immutable",
    ]


def test_gates_are_asked_with_each_request() -> None:
    """DF21: with a gate off, its field is dropped."""
    body = job(managedBy="x.io/y")

    assert create("Job", body, group="batch").body["spec"]["managedBy"] == "x.io/y"
    assert "managedBy" not in create("Job", body, group="batch", gates=FeatureGates(job_managed_by=False)).body["spec"]


def test_a_status_of_a_job_is_judged() -> None:
    """V10 and its like."""
    old = stored("Job", job(), group="batch")
    made = update("Job", old, {"status": {"active": -1}}, group="batch", subresource="status")

    assert made.causes == ["status.active: Invalid value: -1: must be greater than or equal to 0"]


def test_who_deletes_a_job_is_told_of_its_pods() -> None:
    """DF16: unless it says what is to become of them."""
    strategy = kind_of("Job", "batch").strategy

    assert strategy.default_propagation == "Orphan"
    assert len(strategy.delete_warnings(None)) == 1
    assert list(strategy.delete_warnings("Background")) == []


# -- CronJobs --------------------------------------------------------------------------------------------------------


def test_defaults_of_a_cron_job() -> None:
    """Its template has those of pods, and none of Jobs."""
    spec = create("CronJob", cron(), group="batch").body["spec"]

    assert {name: value for name, value in spec.items() if name != "jobTemplate"} == {
        "schedule": "@daily",
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
    assert spec["jobTemplate"]["spec"].keys() == {"template"}
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"


@pytest.mark.parametrize(
    ("body", "causes"),
    [
        (cron(""), ["spec.schedule: Required value"]),
        (cron("* * *"), ['spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]']),
        (
            cron("TZ=UTC 0 0 * * *"),
            [
                'spec.schedule: Invalid value: "TZ=UTC 0 0 * * *": cannot use TZ or CRON_TZ in schedule, use timeZone'
                " field instead"
            ],
        ),
        (cron(timeZone="Europe/Berlin"), []),
        (cron(timeZone=""), ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string']),
        (cron(timeZone="Mars/Base"), ['spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base']),
        (cron(timeZone="../x"), ['spec.timeZone: Invalid value: "../x": unknown time zone ../x']),
        (
            cron(timeZone="Local"),
            [
                'spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in'
                " https://www.iana.org/time-zones"
            ],
        ),
        (
            cron(concurrencyPolicy="x"),
            ['spec.concurrencyPolicy: Unsupported value: "x": supported values: "Allow", "Forbid", "Replace"'],
        ),
        (
            cron(startingDeadlineSeconds=-1, failedJobsHistoryLimit=-1),
            [
                "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            {"metadata": {"name": "x" * 53}, **cron()},
            [f'metadata.name: Invalid value: "{"x" * 53}": must be no more than 52 characters'],
        ),
        (
            cron(jobTemplate={"spec": {"backoffLimit": -1, "template": {"spec": CONTAINERS}}}),
            [
                "spec.jobTemplate.spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
                'spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
            ],
        ),
        (
            cron(jobTemplate={"spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"spec": POD}}}),
            [
                'spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"x":"y"}}: `selector` will be'
                " auto-generated"
            ],
        ),
        (
            cron(jobTemplate={"spec": {"manualSelector": True, "template": {"spec": POD}}}),
            ['spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"'],
        ),
    ],
)
def test_rules_of_a_cron_job(body: Json, causes: list[str]) -> None:
    """Its own, and those of Jobs under its path."""
    assert create("CronJob", body, group="batch").causes == causes


def test_a_stored_zone_in_a_schedule_is_borne() -> None:
    """Older servers took it; a warning says what to use now."""
    old = stored("CronJob", cron(), group="batch")
    old["spec"]["schedule"] = "TZ=UTC 0 0 * * *"

    made = update("CronJob", old, {"spec": {"suspend": True}}, group="batch")
    assert made.causes == []
    assert made.warnings[0].startswith("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead")
    assert made.body["metadata"]["generation"] == 2

    (cause,) = update("CronJob", old, {"spec": {"timeZone": "UTC"}}, group="batch").causes
    assert cause.endswith("cannot use both timeZone field and TZ or CRON_TZ in schedule")


def test_warnings_of_the_template_have_its_path() -> None:
    """Wherever they name a field of it."""
    variables = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    pod = {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i", "env": variables}]}
    made = create("CronJob", cron(jobTemplate={"spec": {"template": {"spec": pod}}}), group="batch")

    assert made.warnings == [
        'spec.jobTemplate.spec.template.spec.containers[0].env[1]: hides previous definition of "A", which may be'
        " dropped when using apply"
    ]


def test_a_status_of_a_cron_job_is_anything() -> None:
    """No rule looks at it."""
    old = stored("CronJob", cron(), group="batch")
    change = {"status": {"lastScheduleTime": "2026-11-21T12:00:00Z"}, "spec": {"schedule": "nonsense"}}
    made = update("CronJob", old, change, group="batch", subresource="status")

    assert made.causes == []
    assert made.body["status"] == {"lastScheduleTime": "2026-11-21T12:00:00Z"}
    assert made.body["spec"]["schedule"] == "@daily"
