"""Which new Jobs the webhook claims, and how (D16)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import Body, as_object, job
from webhook_asking import after, question

from mirror.kinds.base import is_held
from mirror.kinds.registry import JOB
from mirror.model import names
from mirror.webhook.mutating import mutate

OURS = "example.com/ours"
HELD = {names.HELD: "true"}


def users(**changes: Any) -> Body:
    return job(managed_by=None, **changes)


def claimed(body: Body, old: Body | None = None) -> Body:
    return after(body, mutate(question(body, old), OURS))


@pytest.mark.parametrize(
    "body",
    [
        users(),
        users(suspend=False),
        users(suspend=None),
        users(annotations={"a": "b"}, labels={"c": "d"}),
        {**users(), "metadata": {"generateName": "train-", "namespace": "default"}},
    ],
)
def test_a_users_job_is_ours_and_held(body: Body) -> None:
    """Our value, suspended, marked; all else is as it was."""
    found = claimed(body)
    seen = as_object(found)
    assert JOB.managed_by(seen) == OURS
    assert is_held(JOB, seen)
    assert found["spec"] == body["spec"] | {"managedBy": OURS, "suspend": True}
    before = body["metadata"].get("annotations") or {}
    assert found["metadata"] == body["metadata"] | {"annotations": before | HELD}


def test_a_users_own_suspension_stays_the_users() -> None:
    """It is ours, and nobody but the user ends its suspension: also where a mark was copied with it."""
    for marks in ({}, HELD):
        found = claimed(users(suspend=True, annotations=marks))
        assert found["spec"] == users(suspend=True)["spec"] | {"managedBy": OURS}
        assert names.HELD not in found["metadata"]["annotations"]


def test_notes_about_another_job_go() -> None:
    """A Job that was copied with its annotations."""
    notes = {
        names.ASSIGNED_WORKER: "east",
        names.MANAGER: "n",
        names.MIRROR_UID: "u",
        names.WAITING_BECAUSE: "no worker",
        "a": "b",
    }
    assert claimed(users(annotations=notes))["metadata"]["annotations"] == {"a": "b"} | HELD


def owner(**changes: Any) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "name": "o", "uid": "u", "controller": True} | changes


def owned(**changes: Any) -> Body:
    body = users()
    body["metadata"]["ownerReferences"] = [owner(**changes)]
    return body


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(job(managed_by=OURS), id="already ours: nothing is to be claimed, and not held again"),
        pytest.param(job(managed_by=names.BUILT_IN_MANAGED_BY), id="the built-in controller's, explicitly"),
        pytest.param(job(managed_by="kueue.x-k8s.io/multikueue"), id="another controller's"),
        pytest.param(users(labels={"kueue.x-k8s.io/queue-name": "q"}), id="another queue's"),
        pytest.param(users(labels={names.ORIGIN: "o", names.SOURCE_UID: "u"}), id="a mirror"),
        pytest.param(owned(), id="of an owner that is mirrored"),
        pytest.param({**users(), "spec": None}, id="no Job at all"),
    ],
)
def test_a_job_is_left_as_it_is(body: Body) -> None:
    """D16: nothing of it is changed."""
    assert claimed(body) == body


@pytest.mark.parametrize("changes", [{"kind": "CronJob"}, {"controller": False}, {"apiVersion": "example.com/v1"}])
def test_jobs_of_other_owners_are_claimed(changes: dict[str, Any]) -> None:
    """A CronJob's, for instance."""
    assert claimed(owned(**changes))["spec"]["managedBy"] == OURS


def test_a_namespace_that_nobody_looks_at_is_left_alone() -> None:
    """Where the setting ``namespaces`` lacks it, a Job would be held for ever. The user is told."""
    verdict = mutate(question(users()), OURS, namespaces=("team-a",))
    assert verdict.operations == ()
    assert "does not look at this namespace" in verdict.warnings[0]
    assert mutate(question(users()), OURS, namespaces=("team-a", "default")).operations
    assert mutate(question(job()), OURS, namespaces=("team-a",)).warnings == ()


def test_asking_again_changes_nothing() -> None:
    """A server may call twice."""
    once = claimed(users())
    assert claimed(once) == once


def test_a_job_that_exists_is_never_claimed() -> None:
    """Only creating counts, whatever the configuration's rules are."""
    body = users()
    assert claimed(body, old=body) == body
