"""The record of workers fits into one ConfigMap, whatever those who declare them write (D19, D29)."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import msgspec

from mirror.kube.client import Client
from mirror.kube.objects import Object, decode_object
from mirror.kube.requests import Request
from mirror.telemetry.logs import get_log
from mirror.workers.inventory import Declared, Entry, EntryTexts, WorkerInventory, encode, kept_labels
from mirror.workers.inventory_record import InventoryRecord

LONG = "n" * 248


def declared(number: int) -> Entry:
    labels, more = kept_labels([(f"k{at:03d}.example.com/abcdefgh", "v" * 63) for at in range(64)])
    by = f"ClusterProfile {'s' * 63}/{LONG}"
    return Entry(
        uid=f"uid-{number}",
        state="Unreachable",
        since="2026-11-26T00:00:00Z",
        lost_since="2026-11-26T00:00:00Z",
        reason="x" * 400,
        version="v1.33.1",
        declared=Declared(by=by, labels=labels, more_labels=more, capacity=number, key="value", account="a" * 253),
        remark=f"its name is also declared by {by}, {by}, {by}, …, which is ignored",
    )


def inventory(count: int) -> WorkerInventory:
    return WorkerInventory({f"{LONG}{at:05d}": declared(at) for at in range(count)})


class Management:
    """It keeps one ConfigMap of 1 MiB at most."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}
        self.writes = 0

    async def send_object(self, request: Request) -> Object:
        if request.body is not None:
            self.writes += 1
            changes: dict[str, Any] = json.loads(request.body)["data"]
            self.data = {key: text for key, text in {**self.data, **changes}.items() if text is not None}
            assert sum(len(key) + len(text) for key, text in self.data.items()) < 2**20
        body = {"metadata": {"name": "w", "namespace": "n", "resourceVersion": str(self.writes + 1)}, "data": self.data}
        return decode_object(msgspec.json.encode(body))


def record(management: Management) -> InventoryRecord:
    return InventoryRecord(cast("Client", management), "n", annotations={}, log=get_log("test"))


def put_all(record: InventoryRecord, known: WorkerInventory) -> None:
    for name, entry in known.entries.items():
        record.put(name, entry)


def test_as_long_as_there_is_room_everything_is_written() -> None:
    """It is what people read."""
    few = inventory(100)
    assert EntryTexts().of(few.entries) == {name: encode(entry) for name, entry in few.entries.items()}


def test_of_very_many_what_is_needed_is_written() -> None:
    """Who they are, since when they are lost, and what leads there."""
    many = inventory(1000)
    read = {name: msgspec.json.decode(text, type=Entry) for name, text in EntryTexts().of(many.entries).items()}
    kept = [(one.uid, one.state, one.lost_since, one.declared and one.declared.capacity) for one in read.values()]
    assert kept == [(f"uid-{at}", "Unreachable", "2026-11-26T00:00:00Z", at) for at in range(1000)]
    assert all(one.declared is not None and one.declared.more_labels == 64 for one in read.values())
    assert all(one.declared is not None and one.declared.by.endswith("…") for one in read.values())
    assert {one.declared and (one.declared.key, one.declared.account) for one in read.values()} == {("value", "")}


async def test_another_worker_can_be_recorded_whatever_others_declare() -> None:
    """Without its uid on record nothing is placed there; and what is left out is no reason to write again."""
    management = Management()
    first = record(management)
    put_all(first, inventory(1000))
    await first.write()
    first.put("east", Entry(uid="e"))
    await first.write()
    assert first.has_written("east", "e", "")

    second, writes = record(management), management.writes
    await second.read()
    assert second.known.entry("east").uid == "e"
    put_all(second, inventory(1000))
    await second.write()
    assert management.writes == writes
    assert second.is_written(f"{LONG}00000")
    second.drop("east")
    await second.write()
    assert "east" not in management.data


async def test_what_another_write_has_written_is_not_written_again() -> None:
    """A thousand workers that are reached for the first time each wait until that is written."""
    management = Management()
    first = record(management)
    for number in range(10):
        first.put(f"worker-{number}", Entry(uid=f"{number}"))
    async with asyncio.TaskGroup() as scope:
        for _ in range(10):
            scope.create_task(first.write())
    assert management.writes == 1
    assert all(first.has_written(f"worker-{number}", f"{number}", "") for number in range(10))


def test_an_entry_is_encoded_once() -> None:
    """Of a thousand one has changed."""
    texts, known = EntryTexts(), inventory(10)
    before = texts.of(known.entries)
    known.put("east", Entry(uid="e"))
    after = texts.of(known.entries)
    assert all(after[name] is text for name, text in before.items())
    assert after["east"] == encode(Entry(uid="e"))
