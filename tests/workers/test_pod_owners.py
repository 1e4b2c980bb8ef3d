"""Whose a pod is: the chain of controllers from it to a mirror."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import JOB
from mirror.kube.objects import Meta, OwnerReference
from mirror.kube.resources import JOBS, Resource
from mirror.settings.kinds import KindEntry
from mirror.workers import pod_owners
from mirror.workers.pod_owners import PodOwners, read_metadata, read_metadata_list

UID = "mirror"


def built_in_kind(name: str) -> Kind:
    return kinds_of([KindEntry(kind=name)])[name]


def owner(kind: str = "Job", api: str = "batch/v1", **changes: Any) -> OwnerReference:
    values = {"name": "train", "uid": UID, "controller": True} | changes
    return OwnerReference(api_version=api, kind=kind, **values)


def of_job(uid: str = "child", name: str = "train-main-0") -> list[OwnerReference]:
    return [owner(uid=uid, name=name)]


def of_job_set(**changes: Any) -> list[OwnerReference]:
    return [owner("JobSet", "jobset.x-k8s.io/v1alpha2", **changes)]


class Worker:
    """What is there, by plural and name; and what was asked of it."""

    def __init__(self, *there: tuple[str, Meta], lists: bool = True) -> None:
        self.there = {(plural, found.name): found for plural, found in there}
        self.lists = lists
        self.asked: list[tuple[str, str]] = []

    async def get(self, resource: Resource, name: str) -> Meta | None:
        self.asked.append((resource.plural, name))
        return self.there.get((resource.plural, name))

    async def list(self, resource: Resource) -> Sequence[Meta]:
        self.asked.append((resource.plural, "*"))
        return [one for (plural, _), one in self.there.items() if plural == resource.plural] if self.lists else []


def judged(kind: Kind, worker: Worker, *pods: Sequence[OwnerReference]) -> list[bool]:
    owners = PodOwners(kind, UID, get=worker.get, list_=worker.list)
    return asyncio.run(owners.are_of_mirror(pods))


def meta(name: str, uid: str, owners: list[OwnerReference]) -> Meta:
    return Meta(name=name, uid=uid, owner_references=owners)


@pytest.mark.parametrize(
    ("owners", "is_so"),
    [
        pytest.param([owner()], True, id="the mirror"),
        pytest.param([], False, id="nobody"),
        pytest.param([owner(uid="other")], False, id="another object"),
        pytest.param([owner(controller=False)], False, id="an owner that is no controller"),
        pytest.param([owner("ReplicaSet")], False, id="another kind"),
        pytest.param([owner(controller=False), owner(uid="other")], False, id="owned, but controlled by another"),
        pytest.param([owner(), owner(uid="other")], False, id="two controllers, which no API server stores"),
    ],
)
def test_a_pod_of_a_job_is_controlled_by_it(owners: list[OwnerReference], is_so: bool) -> None:
    """One controller with this uid; nothing is asked for."""
    worker = Worker()
    assert judged(JOB, worker, owners) == [is_so]
    assert worker.asked == []


CHAINS = {
    "its Job": (meta("train-main-0", "child", of_job_set()), True),
    "a Job of another JobSet": (meta("train-main-0", "child", of_job_set(uid="other")), False),
    "a Job of nobody": (meta("train-main-0", "child", []), False),
    "a namesake of its Job": (meta("train-main-0", "another", of_job_set()), False),
    "a Job whose JobSet is no controller": (meta("train-main-0", "child", of_job_set(controller=False)), False),
    "a Job of a Job": (meta("train-main-0", "child", of_job("child")), False),
}


@pytest.mark.parametrize(("job", "is_so"), CHAINS.values(), ids=CHAINS)
def test_a_pod_of_a_job_set_is_its_jobs(job: Meta, is_so: bool) -> None:
    """The Job between them is looked at, whatever the pod's labels say."""
    assert judged(built_in_kind("JobSet"), Worker(("jobs", job)), of_job()) == [is_so]


def test_an_owner_of_a_kind_that_may_not_be_there_is_not_looked_at() -> None:
    """Nor one that is gone is anybody's."""
    worker = Worker()
    replica_set = [owner("ReplicaSet", "apps/v1", uid="child")]
    other_job = [owner("Job", "batch.volcano.sh/v1alpha1", uid="child")]
    assert judged(built_in_kind("JobSet"), worker, replica_set, other_job, of_job()) == [False] * 3
    assert worker.asked == [("jobs", "train-main-0")]


def test_a_chain_may_have_several_links_and_each_is_asked_for_once() -> None:
    """Of a TrainJob: JobSet, Job, pod."""
    train = [owner("TrainJob", "trainer.kubeflow.org/v1alpha1")]
    worker = Worker(
        ("jobs", meta("train-main-0", "child", of_job_set(uid="set"))), ("jobsets", meta("train", "set", train))
    )
    assert judged(built_in_kind("TrainJob"), worker, of_job(), of_job(), of_job_set(uid="set")) == [True] * 3
    assert sorted(worker.asked) == [("jobs", "train-main-0"), ("jobsets", "train")]
    assert judged(built_in_kind("JobSet"), worker, of_job()) == [False]


def test_a_pod_of_a_wrapped_ray_job_is_the_app_wrappers() -> None:
    """AppWrapper, RayJob, RayCluster, pod; and the Job that submits it."""
    wrapper = [owner("AppWrapper", "workload.codeflare.dev/v1beta2")]
    ray_job = [owner("RayJob", "ray.io/v1", name="ray", uid="ray")]
    ray_cluster = [owner("RayCluster", "ray.io/v1", name="ray-x", uid="cluster")]
    worker = Worker(
        ("rayclusters", meta("ray-x", "cluster", ray_job)),
        ("rayjobs", meta("ray", "ray", wrapper)),
        ("jobs", meta("ray", "submitter", ray_job)),
    )
    pods = (ray_cluster, of_job(uid="submitter", name="ray"), ray_job)
    assert judged(built_in_kind("AppWrapper"), worker, *pods) == [True] * 3


def test_a_ray_job_has_pods_of_its_cluster_and_of_its_job() -> None:
    """The one that submits it is a batch/v1 Job's, whoever else has a Job of that name."""
    ray = [owner("RayJob", "ray.io/v1")]
    of_cluster = [owner("RayCluster", "ray.io/v1", uid="cluster", name="train-x7")]
    clusters = ("rayclusters", meta("train-x7", "cluster", ray))
    worker = Worker(clusters, ("jobs", meta("train-main-0", "child", ray)))
    assert judged(built_in_kind("RayJob"), worker, of_cluster, of_job()) == [True, True]
    others = Worker(clusters, ("jobs", meta("train-main-0", "child", [owner("RayJob", "ray.io/v1", uid="other")])))
    assert judged(built_in_kind("RayJob"), others, of_cluster, of_job()) == [True, False]


@pytest.mark.parametrize("lists", [True, False])
def test_many_owners_are_read_at_once(lists: bool) -> None:
    """By the labels of the pods; where that tells nothing each is asked for."""
    many = range(pod_owners.ASKED_SINGLY + 1)
    worker = Worker(*(("jobs", meta(f"j{one}", f"u{one}", of_job_set())) for one in many), lists=lists)
    pods = [of_job(f"u{one}", f"j{one}") for one in many]
    assert judged(built_in_kind("JobSet"), worker, *pods, *pods) == [True] * 2 * len(many)
    assert len(worker.asked) == (1 if lists else 1 + len(many))


def test_what_is_asked_for_is_bounded() -> None:
    """Pods of more owners are not shown, rather than a worker be flooded."""
    many = range(pod_owners.MOST_ASKED_FOR + 1)
    worker = Worker(*(("jobs", meta(f"j{one}", f"u{one}", of_job_set())) for one in many), lists=False)
    found = judged(built_in_kind("JobSet"), worker, *(of_job(f"u{one}", f"j{one}") for one in many))
    assert found == [True] * pod_owners.MOST_ASKED_FOR + [False]


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"metadata": 7}', b'{"items": 7}'])
def test_whatever_a_worker_sends_is_understood_or_nothing(raw: bytes) -> None:
    """Types are not trusted."""
    assert read_metadata(raw) is None
    assert read_metadata_list(raw) == []


def test_metadata_is_read() -> None:
    """Of an object, and of a list."""
    one = {"metadata": {"name": "a", "uid": "u"}}
    assert [found.uid for found in read_metadata_list(msgspec.json.encode({"items": [one]}))] == ["u"]
    assert JOBS in built_in_kind("MPIJob").pod_owners


def between(kind: Kind, worker: Worker, *pods: Sequence[OwnerReference], without_pods: bool = True) -> dict[str, str]:
    owners = PodOwners(kind, UID, get=worker.get, list_=worker.list)
    return asyncio.run(owners.between(pods, without_pods=without_pods))


def test_what_is_between_is_found_with_pods_and_without() -> None:
    """A child Job that may create none is one of those that have the labels of pods; each is judged by its owners."""
    mine, other = meta("train-main-0", "child", of_job_set()), meta("theirs", "foreign", of_job_set(uid="other"))
    worker = Worker(("jobs", mine), ("jobs", other), ("jobs", meta("own", "stranger", [])))
    kind = built_in_kind("JobSet")
    assert between(kind, worker) == {"child": "Job"}
    assert worker.asked == [("jobs", "*")]
    assert between(kind, worker, of_job()) == {"child": "Job"}
    assert between(kind, worker, of_job(), without_pods=False) == {"child": "Job"}
    assert between(kind, worker, of_job(uid="foreign", name="theirs"), without_pods=False) == {}
    assert between(JOB, worker, [owner()]) == {}


def test_the_whole_chain_is_between() -> None:
    """A TrainJob's JobSet and Jobs; where they may not be listed, those of pods."""
    train = [owner("TrainJob", "trainer.kubeflow.org/v1alpha1")]
    there = (("jobs", meta("train-main-0", "child", of_job_set(uid="set"))), ("jobsets", meta("train", "set", train)))
    kind = built_in_kind("TrainJob")
    assert between(kind, Worker(*there)) == {"child": "Job", "set": "JobSet"}
    assert between(kind, Worker(*there, lists=False)) == {}
    assert between(kind, Worker(*there, lists=False), of_job()) == {"child": "Job", "set": "JobSet"}


def test_of_what_is_between_so_many_are_looked_at() -> None:
    """A worker may send any number."""
    many = range(pod_owners.MOST_MADE + 10)
    worker = Worker(*(("jobs", meta(f"j{one}", f"u{one}", of_job_set())) for one in many))
    assert len(between(built_in_kind("JobSet"), worker)) == pod_owners.MOST_MADE
