"""The mirror of an object whose kind is data, and what of it follows (D4, D9)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from declared_objects import POD, TRANSFORM, built_in_kind, condition, job_set, mirror_of, source_of
from doubles.patching import apply_json_patch

from mirror.kinds.base import MirrorTransform, UnsupportedSpec
from mirror.kinds.declared.body import MOST_OWN_OF_WORKER
from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.dependencies import Reference
from mirror.kube.objects import Object
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.model.field_paths import FieldPath, put
from mirror.settings.load import parse

Json = dict[str, Any]
NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)

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
    assert body["metadata"]["annotations"].keys() == {"note", names.CARRIED, names.CARRIED_SPEC}
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


def train_job(**pod: Any) -> Json:
    """Whose runtime's nodes are patched."""
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": {}, **pod}}}}]
    patch = {"manager": "example.com/a", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    return {"runtimeRef": {"name": "torch"}, "runtimePatches": [patch]}


def pod_patch_in(patches: Json) -> Json:
    (job,) = patches[0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    return job["template"]["spec"]["template"]


def test_pods_of_a_train_job_get_our_labels_where_it_patches_their_template() -> None:
    """Within a part that follows whole: they are no difference, and stay when it follows (D9, D22)."""
    kind, watching = built_in_kind("TrainJob"), MirrorTransform(origin="home", label_pods=True)
    ours = {names.ORIGIN: "home", names.SOURCE_UID: "s-1"}
    source = source_of(kind, train_job(metadata={"labels": {"team": "x"}}))
    body = kind.mirror_body(source, namespace="team", transform=watching)
    assert pod_patch_in(body["spec"]["runtimePatches"])["metadata"]["labels"] == {"team": "x", **ours}
    labels, annotations = body["metadata"]["labels"], body["metadata"]["annotations"]
    spec = {**body["spec"], "suspend": True}
    mirror = source_of(kind, spec, labels=labels, annotations=annotations, uid="m-1")
    held = {"suspend": True}
    for transform in (watching, TRANSFORM):
        same = source_of(kind, train_job(metadata={"labels": {"team": "x"}}) | held)
        assert [one.get("path") for one in changed(kind, same, mirror, transform)] in ([], ["/metadata/annotations"])
        other = source_of(kind, train_job(metadata={"labels": {"team": "y"}}) | held)
        (written,) = [one["value"] for one in changed(kind, other, mirror, transform) if "runtime" in one["path"]]
        assert pod_patch_in(written)["metadata"]["labels"] == {"team": "y", **(ours if transform is watching else {})}
    plain = mirror_of(kind, source)
    assert kind.changes(source, plain, transform=watching) is None
    unlabelled = kind.mirror_body(source_of(kind, train_job()), namespace="team", transform=watching)
    assert pod_patch_in(unlabelled["spec"]["runtimePatches"])["metadata"]["labels"] == ours


def ray_job(**metadata: Any) -> Json:
    template = {**POD, "metadata": metadata}
    groups = {"headGroupSpec": {"template": template}, "workerGroupSpecs": [{"groupName": "g", "template": template}]}
    return {"shutdownAfterJobFinishes": True, "suspend": True, "rayClusterSpec": groups}


def labelled_job_set(**metadata: Any) -> Json:
    """With two jobs, whose pods have this metadata."""
    jobs = [{"name": one, "template": {"spec": {"template": {**POD, "metadata": metadata}}}} for one in ("a", "b")]
    return {"suspend": True, "replicatedJobs": jobs}


def labelled_torch_job(**metadata: Any) -> Json:
    replicas = {"Worker": {"template": {**POD, "metadata": metadata}}}
    return {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": replicas}


WITH_LABELS = {"JobSet": labelled_job_set, "RayJob": ray_job, "PyTorchJob": labelled_torch_job}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"labels": {"team": "x"}}, {"labels": {"team": "y"}}, id="a label has another value"),
        pytest.param({}, {"labels": {"team": "y"}}, id="the first label"),
        pytest.param({"labels": {"team": "x"}}, {}, id="the last label goes"),
    ],
)
@pytest.mark.parametrize("was_watching", [True, False])
@pytest.mark.parametrize("name", WITH_LABELS)
def test_pods_stay_watched_when_the_labels_of_their_templates_change(
    name: str, before: Json, after: Json, *, was_watching: bool
) -> None:
    """A patch writes each map whole, and ours are in it, within lists too (D22)."""
    kind, spec_with, watching = built_in_kind(name), WITH_LABELS[name], MirrorTransform(origin="home", label_pods=True)
    first, source = source_of(kind, spec_with(**before)), source_of(kind, spec_with(**after))
    body = kind.mirror_body(first, namespace="team", transform=watching if was_watching else TRANSFORM)
    meta = {**body["metadata"], "uid": "m-1"}
    mirror = source_of(kind, body["spec"], **meta)
    for transform in (watching, TRANSFORM):
        patched = apply_json_patch({"metadata": meta, "spec": body["spec"]}, changed(kind, source, mirror, transform))
        ours = transform.pod_labels(source)
        wanted = spec_with(**({"labels": labels} if (labels := after.get("labels", {}) | ours) else {}))
        assert without_empty_metadata(patched["spec"]) == without_empty_metadata({**body["spec"], **wanted})
        assert (
            kind.changes(source, source_of(kind, patched["spec"], **patched["metadata"]), transform=transform) is None
        )


def without_empty_metadata(found: Any) -> Any:
    if isinstance(found, list):
        return [without_empty_metadata(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {key: without_empty_metadata(value) for key, value in found.items() if (key, value) != ("metadata", {})}


def test_what_a_train_jobs_patches_refer_to_is_known() -> None:
    """D27: the rest is its runtime's, on the worker."""
    volumes = [{"name": "v", "configMap": {"name": "settings"}}]
    source = source_of(built_in_kind("TrainJob"), train_job(spec={"volumes": volumes, "serviceAccountName": "robot"}))
    kind = built_in_kind("TrainJob")
    assert {one.name for one in kind.references(source)} == {"settings", "robot"}


def changed(kind: DeclaredKind, source: Object, mirror: Object, transform: MirrorTransform) -> list[Json]:
    found = kind.changes(source, mirror, transform=transform)
    return [] if found is None else [dict(one) for one in found.operations]


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


def spec_with(kind: DeclaredKind, template: Json, spec: Json | None = None) -> Json:
    """A spec, made of this one, with this pod template in every place where the kind has one."""
    body: Json = {"spec": spec or {}}
    for path in built_in()[kind.name].templates:
        body = _with(body, FieldPath.of_text(path).steps, template)
    found: Json = body["spec"]
    return found


def _with(found: Json, steps: tuple[tuple[str, bool], ...], value: Json) -> Json:
    if not steps:
        return value
    (name, is_every), inner = steps[0], found.get(steps[0][0])
    if is_every:
        return {**found, name: [_with(one, steps[1:], value) for one in inner or [{"name": "a"}]]}
    return {**found, name: _with(inner or {}, steps[1:], value)}


OF_QUEUES = pytest.mark.parametrize("name", [name for name, entry in built_in().items() if entry.templates])
"""Whatever has pod templates: Tekton's kinds have none, and Kueue knows neither."""


@OF_QUEUES
def test_what_a_workers_queue_suspends_is_left_to_it(name: str) -> None:
    """D9: Kueue on the worker suspends it and adds selectors of its own."""
    kind, entry = built_in_kind(name), built_in()[name]
    source = source_of(kind, spec_with(kind, POD))
    mirror = mirror_of(kind, source)
    theirs = spec_with(kind, {**POD, "spec": {**POD["spec"], "nodeSelector": {"f": "g"}}}, mirror.spec_dict())
    whole = put({"spec": theirs}, tuple(entry.suspend.path.split(".")), entry.suspend.held)
    held = source_of(kind, whole["spec"], **_metadata(mirror))
    assert kind.is_suspended(held)
    assert kind.changes(source, held, transform=TRANSFORM) is None


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
    assert JOB_SET.pod_selectors(mirror_of(JOB_SET, source)) == ("jobset.sigs.k8s.io/jobset-name=train",)
    kind = built_in_kind("PipelineRun")
    assert kind.pod_selectors(mirror_of(kind, source_of(kind, {}))) == ("tekton.dev/pipelineRunUID=m-1",)
    kind = built_in_kind("RayJob")
    submitter = "batch.kubernetes.io/job-name=train"
    source = source_of(kind, {})
    assert kind.pod_selectors(mirror_of(kind, source)) == ("jobmirror.io/none", submitter)
    mirror = mirror_of(kind, source, {"rayClusterName": "train-x7"})
    assert kind.pod_selectors(mirror) == ("ray.io/cluster=train-x7", submitter)
    kind = built_in_kind("RayService")
    status = {"activeServiceStatus": {"rayClusterName": "a"}, "pendingServiceStatus": {"rayClusterName": "b"}}
    assert kind.pod_selectors(mirror_of(kind, source_of(kind, {}), status)) == ("ray.io/cluster=a", "ray.io/cluster=b")


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
    pipelines = Resource("tekton.dev", "v1", "pipelines", "Pipeline")
    assert named == (Reference("Pipeline", "build", "spec.pipelineRef.name", resource=pipelines),)
    assert kind.needed == (pipelines,)
    account = kind.requirements(source_of(kind, {"taskRunTemplate": {"serviceAccountName": "robot"}}))
    assert account == (Reference("ServiceAccount", "robot", "spec.taskRunTemplate.serviceAccountName"),)


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


def test_a_report_tells_a_misspelt_annotation_with_what_was_meant() -> None:
    """D22: it would be placed as if it had none."""
    source = source_of(JOB_SET, job_set("a"), annotations={"jobmirror.io/workers-selector": "region=eu"})
    report = JOB_SET.differences_before(source, transform=TRANSFORM, managed_by=names.DEFAULT_MANAGED_BY)
    (caution,) = report.cautions
    assert caution.path == "metadata.annotations"
    assert "did you mean jobmirror.io/worker-selector?" in caution.text


@OF_QUEUES
def test_a_flavor_of_the_queue_here_stays_here(name: str) -> None:
    """D26: in each of its pod templates, by the settings; the queue's notes always."""
    kind = built_in_kind(name)
    directives = {"nodeSelector": {"flavor": "spot"}, "tolerations": [{"key": "flavor"}]}
    labels = {names.POD_SET: "a", "team": "x"}
    source = source_of(kind, spec_with(kind, {"metadata": {"labels": labels}, "spec": {**POD["spec"], **directives}}))
    strips = MirrorTransform(origin="home", strip_node_selectors=("flavor",), strip_tolerations=("*",))
    body = kind.mirror_body(source, namespace="team", transform=strips)
    assert body["spec"] == spec_with(kind, {"metadata": {"labels": {"team": "x"}}, "spec": POD["spec"]}, body["spec"])
    metadata = body["metadata"]
    mirror = source_of(kind, body["spec"], labels=metadata["labels"], annotations=metadata["annotations"], uid="m-1")
    assert kind.changes(source, mirror, transform=strips) is None


def admitted(kind: DeclaredKind, spec: Json) -> Json:
    """A spec as Kueue there writes it when it admits an object: in one of these kinds its templates are not touched."""
    labels, selector = {names.POD_SET: "a"}, {"nodeSelector": {"f": "g"}}
    template = {"metadata": {"labels": labels}, "spec": {**POD["spec"], **selector}}
    if kind.name == "AppWrapper":
        infos = {"podSetInfos": [{"labels": labels, **selector}]}
        spec = {**spec, "components": [{**one, **infos} for one in spec["components"]]}
    elif kind.name == "TrainJob":
        jobs = [{"name": "node", "template": {"spec": {"template": template}}}]
        own = {
            "manager": "kueue.x-k8s.io/manager",
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
        }
        spec = {**spec, "runtimePatches": [*spec["runtimePatches"], own]}
    else:
        spec = spec_with(kind, template, spec)
    suspend = built_in()[kind.name].suspend
    found: Json = put({"spec": spec}, tuple(suspend.path.split(".")), suspend.running)["spec"]
    return found


@OF_QUEUES
def test_what_a_workers_queue_admits_is_left_to_it(name: str) -> None:
    """D26: its labels, selectors and values are the queue's."""
    kind = built_in_kind(name)
    source = source_of(kind, spec_with(kind, POD))
    mirror = mirror_of(kind, source)
    there = source_of(kind, admitted(kind, mirror.spec_dict()), **_metadata(mirror))
    assert kind.changes(source, there, transform=TRANSFORM) is None


@OF_QUEUES
def test_a_suspension_that_a_workers_queue_undoes_is_not_repeated(name: str) -> None:
    """D26: each would end its pods, and the queue starts them again; it is told that the mirror runs."""
    kind, suspend = built_in_kind(name), built_in()[name].suspend
    held = put({"spec": spec_with(kind, POD)}, tuple(suspend.path.split(".")), suspend.held)["spec"]
    source = source_of(kind, held)
    mirror = mirror_of(kind, source)
    there = source_of(kind, admitted(kind, mirror.spec_dict()), **_metadata(mirror))
    changes = kind.changes(source, there, transform=TRANSFORM)
    assert changes is not None
    assert (changes.operations, changes.is_run_by_queue) == ((), True)


RAY: Json = {"groupName": "small", "replicas": 1, "template": POD}


def ray_cluster(*groups: Json, **spec: Any) -> Json:
    return {"headGroupSpec": {"template": POD}, "workerGroupSpecs": list(groups or (RAY,)), **spec}


def followed(kind: DeclaredKind, before: Json, after: Json, **metadata: Any) -> dict[str, Any]:
    """What a patch writes to the mirror of a source that was changed."""
    mirror = mirror_of(kind, source_of(kind, before))
    changes = kind.changes(source_of(kind, after, **metadata), mirror, transform=TRANSFORM)
    return sent(changes.operations) if changes is not None else {}


SCALED: dict[str, tuple[Json, Json, dict[str, Any]]] = {
    "by its user": (ray_cluster(), ray_cluster({**RAY, "replicas": 3}), {"/spec/workerGroupSpecs/0/replicas": 3}),
    "by an autoscaler on the worker": (
        ray_cluster(enableInTreeAutoscaling=True),
        ray_cluster({**RAY, "replicas": 3}, enableInTreeAutoscaling=True),
        {},
    ),
    "to other bounds for the autoscaler": (
        ray_cluster(enableInTreeAutoscaling=True),
        ray_cluster({**RAY, "maxReplicas": 9}, enableInTreeAutoscaling=True),
        {"/spec/workerGroupSpecs/0/maxReplicas": 9},
    ),
    "by another group, which cannot follow": (ray_cluster(), ray_cluster(RAY, {**RAY, "groupName": "large"}), {}),
    "by a group in place of another": (ray_cluster(), ray_cluster({**RAY, "groupName": "large", "replicas": 5}), {}),
    "by one group less": (ray_cluster(RAY, {**RAY, "groupName": "large"}), ray_cluster(), {}),
}


@pytest.mark.parametrize(("before", "after", "expected"), SCALED.values(), ids=SCALED)
def test_a_ray_cluster_is_scaled(before: Json, after: Json, expected: dict[str, Any]) -> None:
    """D26: its replicas are the worker's where an autoscaler there has them, else its user's."""
    assert followed(built_in_kind("RayCluster"), before, after) == expected


REPLICAS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
}
METRICS = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]


def kubeflow_job(kind: str, replicas: int, **spec: Any) -> Json:
    return {"runPolicy": {}, REPLICAS[kind]: {"Worker": {"replicas": replicas, "template": POD}}, **spec}


@pytest.mark.parametrize("kind", REPLICAS)
def test_kubeflows_workers_are_scaled_by_their_user(kind: str) -> None:
    """Nothing on the worker writes them, unless it is asked for an autoscaler: an operator there makes the pods."""
    found = followed(built_in_kind(kind), kubeflow_job(kind, 1), kubeflow_job(kind, 3))
    assert found == {f"/spec/{REPLICAS[kind]}/Worker/replicas": 3}


@pytest.mark.parametrize(
    ("policy", "are_theirs"),
    [
        ({"minReplicas": 1, "maxReplicas": 5, "metrics": METRICS}, True),
        ({"metrics": []}, True),
        ({"maxReplicas": 5}, False),
    ],
    ids=["with metrics", "with those by default", "without"],
)
def test_pytorchs_autoscaler_has_them_where_it_is_asked_for(policy: Json, are_theirs: bool) -> None:
    """training-operator makes a HorizontalPodAutoscaler where there are metrics only; it scales the mirror."""
    before, after = (kubeflow_job("PyTorchJob", replicas, elasticPolicy=policy) for replicas in (1, 3))
    expected = {} if are_theirs else {"/spec/pytorchReplicaSpecs/Worker/replicas": 3}
    assert followed(built_in_kind("PyTorchJob"), before, after) == expected


def test_what_an_autoscaler_wrote_is_no_difference() -> None:
    """D26: it is neither put back nor reported, and the mirror is still what its source wants."""
    kind, spec = built_in_kind("RayCluster"), ray_cluster(enableInTreeAutoscaling=True)
    source = source_of(kind, spec)
    grown = source_of(kind, ray_cluster({**RAY, "replicas": 7}, enableInTreeAutoscaling=True, suspend=False))
    mirror = mirror_of(kind, source, {"observedGeneration": 4}, generation=4)
    mirror = msgspec.structs.replace(mirror, spec=grown.spec)
    assert kind.changes(source, mirror, transform=TRANSFORM) is None
    following = kind.stored(source).next_status(mirror, now=NOW)
    assert following.status == {"observedGeneration": 3}


def test_a_ray_service_serves_what_its_user_says_later() -> None:
    """MultiKueue forwards it, too."""
    kind = built_in_kind("RayService")
    before = {"serveConfigV2": "a", "rayClusterConfig": ray_cluster()}
    after = {"serveConfigV2": "b", "rayClusterConfig": ray_cluster()}
    assert followed(kind, before, after) == {"/spec/serveConfigV2": "b"}


def test_a_ray_service_is_suspended_and_resumed_in_either_way() -> None:
    """KubeRay 1.7 has ``spec.suspend`` beside that of the cluster: what is made suspended by it would stay so."""
    kind = built_in_kind("RayService")
    running, suspended = {"rayClusterConfig": ray_cluster()}, {"rayClusterConfig": ray_cluster(), "suspend": True}
    assert followed(kind, running, suspended) == {"/spec/suspend": True}
    assert followed(kind, suspended, {**running, "suspend": False}) == {"/spec/suspend": False}
    assert followed(kind, suspended, running) == {"/spec/suspend": None}
    assert followed(kind, running, {"rayClusterConfig": ray_cluster(suspend=True)}) == {
        "/spec/rayClusterConfig/suspend": True
    }


def test_when_a_patch_of_a_train_job_was_written_is_each_clusters_own() -> None:
    """D26: its webhook writes it, on the worker by the clock there; else that would look like a change undone there."""
    kind = built_in_kind("TrainJob")

    def spec(image: str, second: int | None, **more: Any) -> Json:
        time = {} if second is None else {"time": f"2026-02-03T04:05:{second:02}Z"}
        return {"runtimePatches": [{"manager": "user", "trainingRuntimeSpec": {"image": image}, **time}], **more}

    source = source_of(kind, spec("a", 1, suspend=True))
    mirror = mirror_of(kind, source)
    assert mirror.spec_dict() == spec("a", None, suspend=True)
    made = source_of(kind, spec("a", 2, suspend=True), **_metadata(mirror))
    assert kind.is_as_sent(kind.mirror_body(source, namespace="team", transform=TRANSFORM), made)
    assert kind.changes(source, made, transform=TRANSFORM) is None

    changed = source_of(kind, spec("b", 5, suspend=True))
    changes = kind.changes(changed, made, transform=TRANSFORM)
    assert changes is not None
    assert sent(changes.operations) == {"/spec/runtimePatches": spec("b", None)["runtimePatches"]}
    annotations = next(one["value"] for one in changes.operations if one["path"] == "/metadata/annotations")
    written = source_of(kind, spec("b", 6, suspend=True), **_metadata(mirror) | {"annotations": annotations})
    assert kind.changes(changed, written, transform=TRANSFORM) is None


KUEUES_PATCH: Json = {"manager": "kueue.x-k8s.io/manager", "time": "2026-02-03T04:05:07Z", "trainingRuntimeSpec": {}}
"""Kueue's webhook adds it when a TrainJob is created, and never again; without it, it starts none."""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([{"manager": "user"}], [{"manager": "user", "trainingRuntimeSpec": {"a": 1}}], id="changed"),
        pytest.param([{"manager": "user"}], [], id="removed"),
        pytest.param([], [{"manager": "user"}], id="added"),
    ],
)
def test_the_patch_that_a_workers_queue_has_on_a_train_job_stays_when_those_of_its_user_follow(
    before: list[Json], after: list[Json]
) -> None:
    """D26: a list follows whole, and that of the queue there is in it; that of a queue here never goes along."""
    kind = built_in_kind("TrainJob")

    def spec(patches: list[Json]) -> Json:
        return {"suspend": True, "runtimePatches": [*patches, {**KUEUES_PATCH, "time": "2026-02-03T04:05:01Z"}]}

    source = source_of(kind, spec(before))
    mirror = mirror_of(kind, source)
    there = {**mirror.spec_dict(), "runtimePatches": [*before, KUEUES_PATCH]}
    held = source_of(kind, there, **_metadata(mirror))
    assert kind.changes(source, held, transform=TRANSFORM) is None
    changes = kind.changes(source_of(kind, spec(after)), held, transform=TRANSFORM)
    assert changes is not None
    assert sent(changes.operations) == {"/spec/runtimePatches": [*after, KUEUES_PATCH]}


def test_of_what_a_worker_has_for_itself_so_much_is_kept() -> None:
    """D29: a worker may send lists of tens of thousands, and each look goes over them."""
    kind = built_in_kind("TrainJob")
    source = source_of(kind, {"suspend": True, "runtimePatches": [{"manager": "user"}]})
    mirror = mirror_of(kind, source)
    there = {**mirror.spec_dict(), "runtimePatches": [KUEUES_PATCH] * 1000}
    held = source_of(kind, there, **_metadata(mirror))
    changes = kind.changes(source, held, transform=TRANSFORM)
    assert changes is not None
    wanted = [{"manager": "user"}, *[KUEUES_PATCH] * MOST_OWN_OF_WORKER]
    assert sent(changes.operations) == {"/spec/runtimePatches": wanted}


@pytest.mark.parametrize(
    ("name", "spec", "place"),
    [
        ("RayJob", {"rayClusterSpec": ray_cluster(managedBy="example.com/other")}, "rayClusterSpec"),
        ("RayService", {"rayClusterConfig": ray_cluster(managedBy="example.com/other")}, "rayClusterConfig"),
    ],
)
def test_a_nested_managed_by_does_not_reach_the_worker(name: str, spec: Json, place: str) -> None:
    """Its controller would leave the RayCluster alone, and the mirror would hang."""
    kind = built_in_kind(name)
    body = kind.mirror_body(source_of(kind, spec), namespace="team", transform=TRANSFORM)
    assert "managedBy" not in body["spec"][place]


def test_a_mirror_whose_end_may_be_withdrawn_is_suspended_and_goes_on_if_it_is() -> None:
    """Without that its controller would begin anew once what it made is gone; ``mirror diff`` says why it is so."""
    kind = built_in_kind("TrainJob")
    source = source_of(kind, train_job())
    runs, failed = mirror_of(kind, source), {"conditions": [condition("Failed", reason="FailedJobs")]}
    assert kind.changes(source, runs, transform=TRANSFORM) is None
    assert kind.changes(source, mirror_of(kind, source, {"conditions": [DEADLINE]}), transform=TRANSFORM) is None

    changes = kind.changes(source, mirror_of(kind, source, failed), transform=TRANSFORM)
    assert changes is not None
    assert sent(changes.operations) == {"/spec/suspend": True}
    annotations = changes.operations[-1]["value"]
    held = mirror_of(kind, source_of(kind, train_job() | {"suspend": True}), failed, annotations=annotations)
    assert kind.changes(source, held, transform=TRANSFORM) is None
    ended = source_of(kind, train_job(), failed)
    report = kind.differences_between(ended, held, transform=TRANSFORM, managed_by="")
    (told,) = report.differences
    assert (told.path, told.kind, told.mirror) == ("spec.suspend", "ours", "true")
    assert "cannot begin anew" in told.because

    withdrawn = mirror_of(kind, source_of(kind, train_job() | {"suspend": True}), {}, annotations=annotations)
    changes = kind.changes(source, withdrawn, transform=TRANSFORM)
    assert changes is not None
    assert sent(changes.operations) == {"/spec/suspend": False}

    changes = kind.changes(ended, runs, transform=TRANSFORM)
    assert changes is not None, "what its source shows as failed must not run"
    assert sent(changes.operations) == {"/spec/suspend": True}


DEADLINE = condition("Failed", reason="DeadlineExceeded")


UNSUPPORTED: dict[str, tuple[Json, str]] = {
    "that cannot be suspended": ({"rayClusterSpec": {}}, "spec.shutdownAfterJobFinishes: without it"),
    "whose cluster stays": ({"shutdownAfterJobFinishes": False}, "spec.shutdownAfterJobFinishes: without it"),
    "that says so in text": ({"shutdownAfterJobFinishes": "true"}, "spec.shutdownAfterJobFinishes: without it"),
    "on a cluster that exists": (
        {"shutdownAfterJobFinishes": True, "clusterSelector": {"ray.io/cluster": "a"}},
        "spec.clusterSelector: it names",
    ),
    "with rules that no operator takes beside it": (
        {
            "shutdownAfterJobFinishes": True,
            "deletionStrategy": {
                "deletionRules": [{"condition": {"jobStatus": "FAILED"}, "policy": "DeleteSelf"}],
            },
        },
        "spec.deletionStrategy.deletionRules: KubeRay",
    ),
}


@pytest.mark.parametrize(("spec", "text"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_a_ray_job_is_refused(spec: Json, text: str) -> None:
    """D3: a suspension would be a dead end there; the field and the way out are named."""
    kind = built_in_kind("RayJob")
    with pytest.raises(UnsupportedSpec) as refused:
        kind.check(source_of(kind, spec))
    assert str(refused.value).startswith(text)
    assert refused.value.reason == "UnsupportedSpec"
    kind.check(source_of(kind, {"shutdownAfterJobFinishes": True, "clusterSelector": {}}))


DELETIONS = {
    "DeleteSelf": "DeleteCluster",
    "DeleteCluster": "DeleteCluster",
    "DeleteWorkers": "DeleteWorkers",
}


@pytest.mark.parametrize(("said", "sent"), DELETIONS.items())
def test_a_ray_job_does_not_delete_itself(said: str, sent: str) -> None:
    """A12: its end would go with it where nobody saw that. Its cluster goes when it was to."""
    kind = built_in_kind("RayJob")
    strategy = {"onSuccess": {"policy": said}, "onFailure": {"policy": "DeleteWorkers"}}
    source = source_of(kind, {"shutdownAfterJobFinishes": True, "deletionStrategy": strategy})
    kind.check(source)
    mirror = mirror_of(kind, source)
    assert mirror.spec_dict()["deletionStrategy"] == {**strategy, "onSuccess": {"policy": sent}}
    assert kind.changes(source, mirror, transform=TRANSFORM) is None


def test_what_is_replaced_is_told() -> None:
    """Beside what is left out, before there is a mirror and with it."""
    kind = built_in_kind("RayJob")
    strategy = {"onSuccess": {"policy": "DeleteSelf"}, "onFailure": {"policy": "DeleteCluster"}}
    source = source_of(kind, {"shutdownAfterJobFinishes": True, "deletionStrategy": strategy})
    for report in (
        kind.differences_before(source, transform=TRANSFORM, managed_by=""),
        kind.differences_between(source, mirror_of(kind, source), transform=TRANSFORM, managed_by=""),
    ):
        told = {one.path: (one.source, one.mirror) for one in report.differences}
        assert told["spec.deletionStrategy.onSuccess.policy"] == ('"DeleteSelf"', '"DeleteCluster"')
        assert "spec.deletionStrategy.onFailure.policy" not in told


def test_only_what_has_the_value_is_replaced() -> None:
    """Of several elements those, and nothing is made where nothing is."""
    entries = parse(
        b"""
kinds:
- kind: JobSet
  replace: [{path: "spec.replicatedJobs[].replicas", value: 1, by: 2}, {path: spec.coordinator.x, value: a, by: b}]
""",
        "f",
    ).kinds
    kind = kinds_of(entries)["JobSet"]
    jobs = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": True}, {"name": "c"}, {"name": "d", "replicas": 1}]
    body = kind.mirror_body(source_of(kind, {"replicatedJobs": jobs}), namespace="team", transform=TRANSFORM)
    assert [one.get("replicas") for one in body["spec"]["replicatedJobs"]] == [2, True, None, 2]
    assert "coordinator" not in body["spec"]


def template_that_reads(name: str) -> Json:
    """A pod template with a ConfigMap."""
    return {"spec": {"containers": [{"name": "main", "envFrom": [{"configMapRef": {"name": name}}]}]}}


WRAPPED: dict[str, tuple[str, Json, set[str]]] = {
    "a Job": ("Job", {"template": template_that_reads("a")}, {"a"}),
    "a Deployment": ("Deployment", {"template": template_that_reads("a")}, {"a"}),
    "a JobSet": ("JobSet", {"replicatedJobs": [{"template": {"spec": {"template": template_that_reads("a")}}}]}, {"a"}),
    "a PyTorchJob": (
        "PyTorchJob",
        {
            "pytorchReplicaSpecs": {
                "Master": {"template": template_that_reads("a")},
                "Worker": {"template": template_that_reads("b")},
            }
        },
        {"a", "b"},
    ),
    "a RayCluster": (
        "RayCluster",
        {
            "headGroupSpec": {"template": template_that_reads("a")},
            "workerGroupSpecs": [{"template": template_that_reads("b")}],
        },
        {"a", "b"},
    ),
    "a RayJob": (
        "RayJob",
        {
            "rayClusterSpec": {
                "headGroupSpec": {"template": template_that_reads("a")},
                "workerGroupSpecs": [{"template": template_that_reads("b")}],
            }
        },
        {"a", "b"},
    ),
}


@pytest.mark.parametrize(("wrapped", "spec", "expected"), WRAPPED.values(), ids=WRAPPED)
def test_the_pods_of_what_is_wrapped_are_known(wrapped: str, spec: Json, expected: set[str]) -> None:
    """Of every kind whose pod sets AppWrapper's webhook finds by itself: what they need, and where our labels go."""
    kind = built_in_kind("AppWrapper")
    component = {"template": {"kind": wrapped, "metadata": {"name": "x"}, "spec": spec}, "podSets": [{"path": "any"}]}
    source = source_of(kind, {"components": [component]})
    assert {one.name for one in kind.references(source)} == expected
    labelled = msgspec.structs.replace(TRANSFORM, label_pods=True)
    body = kind.mirror_body(source, namespace="team", transform=labelled)
    assert str(body["spec"]).count(names.SOURCE_UID) == len(expected)
    assert body["spec"]["components"][0]["podSets"] == component["podSets"]


def test_what_is_wrapped_goes_where_the_mirror_is() -> None:
    """D19: into the namespace with the prefix; who created it, and what a Kueue here chose, stays here."""
    kind = built_in_kind("AppWrapper")
    names_of = [{"name": "a", "namespace": "team"}, {"name": "b"}, {"name": "c", "namespace": "other"}]
    components = [{"template": {"kind": "Job", "metadata": one}, "podSetInfos": [{"labels": {}}]} for one in names_of]
    owner = {"workload.codeflare.dev/user": "alice", "workload.codeflare.dev/userid": "1", "team": "x"}
    source = source_of(kind, {"components": components}, labels=owner)
    body = kind.mirror_body(source, namespace="p-team", transform=TRANSFORM)
    found = [one["template"]["metadata"].get("namespace") for one in body["spec"]["components"]]
    assert found == ["p-team", None, "other"]
    assert all("podSetInfos" not in one for one in body["spec"]["components"])
    assert body["metadata"]["labels"] == {"team": "x", names.ORIGIN: "home", names.SOURCE_UID: "s-1"}

    written = {**body["metadata"]["labels"], "workload.codeflare.dev/user": "jobmirror"}
    mirror = mirror_of(kind, source, labels=written)
    assert kind.changes(source, mirror, transform=TRANSFORM) is None


@pytest.mark.parametrize(
    ("name", "spec", "field", "key"),
    [
        ("AppWrapper", {"components": []}, "labels", "workload.codeflare.dev/user"),
        ("PipelineRun", {"pipelineRef": {"name": "p"}}, "annotations", "chains.tekton.dev/signed"),
    ],
)
def test_what_a_workers_own_controllers_wrote_stays_when_something_beside_it_follows(
    name: str, spec: Json, field: str, key: str
) -> None:
    """D9: AppWrapper's webhook refuses a patch that takes away who created it, and Chains would sign a run again."""
    kind = built_in_kind(name)
    before = source_of(kind, spec, **{field: {key: "alice", "team": "a"}})
    mirror = mirror_of(kind, before)
    there = {**(mirror.labels if field == "labels" else mirror.annotations), key: "jobmirror", "theirs": "1"}
    mirror = mirror_of(kind, before, **{field: there})
    changes = kind.changes(source_of(kind, spec, **{field: {key: "bob", "team": "b"}}), mirror, transform=TRANSFORM)
    assert changes is not None
    (written,) = [one["value"] for one in changes.operations if one["path"] == f"/metadata/{field}"]
    assert {name: written.get(name) for name in (key, "team", "theirs")} == {
        key: "jobmirror", "team": "b", "theirs": "1"
    }  # fmt: skip
