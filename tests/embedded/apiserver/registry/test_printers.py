"""Cells: lengths of time, selectors, and how pods and Jobs are doing, as kubectl shows it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mirror.embedded.apiserver.registry import printers as texts
from tests.embedded.apiserver.registry.resources.playing import CONTAINERS, NOW, Json, cells, kind_of, stored

SECOND = 1_000_000_000
MINUTE, HOUR, DAY = 60, 3600, 86_400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 30 * MINUTE, "7h30m"),
        (8 * HOUR + 30 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (7 * DAY + 5 * HOUR, "7d5h"),
        (8 * DAY + 5 * HOUR, "8d"),
        (2 * 365 * DAY - 1, "729d"),
        (2 * 365 * DAY, "2y"),
        (3 * 365 * DAY + 4 * DAY, "3y4d"),
        (9 * 365 * DAY + 4 * DAY, "9y"),
    ],
)
def test_a_length_of_time(seconds: int, text: str) -> None:
    """Two units where they matter."""
    assert texts.duration(seconds * SECOND) == text


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "<none>"),
        ({}, "<none>"),
        ({"matchLabels": {"b": "1", "a": "2"}}, "a=2,b=1"),
        ({"matchExpressions": [{"key": "k", "operator": "In", "values": ["y", "x"]}]}, "k in (x,y)"),
        ({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["x"]}]}, "k notin (x)"),
        ({"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}, {"key": "a", "operator": "Exists"}]}, "a,!k"),
        ({"matchExpressions": [{"key": "k", "operator": "?"}]}, "<error>"),
    ],
)
def test_a_selector(selector: Json | None, text: str) -> None:
    """In one line, in the order of the keys."""
    assert texts.selector(selector) == text


def status(name: str = "main", *, ready: bool = False, restarts: int = 0, **fields: Any) -> Json:
    """The status of a container; ``last`` is when it ended before."""
    last = {"terminated": {"exitCode": 1, "finishedAt": fields.pop("last")}} if "last" in fields else {}
    started = {"started": fields.pop("started")} if "started" in fields else {}
    return {"name": name, "ready": ready, "restartCount": restarts, "lastState": last, "state": fields, **started}


WAITING = {"reason": "CrashLoopBackOff"}
ENDED, KILLED = {"exitCode": 0, "reason": "Completed"}, {"exitCode": 137, "signal": 9}
READY = [{"type": "Ready", "status": "True"}]
AN_HOUR_AGO = "2026-11-21T11:00:00Z"


@pytest.mark.parametrize(
    ("of", "ready", "word", "restarts"),
    [
        pytest.param({}, "0/1", "Pending", "0", id="new"),
        pytest.param({"reason": "Evicted", "phase": "Failed"}, "0/1", "Evicted", "0", id="evicted"),
        pytest.param(
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
            "0/1",
            "SchedulingGated",
            "0",
            id="gated",
        ),
        pytest.param(
            {"phase": "Running", "containerStatuses": [status(ready=True, running={})]},
            "1/1",
            "Running",
            "0",
            id="runs",
        ),
        pytest.param(
            {"phase": "Running", "containerStatuses": [status(restarts=3, waiting=WAITING, last=AN_HOUR_AGO)]},
            "0/1",
            "CrashLoopBackOff",
            "3 (60m ago)",
            id="crashes",
        ),
        pytest.param({"containerStatuses": [status(terminated=KILLED)]}, "0/1", "Signal:9", "0", id="killed"),
        pytest.param(
            {"containerStatuses": [status(terminated={"exitCode": 3})]}, "0/1", "ExitCode:3", "0", id="failed"
        ),
        pytest.param({"containerStatuses": [status(terminated=ENDED)]}, "0/1", "Completed", "0", id="ended"),
        pytest.param(
            {
                "conditions": READY,
                "containerStatuses": [status(terminated=ENDED), status("b", ready=True, running={})],
            },
            "1/1",
            "Running",
            "0",
            id="one ended, one runs",
        ),
        pytest.param(
            {"containerStatuses": [status(terminated=ENDED), status("b", ready=True, running={})]},
            "1/1",
            "NotReady",
            "0",
            id="one ended, one runs, the pod is not ready",
        ),
        pytest.param(
            {
                "containerStatuses": [
                    status(terminated=ENDED),
                    status("b", terminated={"exitCode": 1, "reason": "Error"}),
                ]
            },
            "0/1",
            "Error",
            "0",
            id="one ended, one failed",
        ),
    ],
)
def test_how_a_pod_is_doing(of: Json, ready: str, word: str, restarts: str) -> None:
    """The first container that has something to say."""
    pod = stored("Pod", {"spec": CONTAINERS})
    pod["status"] |= of
    found = cells(pod, "Pod")

    assert (found["Ready"], found["Status"], found["Restarts"]) == (ready, word, restarts)


INIT = [{"name": "one", "image": "x"}, {"name": "two", "image": "x"}]
SIDECAR = [{"name": "side", "image": "x", "restartPolicy": "Always"}]


@pytest.mark.parametrize(
    ("init", "statuses", "ready", "word"),
    [
        (INIT, [status("one", running={})], "0/1", "Init:0/2"),
        (INIT, [status("one", terminated=ENDED), status("two", running={})], "0/1", "Init:1/2"),
        (INIT, [status("one", terminated={"exitCode": 2})], "0/1", "Init:ExitCode:2"),
        (INIT, [status("one", terminated=KILLED)], "0/1", "Init:Signal:9"),
        (INIT, [status("one", waiting=WAITING)], "0/1", "Init:CrashLoopBackOff"),
        (INIT, [status("one", waiting={"reason": "PodInitializing"})], "0/1", "Init:0/2"),
        (SIDECAR, [status("side", ready=True, started=True, running={})], "1/2", "Pending"),
    ],
)
def test_how_far_a_pod_has_come(init: list[Json], statuses: list[Json], ready: str, word: str) -> None:
    """Init containers one by one; a sidecar that has started is as good as a container."""
    pod = stored("Pod", {"spec": {**CONTAINERS, "initContainers": init}})
    pod["status"]["initContainerStatuses"] = statuses
    found = cells(pod, "Pod")

    assert (found["Ready"], found["Status"]) == (ready, word)


@pytest.mark.parametrize(
    ("of", "word"), [({}, "Terminating"), ({"reason": "NodeLost"}, "Unknown"), ({"phase": "Failed"}, "Failed")]
)
def test_a_pod_that_is_being_deleted(of: Json, word: str) -> None:
    """Unless it has ended already."""
    pod = stored("Pod", {"spec": CONTAINERS})
    pod["metadata"]["deletionTimestamp"] = AN_HOUR_AGO
    pod["status"] |= of

    assert cells(pod, "Pod")["Status"] == word


def test_where_a_pod_is() -> None:
    """The wide columns."""
    pod = stored("Pod", {"spec": {**CONTAINERS, "nodeName": "n", "readinessGates": [{"conditionType": "x.io/y"}]}})
    pod["status"] |= {"podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "x.io/y", "status": "True"}]}
    found = cells(pod, "Pod")

    assert (found["IP"], found["Node"], found["Nominated Node"]) == ("10.0.0.1", "n", "<none>")
    assert found["Readiness Gates"] == "1/1"


def test_an_ended_pod_can_be_left_out() -> None:
    """By a condition of its row."""
    pod = stored("Pod", {"spec": CONTAINERS})
    strategy = kind_of("Pod").strategy
    assert strategy.row_conditions(pod) == []

    pod["status"]["phase"] = "Succeeded"
    assert strategy.row_conditions(pod)[0]["type"] == "Completed"


def job(spec: Json | None = None, of: Json | None = None, *conditions: str) -> Json:
    body = stored(
        "Job", {"spec": {"template": {"spec": {**CONTAINERS, "restartPolicy": "Never"}}} | (spec or {})}, group="batch"
    )
    body["status"] = {**(of or {}), "conditions": [{"type": one, "status": "True"} for one in conditions]}
    return body


@pytest.mark.parametrize(
    ("conditions", "word"),
    [
        ((), "Running"),
        (("Suspended",), "Suspended"),
        (("FailureTarget",), "FailureTarget"),
        (("SuccessCriteriaMet", "Complete"), "Complete"),
        (("FailureTarget", "Failed"), "Failed"),
    ],
)
def test_the_state_of_a_job(conditions: tuple[str, ...], word: str) -> None:
    """DF19."""
    assert cells(job(None, None, *conditions), "Job", group="batch")["Status"] == word


def test_a_deleted_job_is_terminating() -> None:
    """DF19: unless it is over."""
    body = job(None, None, "Suspended")
    body["metadata"]["deletionTimestamp"] = AN_HOUR_AGO

    assert cells(body, "Job", group="batch")["Status"] == "Terminating"


@pytest.mark.parametrize(
    ("spec", "of", "completions", "duration"),
    [
        ({"completions": 3}, {"succeeded": 1, "startTime": AN_HOUR_AGO}, "1/3", "60m"),
        ({"parallelism": 4}, {}, "0/1 of 4", ""),
        ({"parallelism": 1}, {"startTime": AN_HOUR_AGO, "completionTime": "2026-11-21T11:00:41Z"}, "0/1", "41s"),
    ],
)
def test_how_far_a_job_has_come(spec: Json, of: Json, completions: str, duration: str) -> None:
    """A work queue has no number of completions."""
    found = cells(job(spec, of), "Job", group="batch")

    assert (found["Completions"], found["Duration"]) == (completions, duration)


def test_the_row_of_an_event() -> None:
    """A series tells when it was seen last, and how often."""
    event = stored(
        "Event",
        {
            "involvedObject": {"kind": "Job", "name": "j", "namespace": "default"},
            "firstTimestamp": AN_HOUR_AGO,
            "source": {"component": "c", "host": "h"},
            "message": " done ",
        },
    )
    later = NOW + timedelta(seconds=30)
    found = cells(event, "Event", now=later)
    assert (found["Last Seen"], found["First Seen"], found["Count"]) == ("60m", "60m", 1)
    assert (found["Object"], found["Source"], found["Message"]) == ("job/j", "c, h", "done")

    event["series"] = {"count": 7, "lastObservedTime": "2026-11-21T12:00:00.000000Z"}
    found = cells(event, "Event", now=later)
    assert (found["Last Seen"], found["Count"]) == ("30s", 7)


@pytest.mark.parametrize(
    ("conditions", "unschedulable", "word"),
    [
        ([], False, "Unknown"),
        ([{"type": "Ready", "status": "True"}], False, "Ready"),
        ([{"type": "Ready", "status": "Unknown"}], True, "NotReady,SchedulingDisabled"),
    ],
)
def test_how_a_node_is_doing(conditions: list[Json], unschedulable: bool, word: str) -> None:
    """Ready or not, and whether pods may come."""
    node = stored("Node", {"metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "b"}}})
    node["status"] |= {"conditions": conditions}
    node["spec"]["unschedulable"] = unschedulable
    found = cells(node, "Node")

    assert (found["Status"], found["Roles"]) == (word, "b,worker")
