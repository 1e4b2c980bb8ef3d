"""Whether a Job ends, and why (Y13): ordered rules, the first that has something to say decides."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TypeAlias

from mirror.batch import conditions, indexes, rule_names, views
from mirror.batch.conditions import FAILURE_TARGET, SUCCESS_CRITERIA_MET, TRUE
from mirror.jobcontroller.decide import success_policy
from mirror.jobcontroller.decide.facts import Facts
from mirror.jobcontroller.decide.failure_policy import FAIL_JOB, reason_of
from mirror.jobcontroller.decide.values import Ending, Snapshot

BACKOFF_LIMIT = Ending(FAILURE_TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = Ending(FAILURE_TARGET, "DeadlineExceeded", "Job was active longer than specified deadline")
MAX_FAILED_INDEXES = Ending(
    FAILURE_TARGET, "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
FAILED_INDEXES = Ending(FAILURE_TARGET, "FailedIndexes", "Job has failed indexes")
COMPLETIONS = Ending(SUCCESS_CRITERIA_MET, "CompletionsReached", "Reached expected number of succeeded pods")


def decide_ending(snapshot: Snapshot, facts: Facts) -> Ending | None:
    """How the Job ends, if it does before its completions are reached."""
    for rule in RULES:
        ending = rule(snapshot, facts)
        if ending is not None:
            return ending
    return None


def by_completions(snapshot: Snapshot, facts: Facts, active: int) -> Ending | None:
    """Enough pods have succeeded, or any of a work queue, and none is active any more (Y16)."""
    wanted = facts.job.completions
    is_complete = facts.succeeded > 0 if wanted is None else facts.succeeded >= wanted
    if not is_complete or active:
        return None
    # Versions without success policies gave no reason.
    return COMPLETIONS if snapshot.gates.job_success_policy else Ending(SUCCESS_CRITERIA_MET, "", "")


def is_by_completions(ending: Ending) -> bool:
    """Whether it is a success for which no active pod was deleted: not one that somebody else wrote, which deletes."""
    return ending.condition == SUCCESS_CRITERIA_MET and ending.reason in (COMPLETIONS.reason, "")


def comes_after_deadline(ending: Ending) -> bool:
    """Whether the deadline was looked at, and had not passed, before this was decided (Y14)."""
    is_late = ending.reason in (MAX_FAILED_INDEXES.reason, FAILED_INDEXES.reason, success_policy.REASON)
    return is_late and not ending.is_stored


def is_by_failure_policy(ending: Ending) -> bool:
    """Whether a FailJob rule has just decided so."""
    return not ending.is_stored and ending.reason.startswith(rule_names.PLAIN_REASON)


def stored_success(_: Snapshot, facts: Facts) -> Ending | None:
    """A success that is stored stays one, with the gate off too (Y13-1, Z3)."""
    return _stored(facts, SUCCESS_CRITERIA_MET)


def stored_failure(_: Snapshot, facts: Facts) -> Ending | None:
    """A failure that is stored stays one, with its reason, even one that somebody wrote by hand (Y13-2, Q15)."""
    return _stored(facts, FAILURE_TARGET)


def enacted(snapshot: Snapshot, _: Facts) -> Ending | None:
    """A verdict that has deleted pods stays one, though it could not be stored yet."""
    return None if snapshot.enacted is None else snapshot.enacted.ending


def failed_by_policy(snapshot: Snapshot, facts: Facts) -> Ending | None:
    """A FailJob rule matches a failed pod, also one that is counted already (Y13-3)."""
    if facts.judge.policy is None:
        return None
    for pod in chain(snapshot.pods, snapshot.settled_failed):
        if facts.judge.is_failed(pod) and (match := facts.judge.match(pod)).action == FAIL_JOB:
            return Ending(FAILURE_TARGET, reason_of(snapshot, match.message)[0], match.message)
    return None


def past_backoff_limit(snapshot: Snapshot, facts: Facts) -> Ending | None:
    """More failed pods than allowed, or as many restarts of containers that are restarted in place (B1, B2)."""
    limit = facts.job.backoff_limit
    if facts.failed > limit:
        return BACKOFF_LIMIT
    if not facts.job.restarts_on_failure:
        return None
    running = (pod for pod in snapshot.pods if pod.phase in ("Running", "Pending"))
    restarts = sum(one.restarts for pod in running for one in pod.containers)
    return BACKOFF_LIMIT if restarts >= max(limit, 1) else None


def past_deadline(snapshot: Snapshot, facts: Facts) -> Ending | None:
    """The Job runs longer than it may (B3)."""
    left = seconds_to_deadline(snapshot, facts)
    return DEADLINE if left is not None and left <= 0 else None


def too_many_failed_indexes(_: Snapshot, facts: Facts) -> Ending | None:
    """More failed indexes than allowed (L3)."""
    failed, limit = facts.indexes and facts.indexes.failed, facts.job.max_failed_indexes
    return MAX_FAILED_INDEXES if failed and limit is not None and indexes.count(failed) > limit else None


def no_index_left(_: Snapshot, facts: Facts) -> Ending | None:
    """Every index has succeeded or failed, and at least one failed (L3)."""
    failed = facts.indexes and facts.indexes.failed
    return FAILED_INDEXES if failed and indexes.count(failed) + facts.succeeded >= facts.job.size else None


def met_success_policy(_: Snapshot, facts: Facts) -> Ending | None:
    """A rule of the success policy is met (Z2)."""
    if facts.met_rule is None:
        return None
    return Ending(SUCCESS_CRITERIA_MET, success_policy.REASON, success_policy.message(facts.met_rule))


def seconds_to_deadline(snapshot: Snapshot, facts: Facts) -> float | None:
    """None without a deadline, and while it stands still (W5)."""
    if facts.job.deadline_seconds is None or facts.deadline_from is None:
        return None
    return facts.job.deadline_seconds - (snapshot.now - facts.deadline_from).total_seconds()


def _stored(facts: Facts, type_name: str) -> Ending | None:
    """Entries of the type that are not True are passed over, wherever they stand (Q14)."""
    found = conditions.find(facts.stored.conditions, type_name, TRUE)
    if found is None:
        return None
    return Ending(type_name, views.text(found.get("reason")), views.text(found.get("message")), is_stored=True)


_Rule: TypeAlias = Callable[[Snapshot, Facts], Ending | None]

RULES: tuple[_Rule, ...] = (
    stored_success,
    stored_failure,
    enacted,
    failed_by_policy,
    past_backoff_limit,
    past_deadline,
    too_many_failed_indexes,
    no_index_left,
    met_success_policy,
)
