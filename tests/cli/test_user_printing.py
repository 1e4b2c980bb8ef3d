"""Tables, documents, choices and failures of the commands for users: pure, and safe to look at."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import click
import msgspec
import pytest
import yaml

from mirror.batch.label_selectors import parse
from mirror.cli.user import printing, watching
from mirror.cli.user.cluster import Cluster
from mirror.cli.user.events import event_of
from mirror.cli.user.failures import Doing, Failure, NotAllowed, failure_of
from mirror.cli.user.following import Jobs
from mirror.cli.user.get import Wanted, _listed, columns, filters, sort, summary, why
from mirror.cli.user.log_output import LONGEST_LINE, Writer
from mirror.cli.user.log_targets import Choice, Target, choose
from mirror.cli.user.naming import Chosen
from mirror.cli.user.pods import Pod, order_of, pod_of
from mirror.cli.user.printing import Column
from mirror.cli.user.sources import view_of
from mirror.cli.user.terminal import Display
from mirror.cli.user.watching import Changes, screen
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import JOB
from mirror.kube.errors import BadAnswer, Forbidden, KubeError, NotFound, ServerFailure, Unauthorized, Unreachable
from mirror.kube.kubeconfig import KubeconfigRefused
from mirror.kube.objects import Object, decode_object
from mirror.kube.resources import Resource
from mirror.model.views import JobView
from mirror.settings.kinds import KindEntry

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
EVIL = "a\x1b[31mb\nc\u202ed\x9bK"


PAIR = [
    Column[tuple[str, str]]("A", lambda row: row[0]),
    Column[tuple[str, str]]("B", lambda row: row[1], is_wide=True),
]


def test_a_table_is_as_wide_as_its_longest_cells() -> None:
    """Nothing is a dash; columns that are for ``-o wide`` are left out otherwise."""
    assert printing.table(PAIR, [("long", "x"), ("", "y")], wide=True) == ["A      B", "long   x", "-      y"]
    assert printing.table(PAIR, [("long", "x")]) == ["A", "long"]


def test_a_table_that_goes_on_keeps_its_widths_and_has_one_heading() -> None:
    """Later rows stand under the first ones, as far as they fit."""
    widths: list[int] = []

    assert printing.table(PAIR, [("first", "x")], wide=True, widths=widths) == ["A       B", "first   x"]
    assert printing.table(PAIR, [("a", "y")], wide=True, widths=widths) == ["a       y"]


def test_a_pipe_gets_what_a_wide_terminal_without_colours_shows() -> None:
    """Its lines are made in a quicker way: no cell of it is taken for a form."""
    rows = [("%s", "%-9d%%"), ("", "x  "), ("{0}", "wide" * 30), ("ü…", "")]
    assert printing.table(PAIR, rows, wide=True) == printing.table(PAIR, rows, wide=True, on=Display(width=1000))


def test_cells_cannot_do_anything_to_a_terminal() -> None:
    """Escape sequences, new lines and marks of direction are shown, not done (D18)."""
    for line in printing.table(PAIR, [(EVIL, EVIL)], wide=True):
        assert line.isprintable()


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_documents_hold_every_text_and_show_none_of_its_controls(form: Any) -> None:
    """The formats' own escapes: machines get the text as it is."""
    text = printing.document({"message": EVIL}, form)

    assert all(char == "\n" or (char.isascii() and char.isprintable()) for char in text)
    assert (json.loads(text) if form == "json" else yaml.safe_load(text)) == {"message": EVIL}


def view(name: str, state: str, created: str) -> JobView:
    return JobView(namespace="n", name=name, uid=name, state=state, created=created, started=created, succeeded=1)


def test_the_columns_of_get_tell_a_job_in_a_line() -> None:
    """A work queue has no number of completions; what is unknown is a dash."""
    one = view("train", "Running", "2026-03-01T11:59:00Z")

    lines = printing.table(columns(NOW, Wanted(everywhere=True)), [one])

    headings = ["NAMESPACE", "NAME", "WORKER", "STATE", "COMPLETIONS", "DURATION", "AGE", "LAG", "WHY"]
    assert lines[0].split() == headings
    assert lines[1].split() == ["n", "train", "-", "Running", "1", "60s", "60s", "-", "-"]


def test_pods_that_are_not_ready_say_for_how_long() -> None:
    """The condition's time, not the text: that must not change while nothing happens (D21)."""
    metadata = {
        "namespace": "n",
        "name": "train",
        "annotations": {"jobmirror.io/waiting-because": "pods are not ready"},
    }
    stuck = {"type": "jobmirror.io/Progressing", "status": "False", "reason": "PodsNotReady"}
    since = {"lastTransitionTime": "2026-03-01T11:57:00Z"}
    body = {"metadata": metadata, "spec": {"managedBy": "jobmirror.io/controller"}}
    found = decode_object(json.dumps(body | {"status": {"conditions": [stuck | since]}}).encode())
    assert why(view_of(JOB, found), NOW) == "pods are not ready for 3m"


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["a", "b", "c"]),
        ({"labels": "team=x"}, ["a", "b"]),
        ({"labels": "team=x,!old"}, ["a"]),
        ({"workers": ["east"]}, ["a"]),
        ({"states": ["waiting", "Failed"]}, ["b", "c"]),
        ({"reasons": ["workersfull"]}, ["b"]),
        ({"reasons": ["DeadlineExceeded"]}, ["c"]),
        ({"states": ["Waiting"], "workers": ["east"]}, []),
    ],
)
def test_get_shows_what_fits(options: dict[str, Any], names: list[str]) -> None:
    """Of several values of an option one has to fit, of several options all."""
    shown = filters(**{"labels": "", "workers": (), "states": (), "reasons": ()} | options)
    jobs = [
        labelled("a", {"team": "x"}, {"type": "jobmirror.io/Placed", "status": "True", "message": "east"}),
        labelled(
            "b", {"team": "x", "old": ""}, {"type": "jobmirror.io/Placed", "status": "False", "reason": "WorkersFull"}
        ),
        labelled("c", {}, {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}),
    ]
    assert [one.name for one in Wanted(filters=shown).views(JOB, jobs)] == names


async def test_get_asks_for_the_labels_that_are_wanted_alone() -> None:
    """Of 20,000 Jobs the API server leaves out those that nobody wants to see."""
    asked: list[dict[str, Any]] = []

    class Listing:
        namespace = "n"

        async def object_pages(self, resource: Resource, **query: Any) -> AsyncIterator[tuple[list[Object], str]]:
            asked.append(query)
            yield [], "1"

    wanted = Wanted(filters=filters("team in (x, y),!old", (), (), ()))
    assert await _listed(cast("Cluster", Listing()), wanted) == []
    assert {query["labels"] for query in asked} == {"!old,team in (x,y)"}


def labelled(name: str, labels: dict[str, str], condition: dict[str, str]) -> Object:
    metadata = {"namespace": "n", "name": name, "labels": labels, "creationTimestamp": "2026-03-01T11:00:00Z"}
    body = {
        "metadata": metadata,
        "spec": {"managedBy": "jobmirror.io/controller"},
        "status": {"conditions": [condition]},
    }
    return decode_object(json.dumps(body).encode())


def test_a_selector_that_cannot_be_read_is_a_usage_error() -> None:
    with pytest.raises(click.UsageError, match="--selector 'a in b'"):
        filters("a in b", (), (), ())


def test_rows_are_sorted_and_counted() -> None:
    seen = [view("a", "Running", "1"), view("b", "Waiting", "3"), view("c", "Running", "2")]
    for by, names in {"age": "bca", "state": "bac", "": "abc"}.items():
        ordered = list(seen)
        sort(ordered, by)
        assert "".join(one.name for one in ordered) == names
    assert summary(seen) == "3 Jobs: 1 Waiting, 2 Running"
    assert summary(seen[:1]) == "1 Job: 1 Running"


def source(name: str, minute: int, *, is_over: bool = False) -> Object:
    verdict = [{"type": "Complete", "status": "True"}] if is_over else []
    metadata = {"namespace": "n", "name": name, "uid": name, "creationTimestamp": f"2026-03-01T11:{minute:02}:00Z"}
    found = {"metadata": metadata, "spec": {"managedBy": "jobmirror.io/controller"}, "status": {"conditions": verdict}}
    return decode_object(json.dumps(found).encode())


def test_a_small_screen_shows_what_goes_on_and_is_new() -> None:
    """Of more Jobs than lines the finished and the old are left out, and counted."""
    jobs = [view_of(JOB, one) for one in (source("old", 1), source("over", 9, is_over=True), source("new", 5))]

    lines = screen(jobs, Wanted(), room=2)

    assert [line.split()[0] for line in lines[1:]] == ["new", "old", "…", "3"]
    assert lines[-2:] == ["… and 1 more", "3 Jobs: 2 Waiting, 1 Complete"]
    assert len(screen(jobs, Wanted(), room=3)) == 5
    assert "LAG" not in lines[0].split()
    assert len(screen([], Wanted(), room=3)) == 1


def test_a_job_that_leaves_the_filter_is_printed_once_as_it_is_then() -> None:
    """Who reads a pipe would take it for one that still fits; one that never fitted is none of it."""
    jobs, changes = Jobs(), Changes(Wanted(filters=filters("", (), ("Waiting",), ())))

    def told(*found: Object) -> list[tuple[str, str]]:
        return [(view.name, view.state) for view in changes.of(JOB, jobs.replace([*found]))]

    assert told(source("a", 1), source("b", 2), source("over", 3, is_over=True)) == [("a", "Waiting"), ("b", "Waiting")]
    assert told(source("a", 1, is_over=True), source("b", 2), source("over", 3, is_over=True)) == [("a", "Complete")]
    assert told(source("a", 4, is_over=True), source("b", 2)) == []
    assert told(source("a", 4, is_over=True)) == [("b", "Deleted")]
    assert told(source("a", 5)) == [("a", "Waiting")]


def test_a_job_that_a_selector_leaves_out_may_not_be_deleted() -> None:
    """The server reports both alike."""
    jobs, changes = Jobs(), Changes(Wanted(filters=filters("!app", (), (), ())))
    changes.of(JOB, jobs.replace([source("a", 1)]))

    assert [view.state for view in changes.of(JOB, jobs.apply("DELETED", source("a", 1)))] == ["Gone"]


async def test_watching_sends_the_labels_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twenty thousand Jobs one is listed and watched."""
    asked: list[dict[str, str | None]] = []

    async def follow(cluster: object, resource: object, **more: str | None) -> AsyncGenerator[Jobs, None]:
        asked.append(more)
        yield Jobs()

    monkeypatch.setattr(watching, "follow", follow)
    wanted = Wanted(chosen=Chosen((JOB,)), filters=filters("app=train,tier in (a,b)", (), (), ()))

    await watching._follow(cast(Cluster, SimpleNamespace(namespace="n")), JOB, wanted, lambda kind, jobs: None, [])

    assert [one["labels"] for one in asked] == [wanted.filters.selector]
    assert parse(wanted.filters.selector) == wanted.filters.labels


# -- pods and events ---------------------------------------------------------------------------------------------------


def test_a_pod_is_told_in_a_line() -> None:
    """Why it does not run is the reason of a container that waits, or has failed."""
    waiting = {
        "name": "main",
        "image": "tool:7",
        "ready": False,
        "restartCount": 3,
        "state": {"waiting": {"reason": "ImagePullBackOff"}},
    }
    found = pod_of(
        {
            "metadata": {"name": "p", "annotations": {"batch.kubernetes.io/job-completion-index": "4"}},
            "spec": {"nodeName": "n-1", "initContainers": [{"name": "init"}], "containers": [{"name": "main"}]},
            "status": {"phase": "Pending", "containerStatuses": [waiting]},
        },
        JOB,
    )

    assert (found.index, found.ready, found.restarts) == ("4", "0/1", 3)
    assert found.why == "ImagePullBackOff: container main: image tool:7"
    assert (found.containers, found.main) == (("init", "main"), "main")


def test_pods_stand_in_the_order_of_their_indexes() -> None:
    """As numbers, not as texts; pods without one come first."""
    found = [Pod(name=f"p{index}", phase="Running", index=index) for index in ("10", "9", "", "x²")]

    assert [pod.index for pod in sorted(found, key=order_of(JOB))] == ["", "x²", "9", "10"]


@pytest.mark.parametrize(
    "junk", [{}, {"metadata": 1, "spec": "x", "status": [1]}, {"status": {"containerStatuses": 7}}]
)
def test_whatever_a_worker_sends_is_some_pod_and_some_event(junk: dict[str, Any]) -> None:
    """Types are not trusted."""
    assert pod_of(junk).phase == "Unknown"
    assert event_of(junk).count == 1


def pod(name: str, phase: str, created: str, index: str = "") -> Pod:
    return Pod(name=name, phase=phase, created=created, index=index, containers=("init", "main"), main="main")


PODS = [
    pod("a", "Failed", "2026-03-01T11:00:00Z", "0"),
    pod("b", "Running", "2026-03-01T11:01:00Z", "0"),
    pod("c", "Pending", "2026-03-01T11:02:00Z", "1"),
    pod("d", "Succeeded", "2026-03-01T11:03:00Z", "2"),
]
CHOICES = {
    "what runs": (Choice(), [Target("b", "main")]),
    "of an index": (Choice(index=2), [Target("d", "main")]),
    "by name": (Choice(pod="a"), [Target("a", "main")]),
    "a container": (Choice(pod="a", container="init"), [Target("a", "init")]),
    "all containers": (Choice(index=1, all_containers=True), [Target("c", "init"), Target("c", "main")]),
    "all pods": (Choice(all_pods=True), [Target(name, "main") for name in "abcd"]),
    "all pods of an index": (Choice(index=0, all_pods=True), [Target("a", "main"), Target("b", "main")]),
}


@pytest.mark.parametrize(("choice", "targets"), CHOICES.values(), ids=CHOICES)
def test_the_log_that_is_meant_is_chosen(choice: Choice, targets: list[Target]) -> None:
    """What runs before what failed before what ended, the newest of them."""
    assert choose(PODS, choice, JOB)[0] == targets


def test_a_log_is_chosen_by_role() -> None:
    """The launcher's first once it has begun; a role that nobody has is said, with those that there are."""
    mpi = kinds_of([KindEntry(kind="MPIJob")])["MPIJob"]
    roles = {"l": ("launcher", "Succeeded"), "v": ("worker", "Running"), "w": ("worker", "Failed")}
    found = [msgspec.structs.replace(pod(name, phase, "", "0"), role=role) for name, (role, phase) in roles.items()]

    targets, remark = choose(found, Choice(), mpi)
    assert ([one.pod for one in targets], "select with --role, --index or --pod" in remark) == (["l"], True)
    assert choose(found, Choice(role="worker"), mpi)[0] == [Target("v", "main")]
    assert [one.pod for one in choose(found, Choice(role="worker", all_pods=True), mpi)[0]] == ["v", "w"]
    with pytest.raises(Failure, match=r"no pod of role chief; its roles: launcher, worker"):
        choose(found, Choice(role="chief"), mpi)
    with pytest.raises(Failure, match="roles have no number here"):
        choose(found, Choice(role="worker/0"), mpi)


def test_without_pods_nothing_is_meant() -> None:
    """Who follows waits for one."""
    assert choose([], Choice(pod="x"), JOB) == ([], "")


@pytest.mark.parametrize("choice", [Choice(pod="x"), Choice(index=9), Choice(container="x")], ids=["pod", "index", "c"])
def test_what_is_not_there_is_said(choice: Choice) -> None:
    """With what is there instead."""
    with pytest.raises(Failure, match=r"no pod|no container"):
        choose(PODS, choice, JOB)


# -- logs --------------------------------------------------------------------------------------------------------------


def test_one_log_is_passed_on_byte_by_byte() -> None:
    """At once, whatever is in it."""
    output = io.BytesIO()
    writer = Writer(output)

    writer.write(b"\xff\x1b[31m")
    assert output.getvalue() == b"\xff\x1b[31m"
    writer.end()


def test_several_logs_do_not_tear_each_others_lines() -> None:
    """A line is written when it is whole, or when its log ends, or when it is absurdly long."""
    output = io.BytesIO()
    one, other = (Writer(output, prefix=prefix, is_alone=False) for prefix in (b"1 ", b"2 "))

    one.write(b"be")
    other.write(b"whole\nrest")
    one.write(b"gun\n\nx")
    other.end()
    one.end()
    assert output.getvalue() == b"2 whole\n1 begun\n1 \n2 rest\n1 x\n"
    one.write(b"y" * (LONGEST_LINE + 1))
    assert len(output.getvalue()) > LONGEST_LINE


# -- failures ----------------------------------------------------------------------------------------------------------

LISTING = Doing("list", "jobs.batch", "team-a")
FAILURES: dict[str, tuple[KubeError, str]] = {
    "forbidden": (
        Forbidden(403, "Forbidden", "no"),
        "missing permission: list jobs.batch in namespace team-a on the management cluster; "
        "a Role with this verb and resource grants it (no)",
    ),
    "unauthorized": (
        Unauthorized(401),
        "the management cluster rejected your credentials (401): log in again, or renew your token",
    ),
    "no namespace": (
        NotFound(404, about_kind="namespaces", about_name="team-a"),
        "namespace team-a not found on the management cluster",
    ),
    "unreachable": (
        Unreachable("refused"),
        "the management cluster is unreachable: refused; check that the API server runs, and that no firewall is "
        "between it and this machine",
    ),
    "a web page": (BadAnswer("HTML"), "the management cluster sent an invalid response: HTML"),
    "broken": (ServerFailure(500, "X", "etcd is down"), "the management cluster answered 500: etcd is down"),
    "kubeconfig": (
        KubeconfigRefused("users[0].user", "is odd", "mend it"),
        "kubeconfig: users[0].user: is odd; mend it",
    ),
}


@pytest.mark.parametrize(("error", "text"), FAILURES.values(), ids=FAILURES)
def test_failures_are_said_in_words(error: KubeError, text: str) -> None:
    """Whose cluster, which right, what to do."""
    failure = failure_of(error, LISTING)

    assert (failure.message, failure.exit_code) == (text, 1)
    assert isinstance(failure, NotAllowed) is isinstance(error, Forbidden)


def test_a_failure_is_one_clean_line() -> None:
    """A server's message is no more trusted than anybody's."""
    assert Failure(EVIL).message.isprintable()


def test_a_name_on_a_line_of_its_own_is_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    """``-o name`` prints what a worker calls its pods."""
    printing.say(["pod/\x1b[2Jowned\nfake", "✓ fine"])
    assert capsys.readouterr().out == "pod/\\x1b[2Jowned\\nfake\n✓ fine\n"
