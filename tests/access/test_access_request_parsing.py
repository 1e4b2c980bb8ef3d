"""Requests as they come, and what is understood of them."""

from __future__ import annotations

import pytest
from doubles.drills import DRILL, KINDS
from hypothesis import given
from hypothesis import strategies as st

from mirror.access.answers import StatusError
from mirror.access.bounds import Bounds
from mirror.access.request_parsing import Asked, LogOptions, Page, Question, read
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import BUILT_IN, Kinds
from mirror.kinds.registry import JOB as KIND
from mirror.settings.kinds import KindEntry

BOUNDS = Bounds(tail_lines=1000, jobs=500, log_bytes=10_000)
JOB = "/v1/namespaces/team/jobs/train"


def understood(target: str, method: str = "GET", kinds: Kinds = BUILT_IN) -> Question:
    return read(Asked(method, target), kinds, BOUNDS)


@pytest.mark.parametrize(
    ("target", "question"),
    [
        ("/v1/jobs", Question(KIND)),
        ("/v1/jobs.batch", Question(KIND)),
        ("/v1/namespaces/team/jobs.batch/train/log", Question(KIND, "team", "train", "log")),
        ("/v1/namespaces/team/jobs?limit=5", Question(KIND, "team", page=Page(5))),
        (JOB, Question(KIND, "team", "train")),
        (f"{JOB}/pods?index=3&continue=abc", Question(KIND, "team", "train", "pods", Page(None, "abc", 3))),
        (f"{JOB}/events", Question(KIND, "team", "train", "events")),
        (f"{JOB}/diff", Question(KIND, "team", "train", "diff")),
        (f"{JOB}/log", Question(KIND, "team", "train", "log")),
        (
            f"{JOB}/log?pod=train-x&container=main&follow=1&tailLines=0&sinceSeconds=5&timestamps=true&previous=false",
            Question(
                KIND,
                "team",
                "train",
                "log",
                log=LogOptions("train-x", "main", follow=True, timestamps=True, tail_lines=0, since_seconds=5),
            ),
        ),
    ],
)
def test_what_is_wanted_is_in_path_and_query(target: str, question: Question) -> None:
    """Every page of docs/access.md."""
    assert understood(target) == question


@pytest.mark.parametrize(
    ("target", "code", "told"),
    [
        ("/v1/other", 404, "no such page"),
        ("/v1/jobs.batch.volcano.sh", 404, "no such page.*resources here: jobs.batch"),
        ("/v1/Jobs", 404, "no such page"),
        ("/v1/namespaces/team/drills.example.com/train", 404, "no such page"),
        ("/v1/namespaces/team/jobs/train/exec", 404, "no such page"),
        ("/v1/namespaces/Team/jobs", 400, "namespace"),
        ("/v1/namespaces/team/jobs/..%2f..%2fsecrets", 400, "name"),
        ("/v1/namespaces/team/jobs/%ff", 400, "UTF-8"),
        (f"{JOB}/log?pod=%ff", 400, "UTF-8"),
        (f"{JOB}/log?pod=../../x", 400, "pod"),
        (f"{JOB}/log?container=a%0ab", 400, "container"),
        (f"{JOB}/log?tailLines=1001", 400, "from 0 to 1000"),
        (f"{JOB}/log?tailLines=-1", 400, "tailLines"),
        (f"{JOB}/log?tailLines=%D9%A1", 400, "tailLines"),
        (f"{JOB}/log?sinceSeconds=0", 400, "sinceSeconds"),
        (f"{JOB}/log?sinceTime=yesterday", 400, "sinceTime"),
        (f"{JOB}/log?sinceTime=2026-01-31T12:00:00Z&sinceSeconds=1", 400, "at most one"),
        (f"{JOB}/log?follow=maybe", 400, "follow"),
        (f"{JOB}/log?allContainers=true&follow=true", 400, "one container at a time"),
        (f"{JOB}/log?allContainers=true&container=a", 400, "use one of them"),
        (f"{JOB}/log?folow=true", 400, "no parameter 'folow'"),
        (f"{JOB}/log?pod=a&pod=b", 400, "twice"),
        (f"{JOB}/log?" + "&".join(f"a{n}=1" for n in range(40)), 400, "too many"),
        (f"{JOB}/log?pod=" + "a" * 9000, 400, "too long"),
        (f"{JOB}/pods?continue=%00", 400, "continue"),
        (f"{JOB}/diff?limit=1", 400, "no parameter"),
    ],
)
def test_what_is_wrong_is_said(target: str, code: int, told: str) -> None:
    """Nothing is guessed, cut or ignored."""
    with pytest.raises(StatusError, match=told) as refused:
        understood(target)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("method", "target"),
    [("POST", JOB), ("DELETE", JOB), ("HEAD", JOB), ("GET", "/v1/diff"), ("GET", "/v1/place"), ("OPTIONS", "/v1/jobs")],
)
def test_other_methods_are_refused(method: str, target: str) -> None:
    """Nothing is written here."""
    with pytest.raises(StatusError) as refused:
        understood(target, method)
    assert refused.value.code == 405


def test_a_path_names_the_kind_by_its_resource() -> None:
    """With its group wherever the plural alone could mean another kind; Jobs keep the paths that they had."""
    for resource in ("drills", "drills.example.com"):
        found = understood(f"/v1/namespaces/team/{resource}/train/log?container=main", kinds=KINDS)
        assert (found.kind, found.name, found.log.container) == (DRILL, "train", "main")
    assert understood(JOB, kinds=KINDS) == Question(KIND, "team", "train")
    with pytest.raises(StatusError, match=r"resources here: jobs\.batch, drills\.example\.com"):
        understood("/v1/others", kinds=KINDS)


@pytest.mark.parametrize("what", ["pods", "events", "log"])
def test_a_kind_whose_pods_have_no_index_is_not_asked_for_one(what: str) -> None:
    """Rather than all of them, or none."""
    with pytest.raises(StatusError, match="index: pods of a Drill have none") as refused:
        understood(f"/v1/namespaces/team/drills/train/{what}?index=1", kinds=KINDS)
    assert refused.value.code == 400


@given(path=st.text(max_size=60), query=st.text(max_size=200))
def test_whatever_comes_is_understood_or_refused(path: str, query: str) -> None:
    """No input is an error of ours."""
    for target in (f"/v1/{path}?{query}", f"{JOB}/log?{query}", f"{JOB}/pods?{query}", f"{JOB}{path}"):
        assert _code(target) in (200, 400, 404)


def _code(target: str) -> int:
    try:
        understood(target)
    except StatusError as refused:
        return refused.code
    return 200


@pytest.mark.parametrize("what", ["pods", "log", "events"])
def test_a_role_is_asked_for_by_name_or_name_and_number(what: str) -> None:
    """Where the kind's pods have roles; anything else would be part of a selector."""
    kinds = kinds_of([KindEntry(kind="JobSet")])
    path = f"/v1/namespaces/team/jobsets.jobset.x-k8s.io/train/{what}"
    asked = understood(f"{path}?role=workers/1", kinds=kinds)

    assert (asked.log.role or asked.page.role) == "workers/1"
    for role in ("a,b", "a%20b", "a/b"):
        with pytest.raises(StatusError, match="role: not a role"):
            understood(f"{path}?role={role}", kinds=kinds)
    with pytest.raises(StatusError, match="role: the pods of this kind have none"):
        understood(f"{JOB}/{what}?role=workers")
