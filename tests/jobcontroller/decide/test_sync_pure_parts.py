"""The small parts that decisions are made of: intervals, orders, delays, matches."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from syncs import ALL_GATES, LONG_AGO, NOW, Json, ago, pod, pods

from mirror.batch import indexes
from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide import backoff, deletion_order, indexed
from mirror.jobcontroller.decide.failure_policy import FailurePolicy
from mirror.jobcontroller.decide.success_policy import met_rule
from mirror.jobcontroller.decide.values import BackoffRecord, Constants, Container, Pod, PodCondition

INDEXES = st.sets(st.integers(0, 30), max_size=20)


@given(INDEXES, st.integers(-1, 31))
def test_an_index_is_found_in_intervals(found: set[int], index: int) -> None:
    assert indexed.has(indexed.of(found), index) is (index in found)


@given(INDEXES, st.integers(0, 30), st.integers(0, 30))
def test_the_lowest_missing_indexes_come_first(taken: set[int], completions: int, count: int) -> None:
    """A7."""
    missing = [index for index in range(completions) if index not in taken]
    assert indexed.lowest_missing(indexed.of(taken), completions, count) == missing[:count]


def test_missing_indexes_of_a_huge_job_cost_what_is_asked_for() -> None:
    taken = indexes.parse("0-99999,200000-300000", 10**9)
    assert indexed.lowest_missing(taken, 10**9, 3) == [100_000, 100_001, 100_002]


def test_of_each_index_the_best_pod_is_left() -> None:
    """A3: all others go, and those without an index of the Job."""
    pending, best, nowhere, beyond, alone = (
        pod("Pending", index=0),
        pod(index=0),
        pod(),
        pod(index=2),
        pod("Pending", index=1),
    )
    gone, left = indexed.superfluous([pending, best, nowhere, beyond, alone], 2)
    assert ([nowhere, beyond, pending], [best, alone]) == (gone, left)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(pod(node=""), pod("Pending"), id="no node goes first, whatever its phase"),
        pytest.param(pod("Pending"), pod("Unknown"), id="pending before unknown"),
        pytest.param(pod("Unknown"), pod(), id="unknown before running"),
        pytest.param(pod(), pod(is_ready=True), id="not ready before ready"),
        pytest.param(
            pod(conditions=(PodCondition("Ready", "True", NOW),)), pod(is_ready=True), id="ready for less time first"
        ),
        pytest.param(
            pod(conditions=(PodCondition("Ready", "True", None),)),
            pod(conditions=(PodCondition("Ready", "True", NOW),)),
            id="ready since nobody knows when goes first",
        ),
        pytest.param(pod(containers=(Container("c", restarts=2),)), pod(), id="more restarts first"),
        pytest.param(
            pod(containers=(Container("s", restarts=2, is_init=True, is_sidecar=True),)),
            pod(containers=(Container("i", restarts=9, is_init=True),)),
            id="then more restarts of sidecars; other init containers do not matter",
        ),
        pytest.param(pod(created=NOW), pod(), id="newer first"),
        pytest.param(pod(created=None), pod(created=NOW), id="of no known age first of all"),
    ],
)
def test_deletion_order(first: Pod, second: Pod) -> None:
    """A4."""
    assert deletion_order.in_order([second, first]) == [first, second]


@pytest.mark.parametrize(
    ("failures", "elapsed", "remaining"),
    [
        (0, 0, 0),
        (1, 0, 10),
        (1, 1, 9),
        (1, 10, 0),
        (1, 11, 0),
        (3, 0, 40),
        (6, 0, 320),
        (7, 0, 600),
        (8, 0, 600),
        (9, 0, 600),
        (10**6, 0, 600),
        (1, -5, 15),
    ],
)
def test_delay_after_failures(failures: int, elapsed: float, remaining: float) -> None:
    """B4: doubled with each failure, up to its limit, and counted from the last."""
    assert backoff.remaining_seconds(BackoffRecord(failures, ago(elapsed)), NOW, Constants()) == remaining


@pytest.mark.parametrize(
    ("before", "succeeded", "failed", "after"),
    [
        pytest.param(None, [], [], BackoffRecord(), id="nothing yet"),
        pytest.param(None, [], [1], BackoffRecord(1, ago(1)), id="a failure"),
        pytest.param(None, [], [3, 1], BackoffRecord(2, ago(1)), id="two failures: the later counts"),
        pytest.param(None, [1], [3, 2], BackoffRecord(), id="a success after both"),
        pytest.param(None, [3], [4, 2, 1], BackoffRecord(2, ago(1)), id="two after the success"),
        pytest.param(None, [2], [2], BackoffRecord(), id="at the same time: the success counts"),
        pytest.param(BackoffRecord(2, ago(60)), [], [1], BackoffRecord(3, ago(1)), id="one more"),
        pytest.param(BackoffRecord(2, ago(60)), [1], [], BackoffRecord(), id="a success forgets"),
        pytest.param(BackoffRecord(2, ago(60)), [], [], BackoffRecord(2, ago(60)), id="nothing new"),
    ],
)
def test_failures_since_the_last_success(
    before: BackoffRecord | None, succeeded: list[float], failed: list[float], after: BackoffRecord
) -> None:
    """B5."""
    good = [pod("Succeeded", finished=seconds) for seconds in succeeded]
    bad = [pod("Failed", finished=seconds) for seconds in failed]
    assert backoff.next_record(before, good, bad) == after


def ended(seconds: float, **more: bool) -> Container:
    return Container("c", exit_code=0, finished_at=ago(seconds), **more)


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        pytest.param(pod(containers=(ended(9), ended(5))), 5, id="all containers ended: the last"),
        pytest.param(
            pod(containers=(ended(9), Container("running")), deleted=ago(7)), 7, id="one still runs: the deletion"
        ),
        pytest.param(
            pod(containers=(ended(9), ended(3, is_init=True, is_sidecar=True))), 3, id="a sidecar counts, it ends last"
        ),
        pytest.param(pod(containers=(ended(9), ended(3, is_init=True))), 9, id="an init container does not"),
        pytest.param(pod(deleted=ago(-20), grace_seconds=30), 10, id="the deletion, without its grace"),
        pytest.param(
            pod(conditions=(PodCondition("Ready", "False", ago(4)),), deleted=NOW), 4, id="ready no more is earlier"
        ),
        pytest.param(pod(is_ready=True, deleted=ago(2)), 2, id="still ready says nothing"),
        pytest.param(pod(conditions=(PodCondition("Ready", "False"),), deleted=ago(2)), 2, id="no time, no word"),
        pytest.param(pod(), 3600, id="at the latest its creation"),
    ],
)
def test_finish_time(found: Pod, seconds: float) -> None:
    """B6."""
    assert NOW - backoff.finish_time(found) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("main", "sidecar", "seconds"),
    [
        pytest.param(9, 4, 4, id="both ended: the later"),
        pytest.param(4, 9, 4, id="both ended: the later, whichever it is"),
        pytest.param(None, 4, 4, id="a sidecar alone tells it, as upstream looks at them one after the other"),
        pytest.param(9, None, 3600, id="a sidecar goes on: nobody tells"),
    ],
)
def test_finish_time_with_a_sidecar(main: float | None, sidecar: float | None, seconds: float) -> None:
    """B6."""
    containers = (
        Container("main", finished_at=None if main is None else ago(main)),
        Container("log", is_init=True, is_sidecar=True, finished_at=None if sidecar is None else ago(sidecar)),
    )
    assert NOW - backoff.finish_time(pod("Failed", containers=containers)) == timedelta(seconds=seconds)


def test_a_pod_that_says_nothing_ended_long_ago() -> None:
    assert backoff.finish_time(pod(created=None)) < LONG_AGO


def on_codes(action: str, *values: int, operator: str = "In", container: str | None = None) -> Json:
    named = {} if container is None else {"containerName": container}
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **named}}


def on_condition(action: str, type_name: str, status: str = "True") -> Json:
    return {"action": action, "onPodConditions": [{"type": type_name, "status": status}]}


def with_init(code: int) -> Pod:
    return pod("Failed", containers=(Container("prepare", is_init=True, exit_code=code), Container("main")))


DISRUPTED = {"DisruptionTarget": "True"}
MESSAGE = "Container main for pod n/train failed with exit code 42 matching FailJob rule at index {}"


@pytest.mark.parametrize(
    ("rules", "found", "expected"),
    [
        pytest.param([], pod("Failed"), ("", "", True), id="no rules: counted"),
        pytest.param([on_codes("Fly", 1)], pod("Failed"), ("", "", True), id="F2: unknown action, codes"),
        pytest.param([on_condition("Fly", "X")], pod("Failed", has={"X": "True"}), ("", "", True), id="F2: conditions"),
        pytest.param(
            [on_codes("Ignore", 1, operator="Near"), on_codes("Count", 1)],
            pod("Failed"),
            ("Count", "", True),
            id="F2: a rule of an unknown operator is passed over",
        ),
        pytest.param([on_codes("Ignore", 1, 2)], pod("Failed"), ("Ignore", "", False), id="F3: ignored"),
        pytest.param([on_codes("Ignore", -5)], pod("Failed", code=-5), ("Ignore", "", False), id="negative code"),
        pytest.param([on_codes("Count", 1)], pod("Failed"), ("Count", "", True), id="F3: counted"),
        pytest.param([on_codes("FailIndex", 1)], pod("Failed"), ("FailIndex", "", True), id="F3: index failed"),
        pytest.param(
            [on_codes("FailJob", 42)],
            pod("Failed", code=42, name="train"),
            ("FailJob", MESSAGE.format(0), True),
            id="F4",
        ),
        pytest.param(
            [on_codes("Ignore", 1), on_codes("FailJob", 42)],
            pod("Failed", code=42, name="train"),
            ("FailJob", MESSAGE.format(1), True),
            id="F4: the second rule",
        ),
        pytest.param(
            [on_codes("Ignore", 1), on_codes("FailJob", 1)], pod("Failed"), ("Ignore", "", False), id="F1: first match"
        ),
        pytest.param(
            [on_codes("FailJob", 0, operator="NotIn")], pod("Failed", code=0), ("", "", True), id="F1: 0 never"
        ),
        pytest.param(
            [on_codes("Ignore", 1, operator="NotIn")], pod("Failed", code=2), ("Ignore", "", False), id="F1: not in"
        ),
        pytest.param([on_codes("Ignore", 2, operator="NotIn")], pod("Failed", code=2), ("", "", True), id="not not in"),
        pytest.param([on_codes("Ignore", 1, container="other")], pod("Failed"), ("", "", True), id="F1: another name"),
        pytest.param(
            [on_codes("Ignore", 1, container="main")], pod("Failed"), ("Ignore", "", False), id="F1: its name"
        ),
        pytest.param([on_codes("Ignore", 3)], with_init(3), ("Ignore", "", False), id="F1: init containers too"),
        pytest.param([on_codes("Ignore", 1)], pod("Failed", containers=()), ("", "", True), id="F1: nothing ended"),
        pytest.param(
            [on_condition("Ignore", "DisruptionTarget")],
            pod("Failed", has=DISRUPTED),
            ("Ignore", "", False),
            id="F1: a condition",
        ),
        pytest.param(
            [on_condition("FailJob", "DisruptionTarget")],
            pod("Failed", has=DISRUPTED, name="train"),
            ("FailJob", "Pod n/train has condition DisruptionTarget matching FailJob rule at index 0", True),
            id="F4: by condition",
        ),
        pytest.param(
            [on_condition("Ignore", "X", "Unknown")],
            pod("Failed", has={"X": "Unknown"}),
            ("Ignore", "", False),
            id="Unknown",
        ),
        pytest.param(
            [on_condition("Ignore", "X", "False")], pod("Failed", has={"X": "True"}), ("", "", True), id="other status"
        ),
        pytest.param(
            [on_condition("Ignore", "X")], pod("Failed", has={"X": "False"}), ("", "", True), id="another status"
        ),
        pytest.param([on_condition("Count", "X")], pod("Failed", has={"X": "True"}), ("Count", "", True), id="count"),
    ],
)
def test_failure_policy_matches(rules: list[Json], found: Pod, expected: tuple[str, str, bool]) -> None:
    policy = FailurePolicy.of({"podFailurePolicy": {"rules": rules}}, ALL_GATES)
    assert policy is not None
    match = policy.match(found)
    assert (match.action, match.message, match.is_counted) == expected


@pytest.mark.parametrize("rule", [on_codes("FailIndex", 1), on_condition("FailIndex", "X")])
def test_fail_index_is_passed_over_without_its_gate(rule: Json) -> None:
    """F2 for versions without JobBackoffLimitPerIndex: the next rule decides."""
    spec = {"podFailurePolicy": {"rules": [rule, on_codes("Ignore", 1)]}}
    policy = FailurePolicy.of(spec, FeatureGates(job_backoff_limit_per_index=False))
    assert policy is not None
    assert policy.match(pod("Failed", has={"X": "True"})).action == "Ignore"


def test_a_job_without_policy_has_none() -> None:
    assert FailurePolicy.of({}, ALL_GATES) is None


@pytest.mark.parametrize(
    ("rules", "completed", "met"),
    [
        pytest.param([], "0-9", None, id="no rules"),
        pytest.param([{"succeededIndexes": "a-b"}], "0-9", None, id="unreadable"),
        pytest.param([{"succeededIndexes": "", "succeededCount": 0}], "0", None, id="names nothing"),
        pytest.param([{"succeededIndexes": "0-2"}], "0-2", 0, id="equal"),
        pytest.param([{"succeededIndexes": "1"}], "0-2", 0, id="within"),
        pytest.param([{"succeededIndexes": "0-3"}], "0-2", None, id="one is missing"),
        pytest.param([{"succeededIndexes": "0-3", "succeededCount": 3}], "0-2", 0, id="enough of them"),
        pytest.param([{"succeededIndexes": "0-3", "succeededCount": 3}], "0,1,5-9", None, id="others do not count"),
        pytest.param([{"succeededIndexes": "4-9", "succeededCount": 1}], "0-4", 0, id="overlaps at its first"),
        pytest.param([{"succeededIndexes": "2,5-7", "succeededCount": 2}], "2,3,7-9", 0, id="overlaps in pieces"),
        pytest.param([{"succeededIndexes": "2,5-7", "succeededCount": 3}], "2,3,7-9", None, id="too few pieces"),
        pytest.param([{"succeededCount": 3}], "0,5,9", 0, id="count"),
        pytest.param([{"succeededCount": 4}], "0,5,9", None, id="count is not reached"),
        pytest.param([{"succeededIndexes": "8"}, {"succeededCount": 1}], "0", 1, id="the second rule"),
        pytest.param([{"succeededIndexes": "0"}, {"succeededCount": 1}], "0", 0, id="the first of two"),
        pytest.param([{"succeededCount": 0}], "", None, id="nothing succeeded"),
        pytest.param([{}], "0", None, id="a rule without criteria"),
    ],
)
def test_success_policy_is_met(rules: list[Json], completed: str, met: int | None) -> None:
    """Z1."""
    assert met_rule({"successPolicy": {"rules": rules}}, indexes.parse(completed, 10), 10) == met


@pytest.mark.parametrize(
    ("failed", "held"),
    [
        pytest.param([pod("Failed", index=3, index_failures=1)], [3], id="waits for its replacement"),
        pytest.param(pods(1, "Failed"), [], id="of no index"),
        pytest.param([pod("Failed", index=0)], [], id="its index has succeeded or failed"),
        pytest.param([pod("Failed", index=1)], [], id="its replacement is there"),
    ],
)
def test_who_is_held_back(failed: list[Pod], held: list[int]) -> None:
    """L5."""
    assert list(indexed.held_back(failed, indexed.of([0]), indexed.of([1]))) == held


def test_of_several_failures_the_one_with_most_is_held_back() -> None:
    """L5: the highest count, ignored ones included, then the latest end."""
    few = pod("Failed", index=3, index_failures=1, finished=1)
    most = pod("Failed", index=3, index_failures=1, index_ignored_failures=1, finished=9)
    latest = replace(most, uid="latest", containers=(ended(5),))
    for order in ([few, most, latest], [latest, few, most], [most, latest, few]):
        assert indexed.held_back(order, (), ()) == {3: latest}
