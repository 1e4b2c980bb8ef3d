"""What the API refuses when a Job is changed, and how often it says so."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mirror.batch.feature_gates import FeatureGates
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.validation.jobs import check_status_write, check_update
from mirror.embedded.apiserver.validation.metadata import check_any_update
from tests.embedded.apiserver.validation.jobs import (
    NOW,
    Json,
    changed,
    job,
    status_updated,
    stored,
    updated,
)

INDEXED: Json = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
SUSPENDED: Json = {"suspend": True}
RUNNING: Json = {"startTime": NOW, "active": 1}
IS_SUSPENDED: Json = {"conditions": [{"type": "Suspended", "status": "True"}]}
NODE_TERMS: Json = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
NODE_AFFINITY: Json = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NODE_TERMS}}
POD_AFFINITY: Json = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}]}}
DIRECTIVES: Json = {
    "nodeSelector": {"a": "b"},
    "tolerations": [{"operator": "Exists"}],
    "schedulingGates": [{"name": "a.b/c"}],
    "affinity": NODE_AFFINITY,
}
TEMPLATE, TEMPLATE_SPEC = "spec.template", "spec.template.spec"


def refusals(new: Json, old: Json, **more: FeatureGates) -> list[Violation]:
    """What the registry finds in any update, and what the rules of Jobs add."""
    return [*check_any_update(new["metadata"], old["metadata"]), *check_update(new, old, **more)]


def said(new: Json, old: Json, **more: FeatureGates) -> list[tuple[str, str]]:
    """Fields, and what follows a printed value."""
    return [(one.field, one.message.rpartition(": ")[2]) for one in refusals(new, old, **more)]


def with_container(old: Json, **fields: object) -> Json:
    container = deepcopy(old["spec"]["template"]["spec"]["containers"][0]) | fields
    return changed(old, pod={"containers": [container]})


@pytest.mark.parametrize(
    "change",
    [
        {"suspend": True},
        {"parallelism": 7},
        {"backoffLimit": 9},
        {"activeDeadlineSeconds": 9},
        {"ttlSecondsAfterFinished": 9},
        {"manualSelector": True},
        {"podReplacementPolicy": "Failed"},
    ],
)
def test_these_fields_may_always_change(change: Json) -> None:
    """U1."""
    old = stored(job())

    assert said(changed(old, change), old) == []


def test_the_cap_of_failed_indexes_may_change() -> None:
    """U1."""
    old = stored(job(INDEXED | {"backoffLimitPerIndex": 1}))

    assert said(changed(old, {"maxFailedIndexes": 2}), old) == []


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        pytest.param({}, {"completionMode": "Indexed"}, id="mode"),
        pytest.param({"podFailurePolicy": {}}, {"podFailurePolicy": None}, id="failure policy unset"),
        pytest.param(INDEXED, {"backoffLimitPerIndex": 1}, id="limit per index set"),
        pytest.param({"managedBy": "a.b/c"}, {"managedBy": "a.b/d"}, id="manager changed"),
        pytest.param({"managedBy": "a.b/c", **SUSPENDED}, {"managedBy": None}, id="manager unset while suspended"),
        pytest.param(INDEXED, {"successPolicy": {"rules": [{"succeededCount": 1}]}}, id="success policy set"),
    ],
)
def test_these_fields_are_fixed(spec: Json, change: Json) -> None:
    """U2: said once, although the rules of the spec run twice."""
    old = stored(job(spec))
    (name,) = change

    assert [(f"spec.{name}", "field is immutable")] == said(changed(old, change), old)


def test_what_is_unset_is_printed_as_null() -> None:
    """U2."""
    old = stored(job({"managedBy": "a.b/c"}))

    assert check_update(changed(old, {"managedBy": None}), old) == [
        Violation("spec.managedBy", "FieldValueInvalid", "Invalid value: null: field is immutable")
    ]


def test_a_selector_is_fixed() -> None:
    """U2, C8: beside that, the new one must match, which is said twice."""
    old = stored(job({"manualSelector": True, "selector": {}}))

    assert said(changed(old, {"selector": {"matchLabels": {"a": "b"}}}), old) == [
        *[("spec.template.metadata.labels", "`selector` does not match template `labels`")] * 2,
        ("spec.selector", "field is immutable"),
    ]


def test_a_spec_error_is_said_twice_and_told_in_the_servers_order() -> None:
    """E3: metadata, the whole Job, metadata, the spec again, what may not change."""
    old = stored(job())
    new = changed(old, {"backoffLimit": -1, "completions": 5})
    new["metadata"]["annotations"] = {"-": ""}
    annotations = ("metadata.annotations", "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")
    backoff = ("spec.backoffLimit", "must be greater than or equal to 0")

    found = [field for field, _ in said(new, old)]

    assert [annotations[0]] * 2 + [annotations[0], backoff[0]] + [annotations[0], backoff[0]] == found[:-1]
    assert found[-1] == "spec.completions"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"completions": 5, "parallelism": 5}, [], id="in tandem"),
        pytest.param({"completions": 0, "parallelism": 0}, [], id="to nothing"),
        pytest.param({"completions": 5}, ["can only be modified in tandem with spec.parallelism"], id="alone"),
        pytest.param({"completions": None}, ["when completion mode is Indexed"] * 2, id="unset"),
    ],
)
def test_completions_of_an_indexed_job(change: Json, expected: list[str]) -> None:
    """U3."""
    old = stored(job(INDEXED))

    assert [("spec.completions", one) for one in expected] == said(changed(old, change), old)


def test_completions_of_another_job_are_fixed() -> None:
    """U3."""
    old = stored(job())

    assert said(changed(old, {"completions": 2, "parallelism": 2}), old) == [("spec.completions", "field is immutable")]


@pytest.mark.parametrize(
    ("spec", "status", "is_allowed"),
    [
        pytest.param(SUSPENDED, {}, True, id="never started"),
        pytest.param(SUSPENDED, {"startTime": NOW} | IS_SUSPENDED, True, id="known to be suspended"),
        pytest.param(SUSPENDED, {"startTime": NOW}, False, id="U4 not yet known to be suspended"),
        pytest.param(SUSPENDED, IS_SUSPENDED | RUNNING, False, id="U4 pods still run"),
        pytest.param({}, IS_SUSPENDED, False, id="U10 resuming"),
        pytest.param({}, {}, False, id="U5 not suspended"),
    ],
)
@pytest.mark.parametrize("resumes", [True, False], ids=["resumed in the same write", "left alone"])
def test_when_a_template_may_change(spec: Json, status: Json, is_allowed: bool, resumes: bool) -> None:
    """U4: only the stored Job counts, so one write may resume and change."""
    old = stored(job(spec), status)
    request = {"suspend": False} if resumes else {}

    found = said(changed(old, request, DIRECTIVES), old)

    assert found == ([] if is_allowed else [(TEMPLATE, "field is immutable")])


def test_one_write_cannot_suspend_and_change() -> None:
    """U4."""
    old = stored(job())

    assert said(changed(old, SUSPENDED, DIRECTIVES), old) == [(TEMPLATE, "field is immutable")]


@pytest.mark.parametrize(
    ("before", "after", "is_allowed"),
    [
        pytest.param(None, NODE_AFFINITY, True, id="added"),
        pytest.param(NODE_AFFINITY, None, True, id="removed"),
        pytest.param(None, {}, True, id="an empty one added"),
        pytest.param(POD_AFFINITY, POD_AFFINITY | NODE_AFFINITY, True, id="to nodes, beside that to pods"),
        pytest.param(POD_AFFINITY | NODE_AFFINITY, None, False, id="that to pods removed, too"),
        pytest.param(None, POD_AFFINITY, False, id="to pods"),
    ],
)
def test_affinity_to_nodes_may_change(before: Json | None, after: Json | None, is_allowed: bool) -> None:
    """U7."""
    old = stored(job(SUSPENDED, pod={"affinity": before}))

    found = said(changed(old, pod={"affinity": after}), old)

    assert found == ([] if is_allowed else [(TEMPLATE_SPEC, "field is immutable")])


def test_labels_and_annotations_of_the_template_may_change_and_its_other_metadata_is_not_compared() -> None:
    """U6, U8."""
    old = stored(job(SUSPENDED))
    request = deepcopy(old)
    request["spec"]["template"]["metadata"] |= {"annotations": {"a": "b"}, "name": "odd"}
    request["spec"]["template"]["metadata"]["labels"]["x"] = "y"

    assert said(updated(request, old), old) == []


def test_generated_labels_must_stay() -> None:
    """U8, C5."""
    old = stored(job(SUSPENDED))
    request = deepcopy(old)
    del request["spec"]["template"]["metadata"]["labels"]["job-name"]

    assert said(updated(request, old), old) == [("spec.template.metadata.labels[job-name]", "must be 'train'")]


def test_resources_of_a_suspended_job_may_change() -> None:
    """U6: of containers that are the same by position and name."""
    old = stored(job(SUSPENDED))
    resources = {"requests": {"cpu": "1"}}

    assert said(with_container(old, resources=resources), old) == []
    assert said(with_container(old, image="x:1", resources=resources), old) == [(TEMPLATE_SPEC, "field is immutable")]
    assert said(with_container(old, name="x", resources=resources), old) == [(TEMPLATE_SPEC, "field is immutable")]


def test_gates_of_mutable_templates() -> None:
    """U9: without the one, active pods do not matter; without the other, resources are fixed, at another path."""
    no_directives = FeatureGates(mutable_scheduling_directives_for_suspended_jobs=False)
    no_resources = FeatureGates(mutable_pod_resources_for_suspended_jobs=False)
    started = stored(job(SUSPENDED), {"startTime": NOW} | IS_SUSPENDED)
    active = stored(job(SUSPENDED), {"active": 1})
    fresh = stored(job(SUSPENDED))

    assert said(changed(started, pod=DIRECTIVES), started, gates=no_directives) == [
        (TEMPLATE_SPEC, "field is immutable")
    ]
    assert said(changed(active, pod=DIRECTIVES), active, gates=no_directives) == []
    assert said(changed(fresh, pod=DIRECTIVES), fresh, gates=no_resources) == []
    assert said(with_container(fresh, resources={"requests": {"cpu": "1"}}), fresh, gates=no_resources) == [
        (TEMPLATE, "field is immutable")
    ]


def test_old_jobs_need_no_prefixed_labels() -> None:
    """C5: they are asked for only if the stored template had both."""
    old = stored(job())
    labels = old["spec"]["template"]["metadata"]["labels"]
    del labels["batch.kubernetes.io/job-name"], labels["batch.kubernetes.io/controller-uid"]
    old["spec"]["selector"] = {"matchLabels": {"controller-uid": labels["controller-uid"]}}

    assert said(changed(old, SUSPENDED), old) == []


def test_bad_values_in_a_stored_selector_stay_allowed() -> None:
    """C9: they are not complained of, but nothing is matched by them either."""
    expression = {"key": "a", "operator": "NotIn", "values": ["-"]}
    old = stored(job({"manualSelector": True, "selector": {"matchExpressions": [expression]}}))

    assert said(changed(old, SUSPENDED), old) == []


def test_a_job_that_goes_takes_no_new_finalizers() -> None:
    """U11."""
    old = stored(job(meta={"finalizers": ["a/b"]}))
    old["metadata"]["deletionTimestamp"] = NOW
    request = job(meta={"finalizers": ["a/b", "x/z", "x/y"], "uid": old["metadata"]["uid"]})
    request["spec"] = old["spec"]
    new = updated(request, old)
    violation = Violation(
        "metadata.finalizers",
        "FieldValueForbidden",
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers"
        ' []string{"x/y", "x/z"}',
    )

    assert [violation] * 2 == refusals(new, old)


def test_other_identities_are_refused_twice() -> None:
    """E3, U11."""
    old = stored(job())
    new = changed(old)
    new["metadata"] |= {"uid": "other", "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 9}

    found = [(one.field, one.message) for one in refusals(new, old) if one.field.startswith("metadata.")]

    assert (
        found
        == [
            ("metadata.uid", 'Invalid value: "other": field is immutable'),
            ("metadata.deletionTimestamp", f'Invalid value: "{NOW}": field is immutable'),
            ("metadata.deletionGracePeriodSeconds", "Invalid value: 9: field is immutable"),
        ]
        * 2
    )


def test_a_status_write_is_checked_with_its_metadata() -> None:
    """V41, V42."""
    old = stored(job())
    request = deepcopy(old) | {"status": {"active": -1}}
    request["metadata"]["annotations"] = {"-": ""}

    new = status_updated(request, old)
    generic = check_any_update(new["metadata"], old["metadata"])
    found = [one.field for one in (*generic, *check_status_write(new, old))]

    assert found == ["metadata.annotations"] * 3 + ["status.active"]
