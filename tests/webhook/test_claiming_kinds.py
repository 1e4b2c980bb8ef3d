"""New objects of other kinds: claimed as Jobs are, each in its own words, and children left alone (D16, D24)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from doubles.jobs import Body, as_object, job
from webhook_asking import after, question, review

from mirror.kinds.base import is_held
from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.registry import JOB, Kinds
from mirror.model import names
from mirror.settings.kinds import KindEntry
from mirror.webhook import reviews
from mirror.webhook.mutating import mutate
from mirror.webhook.reviews import BadReview
from mirror.webhook.validating import validate

OURS = "example.com/ours"
SAMPLES = Path(__file__).parents[2] / "config" / "samples" / "kinds"
ALL = kinds_of([KindEntry(kind=name) for name in built_in()])
HOLDABLE = [one.name for one in ALL if one is not JOB and one.can_be_suspended]


def sample(name: str) -> Body:
    """As a user would write it who knows nothing of us."""
    body: Body = yaml.safe_load((SAMPLES / f"{name.lower()}.yaml").read_text())
    body["metadata"]["namespace"] = "default"
    *above, last = ALL[name].managed_by_field.split(".")
    inner = body
    for field in above:
        inner = inner.get(field, {})
    inner.pop(last, None)
    return body


def claimed(body: Body, kinds: Kinds = ALL) -> Body:
    return after(body, mutate(asked(body, kinds), OURS, kinds=kinds))


def asked(body: Body, kinds: Kinds = ALL) -> reviews.Question:
    kind = kinds.of_type(body["apiVersion"], body["kind"])
    assert kind is not None
    resource = {"group": kind.resource.group, "version": kind.resource.version, "resource": kind.resource.plural}
    return reviews.read(review(body, resource=resource), kinds)


@pytest.mark.parametrize("name", HOLDABLE)
def test_one_is_ours_and_held(name: str) -> None:
    """With the value that its API server takes, suspended in its own field, marked; all else is as it was."""
    kind, body = ALL[name], sample(name)
    found = claimed(body)
    seen = as_object(found)
    assert kind.managed_by(seen) == (kind.managed_by_value or OURS)
    assert is_held(kind, seen)
    assert found["spec"].keys() - body["spec"].keys() <= {"managedBy", "suspend", "status", "runPolicy"}
    assert claimed(found) == found


def test_what_cannot_be_suspended_is_ours_and_not_held() -> None:
    """A TaskRun is placed as soon as it may; a mark would say that somebody is to release it."""
    found = claimed(sample("TaskRun"))
    assert found["spec"]["managedBy"] == OURS
    assert names.HELD not in found["metadata"].get("annotations", {})


def test_whoever_is_said_to_run_it_runs_it() -> None:
    """Its own controller, too."""
    body = sample("JobSet")
    body["spec"]["managedBy"] = "jobset.sigs.k8s.io/jobset-controller"
    assert claimed(body) == body


def made_by(api_version: str, kind: str, body: Body) -> Body:
    owner: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    return body


@pytest.mark.parametrize(
    ("api_version", "owner", "mirrored", "is_left"),
    [
        pytest.param("jobset.x-k8s.io/v1alpha2", "JobSet", "JobSet", True, id="a JobSet's Jobs"),
        pytest.param("kubeflow.org/v2beta1", "MPIJob", "MPIJob", True, id="an MPIJob's launcher"),
        pytest.param("jobset.x-k8s.io/v1alpha2", "JobSet", "TrainJob", True, id="Jobs of a TrainJob's JobSet"),
        pytest.param("jobset.x-k8s.io/v1alpha2", "JobSet", "AppWrapper", True, id="Jobs of a JobSet in an AppWrapper"),
        pytest.param("ray.io/v1", "RayJob", "AppWrapper", True, id="the submitter of a RayJob in an AppWrapper"),
        pytest.param("kubeflow.org/v2beta1", "MPIJob", "AppWrapper", False, id="of a kind that none of ours makes"),
        pytest.param("jobset.x-k8s.io/v1alpha2", "JobSet", "MPIJob", False, id="of a kind that is not mirrored"),
    ],
)
def test_children_of_a_mirrored_kind_are_left_alone(api_version: str, owner: str, mirrored: str, is_left: bool) -> None:
    """They belong to their owner: where that is mirrored, its mirror makes its own."""
    kinds = kinds_of([KindEntry(kind=mirrored)])
    body = made_by(api_version, owner, job(managed_by=None))
    assert (claimed(body, kinds) == body) == is_left


def test_what_a_kind_of_ones_own_makes_is_as_its_entry_says() -> None:
    """``podOwners``: its grandchildren, too."""
    entry = {
        "kind": "Sweep",
        "resource": "sweeps.v1.example.com",
        "done": {"never": True},
        "podOwners": ["Trial trials.v1.example.com", "Job jobs.v1.batch"],
    }
    kinds = kinds_of([KindEntry(kind="JobSet"), msgspec.convert(entry, KindEntry)])
    body = made_by("example.com/v1", "Trial", job(managed_by=None))
    assert claimed(body, kinds) == body
    assert claimed(body, kinds_of([KindEntry(kind="JobSet")])) != body


def test_a_task_run_of_a_pipeline_is_the_pipelines() -> None:
    """And one that somebody made is not."""
    child = made_by("tekton.dev/v1", "PipelineRun", sample("TaskRun"))
    assert claimed(child) == child


def test_annotations_are_checked_as_those_of_jobs() -> None:
    """A selector that cannot be read, for instance."""
    body = sample("JobSet")
    body["spec"]["managedBy"] = OURS
    body["metadata"]["annotations"] = {names.WORKER_SELECTOR: "a=(b"}
    assert "worker-selector" in validate(asked(body), OURS).denied_because


def test_a_kind_that_is_not_mirrored_is_no_question() -> None:
    """The configuration asks too much then, and the API server's log says so."""
    resource = {"group": "jobset.x-k8s.io", "version": "v1alpha2", "resource": "jobsets"}
    with pytest.raises(BadReview, match=r"not about jobs of batch/v1$"):
        reviews.read(review(sample("JobSet"), resource=resource))
    assert question(job(managed_by=None)).kind is JOB
