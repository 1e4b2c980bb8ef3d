"""Names of failure policy rules in the reasons of Jobs that they fail (RN1–RN5, KEP-4443, D17)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from syncs import (
    FAIL_42,
    FAIL_DISRUPTED,
    IGNORE_1,
    Json,
    condition,
    pods,
    policy,
    running,
    snapshot,
    spec,
    sync,
)

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide.values import Pod
from mirror.model import names

POLICY = [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")]


NAMED = policy(IGNORE_1, FAIL_42 | {"name": "OutOfMemory"}, FAIL_DISRUPTED)


def annotated(text: str) -> dict[str, Any]:
    return {"annotations": {names.RULE_NAMES: text}}


@pytest.mark.parametrize(
    ("of", "found", "more", "reason"),
    [
        pytest.param(NAMED, pods(1, "Failed", code=42), {}, "PodFailurePolicy_OutOfMemory", id="RN2: named"),
        pytest.param(
            NAMED,
            pods(1, "Failed", code=3, has={"DisruptionTarget": "True"}),
            {},
            "PodFailurePolicy_2",
            id="RN1: index",
        ),
        pytest.param(
            NAMED,
            pods(1, "Failed", code=42),
            {"gates": FeatureGates(pod_failure_policy_name=False)},
            "PodFailurePolicy",
            id="RN4: gate off",
        ),
        pytest.param(
            policy(FAIL_42), pods(1, "Failed", code=42), {}, "PodFailurePolicy", id="D17: no names, no suffix"
        ),
        pytest.param(
            policy(FAIL_42),
            pods(1, "Failed", code=42),
            {"server_knows_rule_names": True},
            "PodFailurePolicy_0",
            id="D17: the index where the server knows names",
        ),
        pytest.param(
            policy(FAIL_42),
            pods(1, "Failed", code=42),
            annotated('{"0": "Oom"}'),
            "PodFailurePolicy_Oom",
            id="D17: by annotation",
        ),
        pytest.param(
            policy(FAIL_42), pods(1, "Failed", code=42), annotated("{}"), "PodFailurePolicy_0", id="D17: an empty map"
        ),
        pytest.param(
            policy(FAIL_42),
            pods(1, "Failed", code=42),
            {"gates": FeatureGates(pod_failure_policy_name=False), **annotated('{"0": "Oom"}')},
            "PodFailurePolicy",
            id="RN4: gate off, annotation",
        ),
        pytest.param(
            policy(FAIL_42, FAIL_DISRUPTED),
            pods(1, "Failed", code=42),
            annotated('{"0": "0"}'),
            "PodFailurePolicy_0",
            id="RN3: its own index is allowed",
        ),
    ],
)
def test_reason_by_rule_name(of: Json, found: list[Pod], more: dict[str, Any], reason: str) -> None:
    """RN1, RN2, RN4: on the interim and the final condition, in the event and for the metric."""
    whole = sync(snapshot(spec(**of), found, status=running(), **more))
    assert [found_reason for _, found_reason in whole.true_conditions] == [reason, reason]
    assert (whole.events, whole.settled.reason) == ([reason], reason)


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        json.dumps({"0": 1}),
        json.dumps({"x": "A"}),
        json.dumps({"7": "A"}),
        json.dumps({"00": "A"}),
        json.dumps({"0": ""}),
        json.dumps({"0": "a b"}),
        json.dumps({"0": "ends-with,"}),
        json.dumps({"0": "A" * 112}),
        json.dumps({"0": "A", "1": "A"}),
        json.dumps({"0": "1"}),
    ],
)
def test_names_that_cannot_be_used_are_told_and_left_out(text: str) -> None:
    """RN3, RN5, D17: the Job fails with the plain reason."""
    found = snapshot(spec(**policy(FAIL_42, FAIL_DISRUPTED)), pods(1, "Failed", code=42), **annotated(text))
    whole = sync(found)
    assert whole.true_conditions == POLICY
    (event,) = whole.tracking.events
    assert (event.type, event.reason) == ("Warning", "InvalidRuleNames")
    assert event.message.startswith(f"annotation {names.RULE_NAMES} ")


def test_a_stored_suffix_stays_when_the_gate_goes_off() -> None:
    """RN4."""
    stored = condition("FailureTarget", reason="PodFailurePolicy_Oom", message="m")
    gates = FeatureGates(pod_failure_policy_name=False)
    whole = sync(snapshot(spec(**policy(FAIL_42)), status=running(conditions=[stored]), gates=gates))
    assert whole.true_conditions[-1] == ("Failed", "PodFailurePolicy_Oom")
