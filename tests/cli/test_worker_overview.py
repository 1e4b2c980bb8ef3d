"""Rows of workers: from Secrets, the manager's record, and the Jobs that are recorded there."""

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from mirror.cli.user.printing import table
from mirror.cli.worker.listing import columns
from mirror.cli.worker.operations.overview import Tally, rows
from mirror.kinds.registry import JOB
from mirror.kube.objects import Object, decode_object
from mirror.model import names
from mirror.workers.inventory import MOST_LABEL_BYTES, Declared, Entry, WorkerInventory, kept_labels


def secret(name: str = "east", kubeconfig: bytes = b"kubeconfig", **annotations: str) -> Object:
    marks = {names.PREFIX + key: value for key, value in annotations.items()}
    metadata = {"name": name, "labels": {names.WORKER: "true", "region": "eu"}, "annotations": marks}
    data = {"kubeconfig": base64.b64encode(kubeconfig).decode()} if kubeconfig else {}
    return decode_object(msgspec.json.encode({"metadata": metadata, "data": data}))


def job(
    name: str, *, worker: str = "", ended: bool = False, managed_by: str | None = names.DEFAULT_MANAGED_BY
) -> Object:
    listed: list[dict[str, Any]] = []
    if worker:
        listed.append({"type": names.PLACED, "status": "True", "message": worker})
    if ended:
        listed.append({"type": "Complete", "status": "True"})
    spec = {"managedBy": managed_by} if managed_by else {}
    body = {"metadata": {"name": name, "namespace": f"team-{name}"}, "spec": spec, "status": {"conditions": listed}}
    return decode_object(msgspec.json.encode(body))


def counted(*jobs: Object) -> Tally:
    tally = Tally()
    for one in jobs:
        tally.count(JOB, one)
    return tally


def test_unfinished_jobs_are_counted_where_they_are_recorded() -> None:
    """Finished ones keep their record, and nobody waits for them."""
    tally = counted(job("a", worker="east"), job("b", worker="east", ended=True), job("c"), job("d", managed_by=None))

    assert (tally.on("east"), tally.on("west")) == (1, 0)
    assert tally.some_on("east") == "team-a/a"
    assert set(tally.namespaces) == {"team-a", "team-b", "team-c"}


def test_only_a_few_are_named() -> None:
    """Ten thousand Jobs are a number."""
    tally = counted(*(job(f"j{number}", worker="east") for number in range(50)))

    assert tally.on("east") == 50
    assert tally.some_on("east").endswith("team-j4/j4, …")


def test_a_row_tells_what_the_secret_and_the_manager_say() -> None:
    """Nobody asks the worker."""
    entry = Entry(uid="u", state="Connected", since="2026-03-01T11:00:00Z", version="v1.33.1")
    (row,) = rows(
        [secret(capacity="20", cordoned="true")], WorkerInventory({"east": entry}), counted(job("a", worker="east"))
    )

    assert (row.name, row.state, row.version, row.jobs, row.capacity) == ("east", "Connected", "v1.33.1", 1, 20)
    assert (row.cordoned, row.draining, row.reason) == (True, False, "")
    assert row.labels == {"name": "east", "region": "eu"}


def test_a_worker_that_nobody_has_seen_is_unknown() -> None:
    """The manager does not run, or has only just been told."""
    (row,) = rows([secret(capacity="many")], WorkerInventory({}), Tally())

    assert row.state == "Unknown"
    assert "expected a whole number" in row.reason


def test_a_worker_without_a_secret_is_listed_while_jobs_are_there() -> None:
    """D15: they wait for it."""
    (row,) = rows([], WorkerInventory({}), counted(job("a", worker="gone")))

    assert (row.name, row.jobs, row.reason) == ("gone", 1, "no Secret registers it")


DEAD = WorkerInventory({"east": Entry(state="Lost", gone_by="uid", reason="its Secret was deleted")})


@pytest.mark.parametrize(
    ("secrets", "inventory"),
    [
        ([secret(gone="true")], WorkerInventory({"east": Entry(state="Lost")})),
        ([secret()], DEAD),
        ([], DEAD),
        ([], WorkerInventory({"east": Entry(state="Lost", gone_by="uid", declared=Declared(by="Secret a/b"))})),
    ],
    ids=["its Secret says so", "another one says nothing", "its Secret was removed", "something else declares it"],
)
def test_a_worker_that_is_declared_dead_is_shown_as_that(secrets: list[Object], inventory: WorkerInventory) -> None:
    """D14: its Jobs start again elsewhere, and no new ones go there."""
    (row,) = rows(secrets, inventory, counted(job("a", worker="east")))
    assert (row.dead, row.jobs) == (True, 1)
    heading, line = table(columns(datetime(2026, 3, 1, tzinfo=UTC)), [row])
    assert line[heading.index("SCHEDULABLE") :].startswith("no (declared dead)")


def test_a_removed_worker_is_listed_no_more() -> None:
    """Also before the manager has forgotten it."""
    assert rows([], WorkerInventory({"gone": Entry(uid="u", state="Lost")}), Tally()) == []


def test_what_a_worker_says_is_shown_and_does_nothing() -> None:
    """D18: a reason may quote it."""
    (row,) = rows(
        [secret(kubeconfig=b"")], WorkerInventory({"east": Entry(state="Lost", reason="\x1b[31mred")}), Tally()
    )

    assert row.reason.isprintable()
    assert "data.kubeconfig: is missing" in row.reason


def test_the_labels_of_a_declared_worker_are_those_that_the_manager_recorded() -> None:
    """Its Secret or ClusterProfile is somewhere else, where the operator may not read: what is left out is said."""
    labels = {
        "region": "eu",
        "name": "prod",
        "long": "x" * 63,
        **{f"label-{number:02}": "y" * 40 for number in range(20)},
    }
    kept, left_out = kept_labels(labels.items())
    entry = Entry(state="Connected", declared=Declared(by="Secret clusters/prod", labels=kept, more_labels=left_out))
    record = msgspec.json.decode(msgspec.json.encode(entry), type=Entry)
    [row] = rows([], WorkerInventory({"prod": record}), Tally())

    assert row.labels == kept
    assert 0 < len(kept) < len(labels)
    assert len(kept) + row.more_labels == len(labels)
    assert sum(len(key) + len(value) for key, value in kept.items()) <= MOST_LABEL_BYTES
    text = table(columns(datetime(2026, 3, 1, tzinfo=UTC)), [row], wide=True)[1]
    assert f"… ({left_out} more)" in text
    assert kept_labels((("region", "eu"), ("name", "prod"))) == ({"name": "prod", "region": "eu"}, 0)
