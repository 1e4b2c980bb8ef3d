"""Whose an object is that makes pods and is no mirror: the chain of controllers from it to one that is known."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.objects import Meta, OwnerReference
from mirror.kube.resources import Resource
from mirror.settings.kinds import KindEntry
from mirror.workers.pod_events import About
from mirror.workers.pod_makers import PodMakers

KINDS = kinds_of([KindEntry(kind=kind) for kind in ("JobSet", "TrainJob", "AppWrapper", "MPIJob")])
JOB_SET, TRAIN_JOB, WRAPPER = (
    "jobset.x-k8s.io/v1alpha2",
    "trainer.kubeflow.org/v1alpha1",
    "workload.codeflare.dev/v1beta2",
)


def owner(kind: str, api: str, uid: str, **changes: Any) -> OwnerReference:
    values = {"name": "train", "controller": True} | changes
    return OwnerReference(api_version=api, kind=kind, uid=uid, **values)


def meta(uid: str, *owners: OwnerReference) -> Meta:
    return Meta(name="train", uid=uid, owner_references=list(owners))


OF_SET = owner("JobSet", JOB_SET, "set")


def source_of(
    there: dict[str, Meta], *mirrors: tuple[str, str], about: About | None = None
) -> tuple[str | None, list[tuple[str, str]]]:
    """Whose ``about`` is, by what is there (by plural) and which mirrors are known; and what was asked for."""
    known = {(kind, "team", "train", uid): f"source of {uid}" for kind, uid in mirrors}
    makers, asked = PodMakers(KINDS, lambda *mirror: known.get(mirror)), list[tuple[str, str]]()

    async def get(resource: Resource, namespace: str, name: str) -> Meta | None:
        asked.append((resource.plural, f"{namespace}/{name}"))
        return there.get(resource.plural)

    return asyncio.run(makers.source_of(about or About("Job", "team", "train", "child", "batch/v1"), get)), asked


CHILD = {"jobs": meta("child", OF_SET)}
BETWEEN = CHILD | {"jobsets": meta("set", owner("TrainJob", TRAIN_JOB, "trained"))}


@pytest.mark.parametrize(
    ("there", "mirror", "is_so"),
    [
        pytest.param(CHILD, ("JobSet", "set"), True, id="a child Job"),
        pytest.param(CHILD, ("JobSet", "another"), False, id="one of another JobSet"),
        pytest.param({}, ("JobSet", "set"), False, id="one that is gone"),
        pytest.param({"jobs": meta("new", OF_SET)}, ("JobSet", "set"), False, id="a namesake"),
        pytest.param({"jobs": meta("child")}, ("JobSet", "set"), False, id="a Job of nobody"),
        pytest.param({"jobs": meta("child", OF_SET, OF_SET)}, ("JobSet", "set"), False, id="two controllers"),
        pytest.param(BETWEEN, ("TrainJob", "trained"), True, id="a chain of two"),
        pytest.param(BETWEEN, ("TrainJob", "another"), False, id="its end is unknown"),
        pytest.param(
            {"jobs": meta("child", owner("ReplicaSet", "apps/v1", "set"))}, ("JobSet", "set"), False,
            id="through what no kind makes",
        ),
        pytest.param(
            {"jobs": meta("child", owner("JobSet", "example.com/v1", "set"))}, ("JobSet", "set"), False,
            id="another group's JobSet",
        ),
        pytest.param(
            CHILD | {"jobsets": meta("set", owner("MPIJob", "kubeflow.org/v2beta1", "mpi"))}, ("MPIJob", "mpi"), False,
            id="an MPIJob has no JobSets",
        ),
    ],
)  # fmt: skip
def test_whose_a_child_is(there: dict[str, Meta], mirror: tuple[str, str], is_so: bool) -> None:
    """Each controller by its uid, through what the mirror's own kind lets stand there."""
    found, _ = source_of(there, mirror)
    assert found == (f"source of {mirror[1]}" if is_so else None)


def test_what_is_between_is_asked_for_once_and_a_chain_ends() -> None:
    """Also where owners go round in a circle, which no API server prevents."""
    _, asked = source_of(BETWEEN, ("TrainJob", "trained"))
    assert asked == [("jobs", "team/train"), ("jobsets", "team/train")]
    circle = {"jobs": meta("child", owner("Job", "batch/v1", "child"))}
    found, asked = source_of(circle, ("JobSet", "set"))
    assert found is None
    assert len(asked) <= max(len(kind.pod_owners) for kind in KINDS)


@pytest.mark.parametrize(
    ("about", "plural"),
    [
        pytest.param(About("Job", "team", "train", "u", "batch/v1"), "jobs", id="a Job"),
        pytest.param(About("Job", "team", "train", "u"), "jobs", id="an event that does not say of which group"),
        pytest.param(About("JobSet", "team", "train", "u", JOB_SET), "jobsets", id="a JobSet, of a TrainJob perhaps"),
        pytest.param(About("Job", "team", "train", "u", "batch.volcano.sh/v1alpha1"), "", id="another Job"),
        pytest.param(About("ReplicaSet", "team", "train", "u", "apps/v1"), "", id="what no kind has"),
        pytest.param(About("Job", "", "train", "u", "batch/v1"), "", id="without a namespace"),
    ],
)
def test_what_may_make_pods(about: About, plural: str) -> None:
    """Of all kinds together; nothing where Jobs alone are mirrored."""
    found = PodMakers(KINDS, lambda *_: None).resource_of(about)
    assert (found.plural if found is not None else "") == plural
    assert PodMakers(kinds_of([]), lambda *_: None).resource_of(about) is None
