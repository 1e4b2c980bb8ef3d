"""Random histories of random Jobs: whatever happens, each status is accepted and each pod counts once (Q3, Q4)."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeAlias

import pytest
from doubles.examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from syncs import Json, indexed, spec
from toycluster import NO_WAITING, Crashed, Refused, Toy, choose

from mirror.batch import conditions
from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide.values import Constants

Step: TypeAlias = tuple[str, int]
HISTORY = examples(100, suppress_health_check=[HealthCheck.too_slow])

IGNORE_DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
FAIL_42 = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
COUNT_7 = {"action": "Count", "onExitCodes": {"operator": "In", "values": [7]}}
FAIL_INDEX_13 = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [13]}}
SUCCESS_POLICIES = (
    {"rules": [{"succeededIndexes": "0"}]},
    {"rules": [{"succeededIndexes": "1-2", "succeededCount": 1}]},
    {"rules": [{"succeededCount": 2}]},
)

ENDINGS = ("succeed", "succeed", "fail", "fail-42", "fail-13", "disrupt", "end", "end-well")
CHANGES = ("ready", "delete", "evict", "suspend", "resume", "scale", "parallelism", "restart", "wait")
STEPS = st.tuples(st.sampled_from((*["sync"] * 5, "blind", *ENDINGS, *CHANGES)), st.integers(0, 7))


@st.composite
def specs(draw: st.DrawFn) -> Json:
    """Any kind of Job that the API takes."""
    is_indexed = draw(st.booleans())
    number = draw(st.integers(0, 6))
    fields: Json = {"backoffLimit": draw(st.sampled_from((0, 1, 2, 6))), "suspend": draw(st.booleans())}
    fields["podReplacementPolicy"] = draw(st.sampled_from(("Failed", "TerminatingOrFailed")))
    fields["restartPolicy"] = draw(st.sampled_from(("Never", "OnFailure")))
    fields["activeDeadlineSeconds"] = draw(st.sampled_from((None, None, 30)))
    rules = draw(st.lists(st.sampled_from((IGNORE_DISRUPTED, FAIL_42, COUNT_7)), max_size=3))
    parallelism = draw(st.integers(0, 5))
    if is_indexed and draw(st.booleans()):
        fields["backoffLimitPerIndex"] = draw(st.integers(0, 2))
        fields["backoffLimit"] = draw(st.sampled_from((1, 2**31 - 1)))
        fields["maxFailedIndexes"] = draw(st.sampled_from((None, 1)))
        rules += draw(st.sampled_from(([], [FAIL_INDEX_13])))
    if rules:
        fields |= {"podFailurePolicy": {"rules": rules}, "podReplacementPolicy": "Failed", "restartPolicy": "Never"}
    if is_indexed:
        fields["successPolicy"] = draw(st.sampled_from((None, *SUCCESS_POLICIES)))
        return indexed(number, parallelism=draw(st.sampled_from((number, parallelism))), **fields)
    return spec(completions=draw(st.sampled_from((number, None))), parallelism=parallelism, **fields)


REQUESTS = st.sets(st.integers(1, 60), max_size=6)
"""By their number in a history."""


def switched(names: list[str]) -> FeatureGates:
    return FeatureGates(**dict.fromkeys(names, False))


GATES = st.lists(st.sampled_from(FeatureGates.__struct_fields__), max_size=2, unique=True).map(switched)


def happen(toy: Toy, step: Step) -> None:
    """Whatever users, kubelets and time do; syncs are the caller's."""
    kind, number = step
    active, terminating = choose(toy.active(), number), choose(toy.terminating(), number)
    if kind in ("succeed", "fail", "fail-42", "fail-13", "disrupt", "ready", "delete", "evict") and active is not None:
        if kind == "delete":
            toy.delete(active)
        elif kind == "evict":
            toy.evict(active)
        elif kind == "ready":
            toy.make_ready(active)
        elif kind == "succeed":
            toy.end(active, "Succeeded", 0)
        else:
            code = int(kind[5:] or 1) if kind != "disrupt" else 143
            toy.end(active, "Failed", code, has="DisruptionTarget" if kind == "disrupt" else "")
    elif kind in ("end", "end-well") and terminating is not None:
        toy.end(terminating, *(("Failed", 143) if kind == "end" else ("Succeeded", 0)))
    elif kind in ("suspend", "resume"):
        toy.spec = toy.spec | {"suspend": kind == "suspend"}
    elif kind == "scale" and toy.spec["completionMode"] == "Indexed":
        toy.spec = toy.spec | {"completions": number, "parallelism": number}
    elif kind == "parallelism":
        toy.spec = toy.spec | {"parallelism": number}
    elif kind == "wait":
        toy.wait(number * 5)


def run_to_the_end(toy: Toy) -> None:
    """Nobody disturbs it any more, and all pods end well."""
    toy.refused = ()
    toy.spec = toy.spec | {"suspend": False, "parallelism": max(1, toy.spec["parallelism"])}
    for _ in range(60):
        toy.settle()
        if toy.is_finished:
            return
        for pod in toy.active():
            toy.end(pod, "Succeeded", 0)
        for pod in toy.terminating():
            toy.end(pod, "Failed", 143)
        toy.wait(1)
    raise AssertionError(f"does not end: {toy.spec} {toy.status} {toy.pods}")


@pytest.mark.slow
@HISTORY
@given(specs(), GATES, st.lists(STEPS, max_size=40), REQUESTS, REQUESTS)
def test_every_status_is_accepted_and_every_pod_counts_once(
    of: Json, gates: FeatureGates, history: list[Step], refused: set[int], crashes: set[int]
) -> None:
    """With requests refused, crashes in the midst, and syncs before the pods that were asked for are seen."""
    toy = Toy(of, gates=gates)
    toy.refused, toy.crashes = refused, crashes
    for step in history:
        happen(toy, step)
        if step[0] in ("sync", "blind"):
            with suppress(Refused, Crashed):
                toy.sync(expectations_met=step[0] == "sync")
        if step[0] == "restart":
            toy.restart()
    run_to_the_end(toy)
    counts_what_it_tracked(toy)


def counts_what_it_tracked(toy: Toy) -> None:
    """The counters are those of the pods that the tracking let go (T4, T5)."""
    status = toy.status
    if toy.spec["completionMode"] == "NonIndexed":
        assert status.get("succeeded", 0) == toy.tracked_successes
        if "podFailurePolicy" not in toy.spec:
            assert status.get("failed", 0) == toy.tracked_failures
        wanted = toy.spec.get("completions", 1)
        if conditions.is_true(status["conditions"], conditions.COMPLETE):
            assert status.get("succeeded", 0) >= wanted
    assert status.get("succeeded", 0) <= toy.tracked_successes
    assert status.get("failed", 0) <= toy.tracked_failures
    assert status["uncountedTerminatedPods"] == {}
    assert not [pod for pod in toy.pods if pod.has_finalizer]


@HISTORY
@given(specs(), st.lists(STEPS.filter(lambda step: step[0] not in ("blind", "restart")), max_size=25), REQUESTS)
def test_a_crash_at_any_request_changes_nothing_in_the_end(of: Json, history: list[Step], crashes: set[int]) -> None:
    """Between any two requests: what is stored and what pods say is enough to go on from (Q4).

    Only where users delete pods by hand can nobody tell afterwards who deleted which; a drain can be seen.
    """
    history = [("evict" if kind == "delete" else kind, number) for kind, number in history]
    calm, crashing = Toy(of), Toy(of)
    crashing.crashes = crashes
    for step in [("sync", 0), *history]:
        for toy in (calm, crashing):
            happen(toy, step)
            if step[0] == "sync":
                toy.settle()
        assert calm.outcome == crashing.outcome
    for toy in (calm, crashing):
        run_to_the_end(toy)
    assert calm.outcome == crashing.outcome


@HISTORY
@given(specs(), st.lists(STEPS, max_size=25))
def test_a_job_that_is_deleted_lets_all_its_pods_go(of: Json, history: list[Step]) -> None:
    """A12: nothing is created any more, and no finalizer is left."""
    toy = Toy(of, constants=Constants(max_uncounted_pods=NO_WAITING.max_uncounted_pods))
    for step in history:
        happen(toy, step)
        if step[0] == "sync":
            toy.sync()
    toy.is_deleting = True
    if not toy.is_finished:
        created = len(toy.pods)
        toy.settle()
        assert len(toy.pods) <= created
        assert not [pod for pod in toy.pods if pod.has_finalizer]
