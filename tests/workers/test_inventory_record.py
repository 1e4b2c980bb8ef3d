"""The record of workers, written by several: by holders of slots, by whoever comes late, with another number (S11)."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest
from doubles.managers import HOME
from doubles.transport import Fault, Wire, client_of, wire_to

from mirror.kube.errors import NotLeading
from mirror.model import names
from mirror.sharding.share import EVERYTHING, Share
from mirror.sharding.slots import slot_of_worker
from mirror.telemetry.logs import get_log
from mirror.workers.inventory import FORMER, MOST_BYTES, Entry
from mirror.workers.inventory_record import InventoryRecord

pytestmark = pytest.mark.looptime

EAST, NORTH = Share(slot_of_worker("east", 2)), Share(slot_of_worker("north", 2))
ASSIGNER = Share(slots=2)


def record(wire: Wire, share: Share) -> InventoryRecord:
    return InventoryRecord(client_of(wire), HOME, annotations={}, log=get_log("test"), share=share, lease_seconds=30.0)


async def begun(wire: Wire, share: Share) -> InventoryRecord:
    """As who has begun to work with it has it."""
    found = record(wire, share)
    await found.take_over()
    await found.read()
    return found


def stored(wire: Wire) -> dict[str, Entry]:
    found = wire.server.get("configmaps", names.WORKERS_CONFIGMAP, HOME)
    return {name: Entry(uid=json.loads(text).get("uid", "")) for name, text in (found.get("data") or {}).items()}


def said(wire: Wire) -> str:
    found = wire.server.get("configmaps", names.WORKERS_CONFIGMAP, HOME)
    return str((found["metadata"].get("annotations") or {}).get(names.SLOTS, ""))


def change(one: InventoryRecord, worker: str, uid: str) -> None:
    one.put(worker, Entry(uid=uid))


async def test_each_writes_its_own_and_leaves_those_of_others() -> None:
    """Whoever writes first: the other's write meets another version, and is made again."""
    wire = wire_to("c")
    east, north = await begun(wire, EAST), await begun(wire, NORTH)
    for number in range(3):
        change(east, "east", f"e{number}")
        change(north, "north", f"n{number}")
        await asyncio.gather(east.write(), north.write())
        assert stored(wire) == {"east": Entry(uid=f"e{number}"), "north": Entry(uid=f"n{number}")}
    await north.refresh()
    assert north.known.entry("east").uid == "e2"


async def test_of_its_own_it_knows_best_and_of_others_what_is_written() -> None:
    """Somebody has edited both."""
    wire = wire_to("c")
    east, north = await begun(wire, EAST), await begun(wire, NORTH)
    change(east, "east", "e")
    await east.write()
    change(north, "north", "n")
    await north.write()
    for name in ("east", "north"):
        wire.server.edit(
            "configmaps", names.WORKERS_CONFIGMAP, lambda body, at=name: body["data"].update({at: '{"uid":"x"}'}), HOME
        )
    change(east, "east", "e2")
    await east.write()
    assert stored(wire) == {"east": Entry(uid="e2"), "north": Entry(uid="x")}
    assert east.known.entry("north").uid == "x"


async def test_what_was_no_worker_any_more_and_is_one_again_stays_one() -> None:
    """D19: an entry of a former cluster is any slot's; one that has seen it long ago does not bring it back."""
    wire = wire_to("c")
    east = await begun(wire, EAST)
    change(east, "east", "u")
    await east.write()
    east.forget("east", at=datetime(2026, 1, 1, tzinfo=UTC))
    await east.write()
    north = await begun(wire, NORTH)
    north.drop(FORMER + "u")
    change(north, "north", "u")
    await north.write()
    change(east, "east", "v")
    await east.write()
    assert stored(wire) == {"east": Entry(uid="v"), "north": Entry(uid="u")}


async def test_a_record_that_somebody_deletes_is_made_again_with_its_number() -> None:
    """Each adds its own when it writes next."""
    wire = wire_to("c")
    await begun(wire, ASSIGNER)
    east, north = await begun(wire, EAST), await begun(wire, NORTH)
    change(east, "east", "e")
    await east.write()
    change(north, "north", "n")
    await north.write()
    wire.server.remove("configmaps", names.WORKERS_CONFIGMAP, HOME)
    change(east, "east", "e2")
    await east.write()
    assert stored(wire) == {"east": Entry(uid="e2")}
    assert said(wire).startswith("2 30")
    change(north, "north", "n2")
    await north.write()
    assert stored(wire) == {"east": Entry(uid="e2"), "north": Entry(uid="n2")}


async def test_who_has_a_slot_of_another_number_writes_nothing() -> None:
    """S11: also what was on its way when the number changed."""
    wire = wire_to("c")
    await begun(wire, ASSIGNER)
    east = await begun(wire, EAST)
    change(east, "east", "e")
    await east.write()
    alone = await begun(wire, EVERYTHING)
    assert alone.known.entry("east").uid == "e"
    assert said(wire) == ""
    change(east, "east", "late")
    with pytest.raises(NotLeading, match="managers with 1 slots work now, and not with 2"):
        await east.write()
    assert stored(wire) == {"east": Entry(uid="e")}


async def test_a_change_that_arrives_late_changes_nothing() -> None:
    """S11: who assigns puts a mark of its own there, whatever the number was."""
    wire = wire_to("c")
    await begun(wire, ASSIGNER)
    late = InventoryRecord(
        client_of(wire, peer="late"), HOME, annotations={}, log=get_log("test"), share=EVERYTHING, lease_seconds=15.0
    )
    wire.late["late"] = 50.0
    changing = asyncio.ensure_future(late.take_over())
    await asyncio.sleep(30 + 60 + 10)
    assert wire.coming, "it has waited, and is about to write"
    await begun(wire, ASSIGNER)
    await asyncio.sleep(50)
    assert said(wire).startswith("2 30 ")
    changing.cancel()


@pytest.mark.parametrize("before", [EVERYTHING, ASSIGNER], ids=["1", "2"])
async def test_another_number_is_waited_out_and_then_written(before: Share) -> None:
    """S10: a Lease of those, which the record says or is as long as ours, and a minute."""
    wire = wire_to("c")
    one = await begun(wire, before)
    after = Share(slots=4)
    changing = asyncio.ensure_future(record(wire, after).take_over())
    holding = asyncio.ensure_future(record(wire, Share(slot_of_worker("east", 4))).take_over())
    was = said(wire)
    await asyncio.sleep(89)
    assert said(wire) == was
    assert not holding.done()
    await asyncio.sleep(4)
    assert said(wire).startswith("4 30 ")
    assert changing.done()
    assert holding.done()
    assert one.known.entries == {}


async def test_who_has_waited_for_a_number_waits_for_yet_another() -> None:
    """Somebody's change of before has arrived meanwhile."""
    wire = wire_to("c")
    await begun(wire, ASSIGNER)
    changing = asyncio.ensure_future(record(wire, EVERYTHING).take_over())
    await asyncio.sleep(60)
    wire.server.edit(
        "configmaps",
        names.WORKERS_CONFIGMAP,
        lambda body: body["metadata"]["annotations"].update({names.SLOTS: "8 30 x"}),
        HOME,
    )
    await asyncio.sleep(100)
    assert said(wire) == "8 30 x"
    await asyncio.sleep(30)
    assert said(wire) == ""
    assert changing.done()


async def test_an_answer_that_is_lost_is_read() -> None:
    wire = wire_to("c")
    wire.arrange("create", "configmaps", Fault.LOSE_ANSWER)
    await begun(wire, ASSIGNER)
    assert said(wire).startswith("2 30 ")


async def test_what_a_reading_shows_to_be_lost_is_written_again() -> None:
    """D14: an end of leases that is known but stored no more is stored before another lease is sent."""
    wire = wire_to("c")
    east = await begun(wire, EAST)
    east.put("east", Entry(uid="e", fenced_until="2026-01-01T00:00:00Z"))
    await east.write()
    wire.server.edit("configmaps", names.WORKERS_CONFIGMAP, lambda body: body["data"].update(east='{"uid":"e"}'), HOME)
    await east.refresh()
    assert not east.is_written("east")
    await east.write()
    assert east.is_written("east")
    text = wire.server.get("configmaps", names.WORKERS_CONFIGMAP, HOME)["data"]["east"]
    assert json.loads(text)["fencedUntil"] == "2026-01-01T00:00:00Z"


async def test_where_it_is_too_much_for_one_it_shortens_what_is_its_own() -> None:
    """Each holder would write all entries of all others, else."""
    wire = wire_to("c")
    east, north = await begun(wire, EAST), await begun(wire, NORTH)
    east.put("east", Entry(uid="e", reason="r" * 1000))
    await east.write()
    mine = [name for number in range(200) if NORTH.has(name := f"north-{number}")]
    for name in mine:
        north.put(name, Entry(uid=name, reason="r" * (MOST_BYTES // len(mine))))
    await north.write()
    data = wire.server.get("configmaps", names.WORKERS_CONFIGMAP, HOME)["data"]
    assert len(json.loads(data["east"])["reason"]) == 1000
    assert sum(map(len, data.values())) < MOST_BYTES
