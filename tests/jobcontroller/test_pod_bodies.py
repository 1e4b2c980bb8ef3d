"""The pods that are created (A10, A11)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cached import cached_job

from mirror.jobcontroller.creating import NoLabels, bodies
from mirror.jobcontroller.decide.values import PodCreate

TEMPLATE: dict[str, Any] = {
    "metadata": {"name": "ignored", "labels": {"a": "1"}, "annotations": {"n": "2"}, "finalizers": ["example.com/x"]},
    "spec": {
        "containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}, {"name": "second"}],
        "initContainers": [{"name": "init", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]}],
        "unknown": {"kept": [1]},
    },
}


def body(birth: PodCreate, name: str = "train", **spec: Any) -> dict[str, Any]:
    job = cached_job(name, template=TEMPLATE, **spec)
    found: dict[str, Any] = json.loads(bodies(job, job.spec_dict())(birth))
    return found


def test_a_plain_pod_is_its_template_with_an_owner_and_our_finalizer() -> None:
    """A10: of the template's metadata labels, annotations and finalizers; the spec as it is."""
    pod = body(PodCreate())
    assert pod["metadata"] == {
        "generateName": "train-",
        "labels": {"a": "1"},
        "annotations": {"n": "2"},
        "finalizers": ["example.com/x", "batch.kubernetes.io/job-tracking"],
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "train",
                "uid": "job-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert pod["spec"] == TEMPLATE["spec"]


def test_all_pods_without_an_index_share_one_body() -> None:
    """It is encoded once."""
    job = cached_job(template=TEMPLATE)
    body_of = bodies(job, job.spec_dict())
    assert body_of(PodCreate()) is body_of(PodCreate())


def test_an_indexed_pod_has_its_index_everywhere() -> None:
    """A11: annotation, label, hostname, name, and environment unless the name is taken."""
    pod = body(PodCreate(index=3), completionMode="Indexed")
    key = "batch.kubernetes.io/job-completion-index"
    assert pod["metadata"]["labels"] == {"a": "1", key: "3"}
    assert pod["metadata"]["annotations"] == {"n": "2", key: "3"}
    assert pod["metadata"]["generateName"] == "train-3-"
    assert pod["spec"]["hostname"] == "train-3"
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{key}']"}}}
    main, second = pod["spec"]["containers"]
    assert main["env"] == [{"name": "A", "value": "1"}, variable]
    assert second["env"] == [variable]
    assert pod["spec"]["initContainers"] == TEMPLATE["spec"]["initContainers"]
    assert pod["spec"]["unknown"] == {"kept": [1]}


@pytest.mark.parametrize(
    ("failures", "ignored", "expected"),
    [(None, None, {}), (0, None, {"failure": "0"}), (1, 0, {"failure": "1"}), (0, 2, {"failure": "0", "ignored": "2"})],
)
def test_an_index_brings_its_failure_counts(failures: int | None, ignored: int | None, expected: Any) -> None:
    """A11: the first always with backoffLimitPerIndex, the ignored ones only when there are any."""
    pod = body(PodCreate(index=0, index_failures=failures, index_ignored_failures=ignored), completionMode="Indexed")
    names = {"failure": "job-index-failure-count", "ignored": "job-index-ignored-failure-count"}
    found = {
        short: pod["metadata"]["annotations"][f"batch.kubernetes.io/{name}"]
        for short, name in names.items()
        if f"batch.kubernetes.io/{name}" in pod["metadata"]["annotations"]
    }
    assert found == expected


def test_a_long_name_is_cut_so_that_the_index_survives() -> None:
    """A11: 58 characters and five more that the server adds."""
    pod = body(PodCreate(index=12345), "j" * 63, completionMode="Indexed")
    assert pod["metadata"]["generateName"] == "j" * 51 + "-12345-"
    assert len(pod["metadata"]["generateName"]) == 58


def test_a_template_without_labels_is_refused() -> None:
    """A10."""
    job = cached_job(template={"spec": {}})
    with pytest.raises(NoLabels, match=r"^unable to create pods, no labels$"):
        bodies(job, job.spec_dict())
