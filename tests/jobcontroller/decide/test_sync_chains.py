"""The chains that were observed on kube-controller-manager, request by request."""

from __future__ import annotations

from syncs import FAIL_42, FIRST_INDEX, indexed, policy, spec
from toycluster import Toy

from mirror.jobcontroller.decide.values import Constants

IGNORE_DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
FAIL_INDEX_42 = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}


class Watched(Toy):
    """Tells what one settling did."""

    def does(self) -> list[str]:
        before = len(self.log)
        self.settle()
        return self.log[before:]

    def end_number(self, number: int, code: int = 0, *, has: str = "") -> None:
        self.end(self.pods[number], "Failed" if code else "Succeeded", code, has=has)


def watched(of: dict[str, object]) -> Watched:
    return Watched(of, constants=Constants())


def test_simple() -> None:
    """§5.1."""
    toy = watched(spec())
    assert toy.does() == ["POST", "S{active 1, startTime}"]
    toy.make_ready(toy.pods[0])
    assert toy.does() == ["S{ready 1}"]
    toy.end_number(0)
    assert toy.does() == [
        "S{active 0, ready 0, uncounted.succeeded 1, +SuccessCriteriaMet True CompletionsReached}",
        "fin-",
        "S{succeeded 1, uncounted.succeeded 0, completionTime, +Complete True CompletionsReached}",
        "Completed",
    ]


def test_work_queue() -> None:
    """§5.2: no replacement after a success, and the Job completes despite a failure."""
    toy = watched(spec(completions=None, parallelism=3))
    assert toy.does() == ["POST", "POST", "POST", "S{active 3, startTime}"]
    toy.end_number(0)
    counted = "S{active 2, uncounted.succeeded 1}", "fin-", "S{succeeded 1, uncounted.succeeded 0}"
    assert toy.does() == [*counted]
    toy.end_number(1, 1)
    assert toy.does() == ["S{active 1, uncounted.failed 1}", "fin-", "S{failed 1, uncounted.failed 0}"]
    toy.end_number(2)
    assert toy.does()[-1] == "Completed"
    assert (toy.status["succeeded"], toy.status["failed"]) == (2, 1)


def test_more_completions_than_parallelism() -> None:
    """§5.3: the next pod is made before the status is written."""
    toy = watched(spec(completions=3, parallelism=2))
    toy.does()
    toy.end_number(0)
    assert toy.does() == ["POST", "S{uncounted.succeeded 1}", "fin-", "S{succeeded 1, uncounted.succeeded 0}"]
    toy.end_number(1)
    toy.end_number(2)
    assert toy.does() == [
        "S{active 0, uncounted.succeeded 2, +SuccessCriteriaMet True CompletionsReached}",
        "fin-",
        "fin-",
        "S{succeeded 3, uncounted.succeeded 0, completionTime, +Complete True CompletionsReached}",
        "Completed",
    ]


def test_indexed() -> None:
    """§5.4: an indexed success takes one write."""
    toy = watched(indexed(3))
    assert toy.does() == ["POST 0", "POST 1", "POST 2", "S{active 3, startTime}"]
    toy.end_number(2)
    assert toy.does() == ["S{active 2, succeeded 1, completedIndexes 2}", "fin-"]
    toy.end_number(0)
    toy.end_number(1)
    assert toy.does() == [
        "S{active 0, succeeded 3, completedIndexes 0-2, +SuccessCriteriaMet True CompletionsReached}",
        "fin-",
        "fin-",
        "S{completionTime, +Complete True CompletionsReached}",
        "Completed",
    ]


def test_failing() -> None:
    """§5.5."""
    toy = watched(spec(backoffLimit=1))
    toy.does()
    toy.end_number(0, 1)
    assert toy.does() == ["S{active 0, uncounted.failed 1}", "fin-", "S{failed 1, uncounted.failed 0}"]
    toy.wait(10)
    assert toy.does() == ["POST", "S{active 1}"]
    toy.end_number(1, 1)
    assert toy.does() == [
        "S{active 0, uncounted.failed 1, +FailureTarget True BackoffLimitExceeded}",
        "fin-",
        "S{failed 2, uncounted.failed 0, +Failed True BackoffLimitExceeded}",
        "BackoffLimitExceeded",
    ]


def test_deadline() -> None:
    """§5.6: the pods count before they have ended."""
    toy = watched(spec(completions=2, parallelism=2, activeDeadlineSeconds=3))
    toy.does()
    toy.wait(3)
    assert toy.does() == [
        *("DELETE", "DELETE"),
        "S{active 0, terminating 2, uncounted.failed 2, +FailureTarget True DeadlineExceeded}",
        *("fin-", "fin-"),
        "S{failed 2, uncounted.failed 0}",
    ]
    toy.end_number(0, 143)
    assert toy.does() == ["S{terminating 1}"]
    toy.end_number(0, 143)
    assert toy.does() == ["S{terminating 0}", "S{+Failed True DeadlineExceeded}", "DeadlineExceeded"]


def test_suspended_and_resumed_twice() -> None:
    """§5.7."""
    toy = watched(spec(completions=2, parallelism=2, suspend=True))
    assert toy.does() == ["Suspended", "S{+Suspended True JobSuspended}"]
    toy.spec = toy.spec | {"suspend": False}
    assert toy.does() == ["POST", "POST", "Resumed", "S{active 2, startTime, +Suspended False JobResumed}"]
    toy.spec = toy.spec | {"suspend": True}
    stopped = "S{active 0, terminating 2, no startTime, +Suspended True JobSuspended}"
    assert toy.does() == ["fin-", "DELETE", "fin-", "DELETE", "Suspended", stopped]
    toy.end_number(0, 143)
    toy.end_number(0, 143)
    assert toy.does() == ["S{terminating 0}"]
    toy.spec = toy.spec | {"suspend": False}
    assert toy.does() == ["POST", "POST", "Resumed", "S{active 2, startTime, +Suspended False JobResumed}"]
    toy.end_number(0)
    toy.end_number(1)
    assert toy.does()[-1] == "Completed"
    assert toy.status.get("failed") is None


def test_fail_job() -> None:
    """§5.8a."""
    toy = watched(spec(completions=2, parallelism=2, **policy(FAIL_42)))
    toy.does()
    toy.end_number(0, 42)
    assert toy.does() == [
        "DELETE",
        "S{active 0, terminating 1, uncounted.failed 2, +FailureTarget True PodFailurePolicy}",
        *("fin-", "fin-"),
        "S{failed 2, uncounted.failed 0}",
    ]
    (left,) = toy.terminating()
    toy.end(left, "Failed", 143)
    assert toy.does() == ["S{terminating 0}", "S{+Failed True PodFailurePolicy}", "PodFailurePolicy"]


def test_ignored_and_then_counted() -> None:
    """§5.8b: an ignored failure is replaced after the delay, and counts nowhere."""
    toy = watched(spec(backoffLimit=0, **policy(IGNORE_DISRUPTED)))
    toy.does()
    toy.delete(toy.pods[0])
    assert toy.does() == ["S{active 0, terminating 1}"]
    toy.end_number(0, 143, has="DisruptionTarget")
    assert toy.does() == ["S{terminating 0}", "fin-"]
    toy.wait(10)
    assert toy.does() == ["POST", "S{active 1}"]
    toy.end_number(0, 1)
    assert toy.does() == [
        "S{active 0, uncounted.failed 1, +FailureTarget True BackoffLimitExceeded}",
        "fin-",
        "S{failed 1, uncounted.failed 0, +Failed True BackoffLimitExceeded}",
        "BackoffLimitExceeded",
    ]


def test_fail_index_and_limit_per_index() -> None:
    """§5.8c: the pod whose index runs again is held back and counted in the end."""
    toy = watched(indexed(2, backoffLimitPerIndex=1, **policy(FAIL_INDEX_42)))
    assert toy.does() == ["POST 0", "POST 1", "S{active 2, startTime, failedIndexes }"]
    toy.end_number(0, 42)
    toy.end_number(1, 1)
    assert toy.does() == [
        "S{active 0, uncounted.failed 1, failedIndexes 0}",
        "fin-",
        "S{failed 1, uncounted.failed 0}",
    ]
    toy.wait(10)
    assert toy.does()[:2] == ["POST 1", "S{active 1}"]
    toy.end(toy.active()[0], "Succeeded", 0)
    assert toy.does()[-2:] == ["S{+Failed True FailedIndexes}", "FailedIndexes"]
    assert (toy.status["failed"], toy.status["completedIndexes"], toy.status["failedIndexes"]) == (2, "1", "0")


def test_success_policy() -> None:
    """§5.9: what lingers is not added, even if it ends well."""
    toy = watched(indexed(3, successPolicy=FIRST_INDEX))
    toy.does()
    toy.end_number(0)
    assert toy.does() == [
        *("DELETE", "DELETE"),
        "S{active 0, terminating 2, succeeded 1, completedIndexes 0, +SuccessCriteriaMet True SuccessPolicy}",
        *("fin-", "fin-", "fin-"),
    ]
    for pod in toy.terminating():
        toy.end(pod, "Succeeded", 0)
    assert toy.does() == [
        "S{terminating 0}",
        "S{completionTime, +Complete True SuccessPolicy}",
        "Completed",
    ]


def test_deleted_in_the_foreground() -> None:
    """§5.10: finalizers at once; what the garbage collector deletes is shown, and nothing is counted or made."""
    toy = watched(spec(completions=2, parallelism=2))
    toy.does()
    toy.is_deleting = True
    assert toy.does() == ["fin-", "fin-"]
    for pod in toy.active():
        toy.delete(pod)
    assert toy.does() == ["S{active 0, terminating 2}"]


def test_no_completions() -> None:
    """§5.13: two writes in one sync, no pods; without a start time when it is suspended, too (W6)."""
    final = "S{completionTime, +Complete True CompletionsReached}", "Completed"
    assert watched(spec(completions=0)).does() == ["S{startTime, +SuccessCriteriaMet True CompletionsReached}", *final]
    held = watched(spec(completions=0, suspend=True))
    assert held.does() == ["S{+SuccessCriteriaMet True CompletionsReached}", *final]


def test_no_parallelism() -> None:
    """§5.13."""
    assert watched(spec(parallelism=0)).does() == ["S{startTime}"]


def test_scaled_down() -> None:
    """§5.13, I2: from 4 to 2 with "0,3" done."""
    toy = watched(indexed(4))
    toy.does()
    toy.end_number(0)
    toy.end_number(3)
    toy.does()
    toy.spec = toy.spec | {"completions": 2, "parallelism": 2}
    scaled = "S{active 1, terminating 1, succeeded 1, completedIndexes 0}"
    assert toy.does() == ["fin-", "DELETE", scaled]


def test_a_deleted_pod_is_replaced_when_its_policy_says() -> None:
    """§5.13, R2, R3."""
    counted = "fin-", "S{failed 1, uncounted.failed 0}"
    early = watched(spec())
    early.does()
    early.delete(early.pods[0])
    assert early.does() == ["S{active 0, terminating 1, uncounted.failed 1}", *counted]
    early.wait(10)
    assert early.does() == ["POST", "S{active 1}"]
    late = watched(spec(podReplacementPolicy="Failed"))
    late.does()
    late.delete(late.pods[0])
    assert late.does() == ["S{active 0, terminating 1}"]
    late.wait(30)
    late.end_number(0, 143)
    assert late.does() == ["S{terminating 0, uncounted.failed 1}", *counted]
