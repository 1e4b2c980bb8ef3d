"""The mirror of an object whose kind is data, and what of it follows (D4, D9)."""

from __future__ import annotations

from typing import Any

import pytest
from declared_objects import POD, TRANSFORM, built_in_kind, job_set, mirror_of, source_of

from mirror.kinds.base import MirrorTransform
from mirror.model import names

JOB_SET = built_in_kind("JobSet")


def sent(operations: Any) -> dict[str, Any]:
    """What a patch writes, by path; the note aside."""
    return {one["path"]: one.get("value") for one in operations if one["path"] != "/metadata/annotations"}


def test_a_mirror_is_the_source_without_what_would_keep_its_controller_from_it() -> None:
    """managedBy, a nested one, and a TTL that would erase the result go; labels say whose it is."""
    spec = job_set("a", "b", ttlSecondsAfterFinished=5, network={"enableDNSHostnames": True})
    spec["replicatedJobs"][1]["template"]["spec"]["managedBy"] = "example.com/other"
    source = source_of(JOB_SET, spec, labels={"team": "x"}, annotations={"note": "1", names.WAITING_BECAUSE: "…"})
    body = JOB_SET.mirror_body(source, namespace="p-team", transform=TRANSFORM)
    assert (body["apiVersion"], body["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert body["metadata"]["namespace"] == "p-team"
    assert body["metadata"]["labels"] == {"team": "x", names.ORIGIN: "home", names.SOURCE_UID: "s-1"}
    assert body["metadata"]["annotations"].keys() == {"note", names.CARRIED}
    assert body["spec"].keys() == {"replicatedJobs", "network", "suspend"}
    assert body["spec"]["suspend"] is False
    assert all("managedBy" not in one["template"]["spec"] for one in body["spec"]["replicatedJobs"])


def test_pods_get_our_labels_where_they_are_watched() -> None:
    """In each pod template; and that is no difference to a mirror made before (D22)."""
    source = source_of(JOB_SET, job_set("a", "b"))
    watching = MirrorTransform(origin="home", label_pods=True)
    body = JOB_SET.mirror_body(source, namespace="team", transform=watching)
    for one in body["spec"]["replicatedJobs"]:
        labels = one["template"]["spec"]["template"]["metadata"]["labels"]
        assert labels == {names.ORIGIN: "home", names.SOURCE_UID: "s-1"}
    assert JOB_SET.changes(source, mirror_of(JOB_SET, source), transform=watching) is None


def test_nothing_is_to_be_done_for_a_mirror_as_it_was_made() -> None:
    """Defaults of the worker's webhooks are none of our business."""
    source = source_of(JOB_SET, job_set("a", suspend=True))
    mirror = mirror_of(JOB_SET, source)
    assert JOB_SET.changes(source, mirror, transform=TRANSFORM) is None
    assert JOB_SET.is_as_sent(JOB_SET.mirror_body(source, namespace="team", transform=TRANSFORM), mirror)


def test_a_suspension_follows_at_once() -> None:
    """D3: the mirror stays, suspended."""
    before = source_of(JOB_SET, job_set("a"))
    changes = JOB_SET.changes(
        source_of(JOB_SET, job_set("a", suspend=True)), mirror_of(JOB_SET, before), transform=TRANSFORM
    )
    assert changes is not None
    assert sent(changes.operations) == {"/spec/suspend": True}


def test_a_resume_carries_the_changed_template_in_one_write() -> None:
    """D3: scheduling directives go with it; where there was none, its parents are made."""
    before = source_of(JOB_SET, job_set("a", suspend=True))
    spec = job_set("a", suspend=False)
    pod = {**POD, "spec": {**POD["spec"], "nodeSelector": {"zone": "b"}}, "metadata": {"labels": {"x": "y"}}}
    spec["replicatedJobs"][0]["template"]["spec"]["template"] = pod
    changes = JOB_SET.changes(source_of(JOB_SET, spec), mirror_of(JOB_SET, before), transform=TRANSFORM)
    assert changes is not None
    template = "/spec/replicatedJobs/0/template/spec/template"
    assert sent(changes.operations) == {
        "/spec/suspend": False,
        f"{template}/metadata": {"labels": {"x": "y"}},
        f"{template}/spec/nodeSelector": {"zone": "b"},
    }


def test_a_template_that_changed_while_the_worker_was_away_is_sent_after_a_suspension() -> None:
    """Only a suspended one takes it."""
    before = source_of(JOB_SET, job_set("a"))
    spec = job_set("a")
    spec["replicatedJobs"][0]["template"]["spec"]["template"] = {**POD, "metadata": {"labels": {"x": "y"}}}
    changes = JOB_SET.changes(source_of(JOB_SET, spec), mirror_of(JOB_SET, before), transform=TRANSFORM)
    assert changes is not None
    assert sent(changes.operations) == {"/spec/suspend": True}


def test_what_a_workers_queue_suspends_is_left_to_it() -> None:
    """D9: Kueue on the worker suspends it and adds selectors of its own."""
    source = source_of(JOB_SET, job_set("a"))
    mirror = mirror_of(JOB_SET, source)
    theirs = mirror.spec_dict()
    theirs["suspend"] = True
    theirs["replicatedJobs"][0]["template"]["spec"]["template"] = {
        **POD,
        "spec": {**POD["spec"], "nodeSelector": {"f": "g"}},
    }
    held = source_of(JOB_SET, theirs, **_metadata(mirror))
    assert JOB_SET.changes(source, held, transform=TRANSFORM) is None


def _metadata(found: Any) -> dict[str, Any]:
    return {"labels": found.labels, "annotations": found.annotations, "uid": "m-1"}


def test_a_pipeline_run_is_started_by_leaving_the_word_out() -> None:
    """Its suspension is a text in spec.status, and running is the absence of it; a cancellation follows as it is."""
    kind = built_in_kind("PipelineRun")
    spec = {"managedBy": "jobmirror.io/controller", "pipelineRef": {"name": "p"}}
    pending, running = source_of(kind, {**spec, "status": "PipelineRunPending"}), source_of(kind, spec)
    assert kind.is_suspended(pending)
    assert not kind.is_suspended(running)
    assert "status" not in kind.mirror_body(running, namespace="team", transform=TRANSFORM)["spec"]
    changes = kind.changes(running, mirror_of(kind, pending), transform=TRANSFORM)
    assert changes is not None
    assert {"op": "remove", "path": "/spec/status"} in changes.operations
    cancelled = kind.changes(
        source_of(kind, {**spec, "status": "Cancelled"}), mirror_of(kind, running), transform=TRANSFORM
    )
    assert cancelled is not None
    assert sent(cancelled.operations) == {"/spec/status": "Cancelled"}


def test_annotations_of_a_workers_own_controllers_are_neither_carried_nor_fought() -> None:
    """Tekton Chains writes some on both clusters."""
    kind = built_in_kind("PipelineRun")
    source = source_of(kind, {"pipelineRef": {"name": "p"}}, annotations={"chains.tekton.dev/signed": "true", "a": "b"})
    mirror = mirror_of(kind, source)
    assert "chains.tekton.dev/signed" not in mirror.annotations
    signed = mirror_of(kind, source, annotations={**mirror.annotations, "chains.tekton.dev/signed": "false"})
    assert kind.changes(source, signed, transform=TRANSFORM) is None


CLAIMED = {
    "JobSet": ({"replicatedJobs": []}, {"managedBy": "x.io/y", "suspend": True}),
    "MPIJob": ({"mpiReplicaSpecs": {}}, {"runPolicy": {"managedBy": "x.io/y", "suspend": True}}),
    "PipelineRun": ({"pipelineRef": {}}, {"managedBy": "x.io/y", "status": "PipelineRunPending"}),
    "TaskRun": ({"taskRef": {}}, {"managedBy": "x.io/y"}),
}


@pytest.mark.parametrize(("name", "spec", "more"), [(name, *case) for name, case in CLAIMED.items()], ids=CLAIMED)
def test_a_claim_says_who_runs_it_and_suspends_it(name: str, spec: dict[str, Any], more: dict[str, Any]) -> None:
    """D16; a kind that cannot be suspended is only claimed."""
    kind = built_in_kind(name)
    (operation,) = kind.claim_operations(source_of(kind, spec), "x.io/y")
    assert operation == {"op": "add", "path": "/spec", "value": {**spec, **more}}


def test_pods_are_found_by_the_kinds_labels() -> None:
    """Of what a status names as well; where it says nothing, or no label value, none are."""
    source = source_of(JOB_SET, job_set())
    assert JOB_SET.pod_selector(mirror_of(JOB_SET, source)) == "jobset.sigs.k8s.io/jobset-name=train"
    kind = built_in_kind("PipelineRun")
    assert kind.pod_selector(mirror_of(kind, source_of(kind, {}))) == "tekton.dev/pipelineRunUID=m-1"


def test_what_pod_templates_name_is_known() -> None:
    """D27: of each template, and what the kind itself names."""
    spec = job_set("a")
    spec["replicatedJobs"][0]["template"]["spec"]["template"] = {
        "spec": {**POD["spec"], "serviceAccountName": "runner"}
    }
    (reference,) = JOB_SET.references(source_of(JOB_SET, spec))
    assert (reference.kind, reference.name) == ("ServiceAccount", "runner")
    assert reference.path == "spec.replicatedJobs[0].template.spec.template.spec.serviceAccountName"
    kind = built_in_kind("PipelineRun")
    named = kind.requirements(source_of(kind, {"pipelineRef": {"name": "build"}}))
    assert [(one.kind, one.name) for one in named] == [("Pipeline", "build")]


def test_a_report_tells_what_is_stripped_and_what_the_worker_set() -> None:
    """For ``mirror diff``."""
    source = source_of(JOB_SET, job_set("a", ttlSecondsAfterFinished=5))
    mirror = mirror_of(JOB_SET, source)
    spec = mirror.spec_dict() | {"network": {"enableDNSHostnames": True}}
    have = source_of(JOB_SET, spec, **_metadata(mirror))
    report = JOB_SET.differences_between(source, have, transform=TRANSFORM, managed_by=names.DEFAULT_MANAGED_BY)
    assert {(one.path, one.kind) for one in report.differences} == {
        ("spec.managedBy", "stripped"),
        ("spec.ttlSecondsAfterFinished", "stripped"),
        ("spec.network", "worker"),
    }
    assert not report.cautions
    other = JOB_SET.differences_before(source, transform=TRANSFORM, managed_by="example.com/other")
    assert [one.path for one in other.cautions] == ["spec.managedBy"]


def test_a_flavor_of_the_queue_here_stays_here() -> None:
    """D26: in each of its pod templates, by the settings; the queue's notes always."""
    spec = job_set("a", "b")
    for one in spec["replicatedJobs"]:
        directives = {"nodeSelector": {"flavor": "spot"}, "tolerations": [{"key": "flavor"}]}
        one["template"]["spec"]["template"] = {
            "metadata": {"labels": {names.POD_SET: "a", "team": "x"}},
            "spec": {**POD["spec"], **directives},
        }
    source = source_of(JOB_SET, spec)
    strips = MirrorTransform(origin="home", strip_node_selectors=("flavor",), strip_tolerations=("*",))
    body = JOB_SET.mirror_body(source, namespace="team", transform=strips)
    for one in body["spec"]["replicatedJobs"]:
        assert one["template"]["spec"]["template"] == {"metadata": {"labels": {"team": "x"}}, "spec": POD["spec"]}
    labels, annotations = body["metadata"]["labels"], body["metadata"]["annotations"]
    mirror = source_of(JOB_SET, body["spec"], labels=labels, annotations=annotations, uid="m-1")
    assert JOB_SET.changes(source, mirror, transform=strips) is None


def test_what_a_workers_queue_admits_is_left_to_it() -> None:
    """D26: its labels, selectors and values are the queue's; a suspension is not repeated."""
    source = source_of(JOB_SET, job_set("a"))
    mirror = mirror_of(JOB_SET, source)
    theirs = mirror.spec_dict()
    theirs["replicatedJobs"][0]["template"]["spec"]["template"] = {
        "metadata": {"labels": {names.POD_SET: "a"}},
        "spec": {**POD["spec"], "nodeSelector": {"f": "g"}},
    }
    admitted = source_of(JOB_SET, theirs, **_metadata(mirror))
    assert JOB_SET.changes(source, admitted, transform=TRANSFORM) is None
