"""Gang scheduling, decided (KEP-5547): who qualifies, who is new, whose objects count, what the missing ones hold."""

from __future__ import annotations

from typing import Any

import pytest
from syncs import STARTED, condition, indexed, pod, running, snapshot, spec

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide import gang
from mirror.jobcontroller.decide.gang import Missing, PodGroup, PodGroupTemplate, Ungrouped, Workload
from mirror.jobcontroller.decide.values import Snapshot

ON = FeatureGates(generic_workload=True, workload_with_job=True)
UID = "6f1a3c52-2b7e-4a0d-9d5c-0f4f1e2d3c4b"
TEMPLATE = PodGroupTemplate("train-pgt-0", {"gang": {"minCount": 3}})


def look(of: dict[str, Any] | None = None, **more: Any) -> Snapshot:
    return snapshot(of or indexed(3), **{"gates": ON, "uid": UID} | more)


def in_template(**fields: Any) -> dict[str, Any]:
    return {"template": {"spec": {"restartPolicy": "Never", **fields}}}


@pytest.mark.parametrize(
    ("seen", "wants"),
    [
        pytest.param(look(), True, id="Indexed, all at once"),
        pytest.param(look(indexed(2)), True, id="two are a gang"),
        pytest.param(look(indexed(3, suspend=True)), True, id="suspended: before its pods are created"),
        pytest.param(look(indexed(1)), False, id="one is none"),
        pytest.param(look(indexed(0)), False, id="nor is nobody"),
        pytest.param(look(indexed(3, parallelism=2)), False, id="not all at once"),
        pytest.param(look(spec(completions=3, parallelism=3)), False, id="not Indexed"),
        pytest.param(look(spec(completions=None, parallelism=3)), False, id="a work queue"),
        pytest.param(look(indexed(3, parallelism=None) | {"parallelism": None}), False, id="parallelism by default: 1"),
        pytest.param(
            look(indexed(3, **in_template(schedulingGroup={"podGroupName": "theirs"}))), False, id="grouped already"
        ),
        pytest.param(look(indexed(3, **in_template(schedulingGroup=None))), True, id="null is nothing"),
        pytest.param(look(is_deleting=True), False, id="being deleted: no pods are created any more"),
        pytest.param(look(gates=FeatureGates(generic_workload=True)), False, id="without the gate"),
    ],
)
def test_who_qualifies(seen: Snapshot, wants: bool) -> None:
    """Upstream's four conditions, and a Job that goes on."""
    assert gang.wants_group(seen) is wants


@pytest.mark.parametrize(
    ("seen", "is_new"),
    [
        pytest.param(look(), True, id="nothing has happened"),
        pytest.param(look(status={"ready": 0, "uncountedTerminatedPods": {}}), True, id="counters of nothing"),
        pytest.param(look(status=running()), False, id="started"),
        pytest.param(look(found=[pod()]), False, id="a pod"),
        pytest.param(look(status={"succeeded": 1}), False, id="a success"),
        pytest.param(look(status={"failed": 1}), False, id="a failure"),
        pytest.param(look(status={"conditions": [condition("Suspended")]}), False, id="suspended"),
        pytest.param(look(status={"conditions": [condition("Suspended", "False")]}), False, id="resumed"),
    ],
)
def test_who_is_new(seen: Snapshot, is_new: bool) -> None:
    """Each sign alone has gaps: pods are collected, a suspension takes the start away."""
    assert gang.is_new(seen) is is_new


def test_a_new_job_gets_a_workload() -> None:
    """It refers to the Job, and asks for one group of all its pods."""
    assert gang.new_workload(look()) == Missing(
        "train-74f556cd8d",
        {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "train"},
            "podGroupTemplates": [{"name": "train-pgt-0", "schedulingPolicy": {"gang": {"minCount": 3}}}],
        },
    )


def test_a_job_that_started_without_a_workload_gets_none() -> None:
    """The gate was off then: it goes on as it began, and nobody need be told."""
    assert gang.new_workload(look(status={"startTime": STARTED})) == Ungrouped(
        "the Job started without a Workload", is_expected=True
    )


OURS = Workload("w", "uid-w", UID, (TEMPLATE,))


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        pytest.param([OURS], OURS, id="ours"),
        pytest.param(
            [Workload("w", "uid-w", "", (TEMPLATE,))],
            Ungrouped("Workload w refers to the Job and is not controlled by it"),
            id="nobody's",
        ),
        pytest.param(
            [Workload("w", "uid-w", "uid-of-a-namesake", (TEMPLATE,))],
            Ungrouped("Workload w refers to the Job and is not controlled by it"),
            id="of a Job of the same name that is gone",
        ),
        pytest.param([OURS, OURS], Ungrouped("more than one Workload refers to the Job"), id="two"),
        pytest.param(
            [Workload("w", "uid-w", UID, (TEMPLATE, TEMPLATE))],
            Ungrouped("Workload w has 2 PodGroup templates instead of 1"),
            id="two templates",
        ),
        pytest.param(
            [Workload("w", "uid-w", UID)], Ungrouped("Workload w has 0 PodGroup templates instead of 1"), id="none"
        ),
    ],
)
def test_which_workload_counts(found: list[Workload], chosen: Workload | Ungrouped) -> None:
    """One, of the Job itself, with one template; anything else leaves the pods without a group."""
    assert gang.choose_workload(look(), found) == chosen


def test_a_pod_group_is_made_from_the_template() -> None:
    """Whatever policy the Workload has: somebody may have made it."""
    template = PodGroupTemplate("train-pgt-0", {"basic": {}})
    assert gang.new_pod_group(Workload("train-5b7b9f8d6c", "uid-w", UID, (template,))) == Missing(
        "train-5b7b9f8d6c-train-pgt-0-696864486c",
        {
            "podGroupTemplateRef": {
                "workload": {"workloadName": "train-5b7b9f8d6c", "podGroupTemplateName": "train-pgt-0"}
            },
            "schedulingPolicy": {"basic": {}},
        },
    )


@pytest.mark.parametrize(
    ("found", "chosen"),
    [
        pytest.param([PodGroup("g", "1", UID)], PodGroup("g", "1", UID), id="ours"),
        pytest.param(
            [PodGroup("g", "1", "")],
            Ungrouped("PodGroup g refers to Workload w and is not controlled by the Job"),
            id="nobody's",
        ),
        pytest.param(
            [PodGroup("g", "1", UID), PodGroup("h", "2", UID)],
            Ungrouped("more than one PodGroup refers to Workload w"),
            id="two",
        ),
    ],
)
def test_which_pod_group_counts(found: list[PodGroup], chosen: PodGroup | Ungrouped) -> None:
    """One, of the Job itself."""
    assert gang.choose_pod_group(look(), OURS, found) == chosen


def test_pods_are_made_in_the_group() -> None:
    """The rest of the spec, and the one that the cache holds, stay as they are."""
    before = indexed(3, **in_template(containers=[{"name": "c"}]))
    copy = indexed(3, **in_template(containers=[{"name": "c"}]))

    changed = gang.in_group(before, "g")

    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "c"}], "schedulingGroup": {"podGroupName": "g"}}
    assert changed == {**copy, "template": {"spec": pod_spec}}
    assert before == copy
    assert gang.in_group(before, "") is before


LONG = "w" * 253
HALF, SHORT = "h" * 120, "s" * 50


@pytest.mark.parametrize(
    ("workload", "template", "parts"),
    [
        pytest.param("w", "t", "w-t", id="both fit"),
        pytest.param(SHORT, LONG, f"{SHORT}-{'w' * 191}", id="a long template"),
        pytest.param(LONG, SHORT, f"{'w' * 191}-{SHORT}", id="a long Workload"),
        pytest.param(LONG, LONG, f"{'w' * 121}-{'w' * 120}", id="both are long"),
        pytest.param(HALF, LONG, f"{HALF}-{'w' * 121}", id="one has its half"),
    ],
)
def test_a_pod_groups_name_is_never_too_long(workload: str, template: str, parts: str) -> None:
    """Who has more than half gives way; a hash of all of both tells apart what is cut alike."""
    name = gang.pod_group_name(workload, template)

    assert name.rpartition("-")[0] == parts
    assert len(name) <= 253


@pytest.mark.parametrize(
    ("uid", "code"),
    [(UID, "74f556cd8d"), ("00000000-0000-0000-0000-000000000000", "587798f5c5"), ("a", "d899cd478")],
)
def test_a_workloads_name_is_upstreams(uid: str, code: str) -> None:
    """As computed by upstream's code in Go: both find what the other made."""
    assert gang.workload_name("train", uid) == f"train-{code}"
    assert gang.pod_group_name("train-5b7b9f8d6c", "train-pgt-0") == "train-5b7b9f8d6c-train-pgt-0-696864486c"
    assert len(gang.workload_name("t" * 253, uid)) == 253


def test_a_templates_name_is_one_that_the_api_accepts() -> None:
    """A DNS label: of the longest name of an Indexed Job, 61 characters, four are left out."""
    assert gang.template_name("t" * 57) == "t" * 57 + "-pgt-0"
    assert gang.template_name("t" * 61) == "t" * 57 + "-pgt-0"
