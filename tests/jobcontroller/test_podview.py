"""A pod as the cache keeps it: everything that decisions look at, and little else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cached import cached_job, cached_pod, owned_by

from mirror.jobcontroller.decide.backoff import finish_time
from mirror.jobcontroller.decide.values import Container, PodCondition
from mirror.jobcontroller.podview import CachedPod, keep_pod, may_matter
from mirror.kube.objects import Object, decode_object

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TEXT = "2026-01-02T03:04:05Z"


def decoded(spec: Any = None, status: Any = None, **metadata: Any) -> Object:
    body = {"metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"} | metadata}
    return decode_object(json.dumps(body | {"spec": spec or {}, "status": status or {}}).encode())


def kept(spec: Any = None, status: Any = None, **metadata: Any) -> CachedPod:
    return keep_pod(decoded(spec, status, **metadata))


def test_everything_that_decisions_look_at_is_read() -> None:
    """Each field of ``values.Pod`` from its place in the API."""
    pod = kept(
        {"nodeName": "node-0", "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]},
        {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": TEXT, "lastProbeTime": None}],
            "containerStatuses": [{"name": "main", "restartCount": 2, "state": {"running": {"startedAt": TEXT}}}],
            "initContainerStatuses": [
                {"name": "i", "state": {"terminated": {"exitCode": 3, "finishedAt": TEXT}}},
                {"name": "s", "state": {"terminated": {"exitCode": 0, "finishedAt": None}}},
            ],
        },
        creationTimestamp=TEXT,
        deletionTimestamp=TEXT,
        deletionGracePeriodSeconds=30,
        finalizers=["example.com/other", "batch.kubernetes.io/job-tracking"],
        annotations={
            "batch.kubernetes.io/job-completion-index": "4",
            "batch.kubernetes.io/job-index-failure-count": "2",
            "batch.kubernetes.io/job-index-ignored-failure-count": "1",
        },
    ).pod
    assert (pod.uid, pod.name, pod.namespace, pod.phase, pod.node) == ("u", "p", "n", "Running", "node-0")
    assert (pod.created, pod.deleted, pod.grace_seconds) == (AT, AT, 30)
    assert (pod.index, pod.index_failures, pod.index_ignored_failures) == (4, 2, 1)
    assert pod.conditions == (PodCondition("Ready", "True", AT),)
    assert pod.containers == (
        Container("main", restarts=2),
        Container("i", is_init=True, exit_code=3, finished_at=AT),
        Container("s", is_init=True, is_sidecar=True, exit_code=0),
    )
    assert (pod.has_finalizer, pod.finalizer_at) == (True, 1)
    assert pod.is_terminating


@pytest.mark.parametrize(
    ("text", "index", "count"),
    [
        ("0", 0, 0),
        ("12", 12, 12),
        ("+3", 3, 3),
        ("007", 7, 7),
        ("-1", None, 0),
        ("2147483648", 2147483648, 0),
        ("", None, 0),
        ("x", None, 0),
        (" 1", None, 0),
        ("1_0", None, 0),
        ("--1", None, 0),
        ("٣", None, 0),
        ("9" * 40, None, 0),
    ],
)
def test_numbers_in_annotations_are_read_as_go_reads_them(text: str, index: int | None, count: int) -> None:
    """L1, Q16: nonsense is no index, and counts as no failure."""
    keys = ("job-completion-index", "job-index-failure-count")
    pod = kept(annotations={f"batch.kubernetes.io/{key}": text for key in keys}).pod
    assert (pod.index, pod.index_failures) == (index, count)


def test_a_pod_that_says_nothing_is_pending() -> None:
    """Empty parts are the API's defaults."""
    pod = decode_object(b'{"metadata":{"name":"p","namespace":"n"},"spec":null,"status":null}')
    assert keep_pod(pod).pod.phase == "Pending"


def test_junk_is_neither_active_work_nor_an_end() -> None:
    """A pod that no API server sent must not stop the cache."""
    assert kept(status={"phase": 7}).pod.phase == "Unknown"


def test_a_success_that_was_counted_keeps_hardly_more_than_its_name() -> None:
    """Tens of thousands of these are cached. An orphan may be adopted, and then it counts when it ended."""
    status = {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": TEXT}]}
    owned = {"ownerReferences": [owned_by(cached_job())]}
    counted, orphan = kept(status=status, **owned), kept(status=status)
    tracked = kept(status=status, finalizers=["batch.kubernetes.io/job-tracking"], **owned)
    assert counted.is_settled
    assert counted.pod.conditions == ()
    assert len(tracked.pod.conditions) == len(orphan.pod.conditions) == 1
    assert bytes(counted.spec) == bytes(counted.status) == b"null"
    assert counted.annotations == {}


def test_a_success_that_is_going_is_known_to_be() -> None:
    """O2, H4: an orphan that is being deleted must not be adopted; the API would refuse it at each sync."""
    pod = kept(status={"phase": "Succeeded"}, deletionTimestamp=TEXT).pod
    assert (pod.deleted, pod.has_finalizer) == (AT, False)


@pytest.mark.parametrize(("given", "kept_seconds"), [(2**63 - 1, 2**31 - 1), (-5, 0), (30, 30)])
def test_a_grace_beyond_all_times_is_cut(given: int, kept_seconds: int) -> None:
    """It is subtracted from a time (B6)."""
    found = kept(status={"phase": "Running"}, deletionTimestamp=TEXT, deletionGracePeriodSeconds=given).pod
    assert found.grace_seconds == kept_seconds
    assert finish_time(found) <= AT


def test_pods_share_what_is_the_same() -> None:
    """Labels of a NonIndexed Job's pods, and their owner."""
    owner = owned_by(cached_job())
    one, other = cached_pod("one", owner=owner), cached_pod("other", owner=owner)
    assert one.metadata.labels is other.metadata.labels
    assert one.owner is other.owner


@pytest.mark.parametrize(
    ("metadata", "matters"),
    [
        pytest.param({}, True, id="nobody's: a Job may adopt it"),
        pytest.param({"ownerReferences": [{"kind": "Job", "controller": True}]}, True, id="a Job's"),
        pytest.param({"ownerReferences": [{"kind": "ReplicaSet", "controller": True}]}, False, id="another kind's"),
        pytest.param({"ownerReferences": [{"kind": "ReplicaSet"}]}, True, id="not controlled"),
        pytest.param(
            {
                "ownerReferences": [{"kind": "ReplicaSet", "controller": True}],
                "finalizers": ["batch.kubernetes.io/job-tracking"],
            },
            True,
            id="tracked for some reason",
        ),
    ],
)
def test_only_pods_that_can_concern_us_are_cached(metadata: dict[str, Any], matters: bool) -> None:
    """A cluster has many more."""
    assert may_matter(decoded(**metadata)) is matters
