"""The record of workers."""

from __future__ import annotations

import pytest
from doubles.jobs import as_object

from mirror.workers.inventory import FORMER, MOST_FORMER, Entry, IdentityRejected, WorkerInventory, encode

BOOK = WorkerInventory({"east": Entry(uid="e"), "west": Entry(uid="w"), "new": Entry(state="Lost")})


@pytest.mark.parametrize(
    ("worker", "uid", "has_prefix", "refusal"),
    [
        pytest.param("east", "e", False, None, id="the same cluster as before"),
        pytest.param("north", "n", False, None, id="a new one"),
        pytest.param("new", "n", False, None, id="registered, never reached"),
        pytest.param("east", "x", False, "another cluster", id="the kubeconfig leads elsewhere now"),
        pytest.param("north", "w", False, "already, as worker west", id="a cluster twice"),
        pytest.param("self", "management", False, "namespace-prefix", id="the management cluster itself"),
        pytest.param("self", "management", True, None, id="the same, with a prefix"),
    ],
)
def test_a_worker_is_a_cluster(worker: str, uid: str, has_prefix: bool, refusal: str | None) -> None:
    """D19."""
    if refusal is None:
        BOOK.check_identity(worker, uid, management_uid="management", has_prefix=has_prefix)
        return
    with pytest.raises(IdentityRejected, match=refusal):
        BOOK.check_identity(worker, uid, management_uid="management", has_prefix=has_prefix)


def test_what_is_written_is_read_again() -> None:
    """Entries are one JSON text each; what is empty is left out."""
    entry = Entry("u", "Lost", "2026-03-01T12:00:00Z", "2026-03-01T11:00:00Z", "network")
    configmap = as_object({"metadata": {"name": "x"}, "data": {"east": encode(entry), "west": encode(Entry())}})
    assert WorkerInventory.of(configmap).entries == {"east": entry, "west": Entry()}
    assert encode(Entry()) == "{}"


def test_an_entry_that_makes_no_sense_is_as_if_it_were_not_there() -> None:
    """People edit ConfigMaps."""
    data = {"a": "no json", "b": "[]", "c": '{"uid": 7}', "good": '{"uid":"u","unknown":1}'}
    assert WorkerInventory.of(as_object({"metadata": {"name": "x"}, "data": data})).entries == {"good": Entry("u")}
    assert WorkerInventory.of(None).entries == {}


def test_another_worker_of_a_cluster_is_found() -> None:
    """Of several the first by name, whatever came first; nobody once it is another cluster, or nothing is known."""
    inventory = WorkerInventory({"south": Entry("s"), "north": Entry("s"), "new": Entry()})
    assert inventory.registered_as("east", "s") == "north"
    assert inventory.registered_as("north", "s") == "south"
    inventory.put("north", Entry("n"))
    assert (inventory.registered_as("east", "s"), inventory.registered_as("east", "n")) == ("south", "north")
    assert inventory.drop("south")
    assert not inventory.drop("south")
    assert inventory.registered_as("east", "s") is None
    assert inventory.entry("south") == Entry()
    assert inventory.registered_as("east", "") is None, "of one that was never reached nothing is known"


def test_a_worker_may_be_the_cluster_of_one_that_is_no_more() -> None:
    """It was renamed."""
    BOOK.check_identity("north", "w", management_uid="management", has_prefix=False, former="west")
    with pytest.raises(IdentityRejected, match="as worker west"):
        BOOK.check_identity("north", "w", management_uid="management", has_prefix=False, former="east")


def test_a_forgotten_cluster_leaves_its_prefix() -> None:
    """Mirrors may be there; bounded, the oldest goes first."""
    inventory = WorkerInventory({"east": Entry(uid="e", namespace_prefix="a-"), "new": Entry(state="Lost")})
    inventory.forget("east", at="2026-01-01T00:00:00Z")
    inventory.forget("new", at="2026-01-01T00:00:01Z")
    assert (
        inventory.prefix_on("north", "e"),
        inventory.prefix_on("north", "new"),
        inventory.registered_as("north", "e"),
    ) == (
        "a-",
        None,
        None,
    )
    assert (
        WorkerInventory.of(
            as_object({"metadata": {}, "data": {key: encode(one) for key, one in inventory.entries.items()}})
        )
        == inventory
    )
    for number in range(MOST_FORMER):
        inventory.put("east", Entry(uid=f"u{number}"))
        inventory.forget("east", at=f"2026-01-02T00:{number // 60:02}:{number % 60:02}Z")
    assert (len(inventory.entries), inventory.prefix_on("north", "e"), inventory.prefix_on("north", "u0")) == (
        MOST_FORMER,
        None,
        "",
    )


def test_of_former_clusters_the_oldest_goes_first() -> None:
    """D19: whatever they are called; the record has its entries by name."""
    inventory = WorkerInventory({})
    for number in range(MOST_FORMER + 1):
        inventory.put("east", Entry(uid=f"u{999 - number}"))
        inventory.forget("east", at=f"2026-01-02T00:{number // 60:02}:{number % 60:02}Z")
        inventory = WorkerInventory(dict(sorted(inventory.entries.items())))
    assert len(inventory.entries) == MOST_FORMER
    assert (f"{FORMER}u999" in inventory.entries, f"{FORMER}u{999 - MOST_FORMER}" in inventory.entries) == (False, True)
