"""Which Job can be proved never to have run, and what its status says of that (D31, decision 0016)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from doubles.jobs import as_object, condition

from mirror.batch import conditions
from mirror.kinds.batch_job.kind import JobSource
from mirror.kinds.registry import JOB
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.retries import Retries, RetryState

AT, SECONDS = "2026-03-01T11:59:00Z", 1772366340
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
PENDING: dict[str, Any] = {"active": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "startTime": AT}
SUSPENDED = condition("Suspended", AT, reason="JobSuspended")
RETRY = JOB.retry
assert RETRY is not None


def job(
    status: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, *, generation: int = 1, **metadata: Any
) -> Object:
    plain = {"name": "train", "namespace": "n", "uid": "m", "generation": generation} | metadata
    body = {"parallelism": 1, "completions": 1} | (spec or {})
    return as_object({"metadata": plain, "spec": body, "status": PENDING if status is None else status})


IGNORING = {"podFailurePolicy": {"rules": [{"action": "FailJob"}, {"action": "Ignore"}]}}
COUNTING = {"podFailurePolicy": {"rules": [{"action": "FailJob"}, {"action": "Count"}]}}


@pytest.mark.parametrize(
    ("mirror", "since"),
    [
        pytest.param(job(), SECONDS, id="its pods wait"),
        pytest.param(job(PENDING | {"active": 0}), SECONDS, id="it has none"),
        pytest.param(job(spec=COUNTING), SECONDS, id="what fails is counted"),
        pytest.param(job(spec=IGNORING), None, id="what fails may not be counted"),
        pytest.param(job({}), None, id="its controller has not seen it"),
        pytest.param(job(PENDING | {"startTime": 7}), None, id="its start is none"),
        pytest.param(job(PENDING | {"ready": 1}), None, id="a pod is ready"),
        pytest.param(job(PENDING | {"failed": 1}), None, id="a pod has failed"),
        pytest.param(job(PENDING | {"succeeded": 1}), None, id="a pod has succeeded"),
        pytest.param(job(PENDING | {"uncountedTerminatedPods": {"failed": ["u"]}}), None, id="a pod is being counted"),
        pytest.param(job(PENDING | {"completedIndexes": "0"}), None, id="an index is done"),
        pytest.param(job(generation=2), None, id="its spec was changed"),
        pytest.param(
            job(PENDING | {"conditions": [SUSPENDED | {"status": "False"}]}), None, id="it was suspended once"
        ),
        pytest.param(job(PENDING | {"conditions": [condition("FailureTarget", AT)]}), None, id="its end is decided"),
        pytest.param(job(spec={"suspend": True}), None, id="it is suspended"),
        pytest.param(job(spec={"parallelism": 0}), None, id="it should have none"),
        pytest.param(job(spec={"manualSelector": True}), None, id="its pods are not by its uid"),
        pytest.param(job(spec={"parallelism": "x"}), None, id="it cannot be read"),
        pytest.param(job(labels={names.QUEUE_NAME: "q"}), None, id="a queue runs it"),
        pytest.param(job(annotations={names.FENCE: "true"}), None, id="it has a lease"),
    ],
)
def test_since_when_it_has_had_no_ready_pod(mirror: Object, since: int | None) -> None:
    """None where something of it has run, or may have, without a trace."""
    assert RETRY.unready_since(job(), mirror) == since


def test_what_was_counted_before_counts() -> None:
    """Of a source that has been elsewhere; and its rules are those of the next mirror."""
    assert RETRY.unready_since(job(PENDING | {"failed": 1}), job()) is None
    assert RETRY.unready_since(job(spec=IGNORING), job()) is None


STOPPED: dict[str, Any] = {"ready": 0, "terminating": 0, "conditions": [SUSPENDED]}


@pytest.mark.parametrize(
    ("status", "spec", "generation", "is_so"),
    [
        pytest.param(STOPPED, {"suspend": True}, 2, True, id="all is over"),
        pytest.param(STOPPED, {}, 2, False, id="it runs"),
        pytest.param(STOPPED, {"suspend": True}, 1, False, id="it was made so"),
        pytest.param(STOPPED, {"suspend": True}, 4, False, id="it ran meanwhile"),
        pytest.param({}, {"suspend": True}, 2, False, id="its controller has not seen that"),
        pytest.param(STOPPED | {"active": 1}, {"suspend": True}, 2, False, id="a pod is there"),
        pytest.param(STOPPED | {"terminating": 1}, {"suspend": True}, 2, False, id="a pod goes"),
        pytest.param(STOPPED | {"failed": 1}, {"suspend": True}, 2, False, id="a pod was counted"),
    ],
)
def test_whether_it_is_drained(status: dict[str, Any], spec: dict[str, Any], generation: int, is_so: bool) -> None:
    assert RETRY.is_drained(job(status, spec, generation=generation)) == is_so


def test_who_has_suspended_it_can_be_told() -> None:
    """Somebody else may have done so before its pods were listed: what they were is gone."""
    operations = RETRY.stopping(job(annotations={"a": "b", names.CARRIED: ""}), "mark")
    assert operations[0]["value"] is True
    annotations = operations[1]["value"]
    assert (annotations["a"], annotations[names.STOPPED_FOR]) == ("b", "mark")
    stopped = job(STOPPED, {"suspend": True}, generation=2, annotations=annotations)
    assert RETRY.is_only_stopped(stopped, "mark")
    assert not RETRY.is_only_stopped(stopped, "another")
    assert not RETRY.is_only_stopped(job(STOPPED, {"suspend": True}, generation=2), "mark")


# -- the source --------------------------------------------------------------------------------------------------------

PLACED = condition(names.PLACED, AT, reason="Placed", message="east")
MIRRORED = condition(names.MIRRORED, AT, reason="MirrorCreated", message="m")
IDLE = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "startTime": AT}


def stored(*listed: Any, **status: Any) -> JobSource:
    found = JOB.stored(job({**IDLE, **status, "conditions": list(listed)}))
    assert isinstance(found, JobSource)
    return found


def test_the_way_of_its_status() -> None:
    """The record comes and changes; then worker and mirror go, and what is kept of its start counts for nothing."""
    source = stored(PLACED, MIRRORED)
    draining = source.retrying_status(None, Retries().draining("m"), NOW)
    assert draining is not None
    assert JobSource.of(source.spec, draining).has_started, "it is not known yet"
    source = stored(PLACED, MIRRORED, SUSPENDED)
    proved = source.retrying_status(None, Retries().draining("m").proved(source.kept_start), NOW)
    assert proved is not None
    source = JobSource.of(source.spec, proved)
    assert not source.has_started
    assert source.retries.state is RetryState.PROVED
    assert source.verdict is None
    gone = source.retried_status(source.retries.left("east", AT), NOW)
    assert gone is not None
    source = JobSource.of(source.spec, gone)
    assert (source.placed_worker, source.mirror_uid, source.has_started) == (None, None, False)
    assert [one.worker for one in source.retries.tried] == ["east"]
    assert JOB.retry is not None
    assert [one.worker for one in JOB.retry.tried(job(gone))] == ["east"]
    assert JOB.progress(job(gone)).started_at == "", "nor do people see it as started"
    placed = source.placed_status("west", NOW)
    assert placed is not None
    source = JobSource.of(source.spec, placed)
    assert conditions.is_true(source.conditions, "Suspended"), "only through a suspension may its start move (V37)"
    following = source.next_status(job(PENDING | {"startTime": "2026-03-01T11:59:30Z"}), now=NOW)
    assert following.status is not None
    source = JobSource.of(source.spec, following.status)
    assert (source.start, source.has_started) == ("2026-03-01T11:59:30Z", True)
    assert not conditions.is_true(source.conditions, "Suspended")


@pytest.mark.parametrize(
    ("record", "listed", "has_started"),
    [
        pytest.param(Retries().draining("m").proved(AT), [SUSPENDED], False, id="proved"),
        pytest.param(Retries().draining("m").proved(AT), [], True, id="and resumed since"),
        pytest.param(Retries().draining("m").proved("2026-01-01T00:00:00Z"), [SUSPENDED], True, id="another start"),
        pytest.param(Retries().draining("m"), [SUSPENDED], True, id="not proved yet"),
    ],
)
def test_which_start_counts(record: Retries, listed: list[Any], has_started: bool) -> None:
    """Only that of the mirror of which it is proved that nothing ran, and only until the next one starts."""
    assert record.state is not None
    condition_of = condition(names.RETRYING, AT, status=record.state.value, message=record.message)
    assert stored(PLACED, condition_of, *listed).has_started == has_started
    assert stored(PLACED, condition_of, *listed, active=1).has_started


def test_a_move_ends_it() -> None:
    """Both in one write: its worker is lost, and it is allowed to run elsewhere (D14)."""
    record = Retries().draining("m")
    source = stored(PLACED, MIRRORED, condition(names.RETRYING, AT, status="Unknown", message=record.message))
    moved = source.moved_status(source.moves.moved("east", "west", None), NOW)
    assert moved is not None
    assert JobSource.of(source.spec, moved).retries == record.given_up("it was moved", keeps_start=False)


def test_what_a_worker_says_of_retries_is_left_out() -> None:
    """A condition of ours on a mirror would otherwise become one of its source."""
    forged = condition(names.RETRYING, AT, status="True", message="mirror m")
    following = stored(PLACED, MIRRORED).next_status(job(PENDING | {"conditions": [forged]}), now=NOW)
    assert following.status is not None
    assert conditions.find(following.status["conditions"], names.RETRYING) is None
