"""Rule names travel: out with the mirror, back as the reason of a failed source (KEP-4443, D17)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from doubles.apiserver import ApiServer
from doubles.clock import FixedClock
from doubles.jobs import as_object, condition, job

from mirror.kinds.base import MirrorTransform
from mirror.kinds.batch_job import rule_names
from mirror.kinds.batch_job.body import mirror_body
from mirror.kinds.batch_job.changes import changes
from mirror.model import names

AT = "2026-03-01T12:00:00Z"
TRANSFORM = MirrorTransform("origin-1")
MESSAGE = "Container main for pod default/p failed with exit code 42 matching FailJob rule at index 1"
ON = {"onPodConditions": [{"type": "DisruptionTarget"}]}
POLICY = {"rules": [{"action": "Ignore", **ON}, {"action": "FailJob", **ON}]}

Json = dict[str, Any]


def source(text: str | None = '{"1":"OutOfMemory"}', **more: Any) -> Json:
    annotations = {} if text is None else {names.RULE_NAMES: text}
    return ApiServer("home", FixedClock(AT)).put("jobs", job(annotations=annotations, podFailurePolicy=POLICY, **more))


def mirror_of(stored: Json) -> Json:
    body = mirror_body(as_object(stored), namespace="default", transform=TRANSFORM)
    return ApiServer("east", FixedClock(AT)).put("jobs", copy.deepcopy(body))


def failed(reason: str = "PodFailurePolicy", message: str = MESSAGE) -> Json:
    return {"failed": 1, "conditions": [condition(kind, AT, reason=reason, message=message) for kind in ENDS]}


ENDS = ("FailureTarget", "Failed")


def reasons(mirror: Json, status: Any) -> list[str]:
    found: Any = rule_names.named(as_object(mirror), status)
    return [one["reason"] for one in found["conditions"]]


def test_a_mirror_carries_the_map() -> None:
    """The names, not whatever else the annotation's text may have been."""
    mirror = mirror_of(source(' { "1" : "OutOfMemory" } '))

    assert mirror["metadata"]["annotations"][names.RULE_NAMES] == '{"1":"OutOfMemory"}'


def test_names_in_the_spec_are_carried_for_workers_that_drop_the_field() -> None:
    """A management cluster may know the field where a worker does not."""
    stored = source(None)
    stored["spec"]["podFailurePolicy"] = {"rules": [POLICY["rules"][0], POLICY["rules"][1] | {"name": "OutOfMemory"}]}

    assert mirror_of(stored)["metadata"]["annotations"][names.RULE_NAMES] == '{"1":"OutOfMemory"}'


@pytest.mark.parametrize("text", [None, "junk", '{"7":"a"}'], ids=["no map", "junk", "no such rule"])
def test_a_mirror_without_names_has_no_map(text: str | None) -> None:
    """Only Jobs that give names get a suffix; one whose map broke after its placement runs without."""
    mirror = mirror_of(source(text))

    assert names.RULE_NAMES not in mirror["metadata"]["annotations"]
    assert reasons(mirror, failed()) == ["PodFailurePolicy"] * 2


@pytest.mark.parametrize("text", [None, "junk"], ids=["no map", "junk"])
def test_where_the_server_knows_names_a_mirror_without_gets_indexes(text: str | None) -> None:
    """D17, RN1: as a Job that runs there; the worker's server may know nothing of it."""
    stored = source(text)
    knowing = MirrorTransform("origin-1", server_knows_rule_names=True)
    body = mirror_body(as_object(stored), namespace="default", transform=knowing)
    mirror = ApiServer("east", FixedClock(AT)).put("jobs", copy.deepcopy(body))

    assert mirror["metadata"]["annotations"][names.RULE_NAMES] == "{}"
    assert reasons(mirror, failed()) == ["PodFailurePolicy_1"] * 2
    assert changes(as_object(stored), as_object(mirror), transform=knowing) is None


def test_where_the_server_knows_names_other_jobs_get_no_map() -> None:
    """Without failure policy there is no rule."""
    stored = ApiServer("home", FixedClock(AT)).put("jobs", job())
    body = mirror_body(
        as_object(stored), namespace="default", transform=MirrorTransform("o", server_knows_rule_names=True)
    )

    assert names.RULE_NAMES not in body["metadata"]["annotations"]


def test_the_map_is_fixed_when_the_mirror_is_made() -> None:
    """A later edit of the source changes nothing on the worker, and is no difference."""
    stored = source()
    mirror = mirror_of(stored)
    stored["metadata"]["annotations"][names.RULE_NAMES] = '{"1":"Another"}'

    assert changes(as_object(stored), as_object(mirror), transform=TRANSFORM) is None
    assert reasons(mirror, failed()) == ["PodFailurePolicy_OutOfMemory"] * 2


def test_the_reason_names_the_rule_that_the_message_ends_with() -> None:
    """On both conditions; an unnamed rule is known by its index."""
    mirror = mirror_of(source())

    assert reasons(mirror, failed()) == ["PodFailurePolicy_OutOfMemory"] * 2
    assert reasons(mirror, failed(message=MESSAGE[:-1] + "0")) == ["PodFailurePolicy_0"] * 2


def test_a_worker_that_names_the_rule_itself_is_believed() -> None:
    """Ours as the worker's controller, say."""
    assert reasons(mirror_of(source()), failed("PodFailurePolicy_OutOfMemory")) == ["PodFailurePolicy_OutOfMemory"] * 2


def test_other_ends_keep_their_reasons() -> None:
    """Only failures by a policy have rules."""
    mirror = mirror_of(source())
    status = {"conditions": [condition("Failed", AT, reason="BackoffLimitExceeded", message=MESSAGE)]}
    other = {"conditions": [condition("Complete", AT, reason="PodFailurePolicy", message=MESSAGE)]}

    assert reasons(mirror, status) == ["BackoffLimitExceeded"]
    assert reasons(mirror, other) == ["PodFailurePolicy"]


@pytest.mark.parametrize(
    "status",
    [{}, {"conditions": None}, {"conditions": "x"}, {"conditions": [None, 1, {"type": 3}]}],
    ids=["nothing", "null", "text", "junk in a list"],
)
def test_what_a_worker_makes_up_is_left_to_cleaning(status: Json) -> None:
    """Names are looked for where conditions are; whatever else there is passes (D7)."""
    assert rule_names.named(as_object(mirror_of(source())), status) == status


def test_a_worker_that_changed_the_map_gets_no_invalid_reason_in() -> None:
    """A map on the mirror is validated like one on a source."""
    mirror = mirror_of(source())
    mirror["metadata"]["annotations"][names.RULE_NAMES] = '{"1":"no reason at all"}'

    assert reasons(mirror, failed()) == ["PodFailurePolicy"] * 2


def test_a_condition_without_a_message_keeps_its_reason() -> None:
    """There is no rule to be found."""
    status = {"conditions": [{"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": 5}]}

    assert reasons(mirror_of(source()), status) == ["PodFailurePolicy"]
