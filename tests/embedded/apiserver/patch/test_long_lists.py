"""Lists of tens of thousands of items, which a body of 3 MiB can hold, are merged without looking at each pair."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from mirror.embedded.apiserver.crds.definition_rules import check_definition
from mirror.embedded.apiserver.patch import merge_patch, strategic
from mirror.embedded.apiserver.patch.ordering import Places

ITEMS = 1_000


class Name(str):
    """Counts with how many others it is compared."""

    compared: ClassVar[int] = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return super().__eq__(other)


class Part(dict[str, Any]):
    """The same of a part of an object."""

    compared: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Part.compared += 1
        return super().__eq__(other)


def named(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"name": Name(f"c{place}"), **more} for place in range(count)]


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": named(ITEMS, image="new")},
        {"containers": named(ITEMS, **{"$patch": "delete"})},
        {"$setElementOrder/containers": named(ITEMS), "containers": named(ITEMS, image="new")},
        {"containers": [{"name": Name(f"d{place}")} for place in range(ITEMS)]},
    ],
    ids=["changed", "deleted", "ordered", "added"],
)
def test_merging_takes_as_many_comparisons_as_there_are_items(
    patch: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """80,000 containers once held up everybody else for minutes."""
    monkeypatch.setattr(strategic, "copied", lambda one: one)  # it would make plain texts of the names
    monkeypatch.setattr(Name, "compared", 0)
    strategic.patched({"containers": named(ITEMS, image="old")}, patch, "PodSpec")
    assert Name.compared < 30 * ITEMS


def test_the_members_of_a_map_are_put_in_order_without_comparing_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Managed fields of a large set are such a map."""
    monkeypatch.setattr(Name, "compared", 0)
    names = [Name(f"f:{place}") for place in range(ITEMS)]
    assert list(merge_patch.in_order(dict.fromkeys(reversed(names)), "")) == sorted(names)
    assert Name.compared < 30 * ITEMS


def test_the_versions_of_a_definition_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty thousand of them fit in a body."""
    versions = [
        {"name": f"v{place}", "served": True, "storage": place == 1, "schema": Part(openAPIV3Schema={"type": "object"})}
        for place in range(1, ITEMS)
    ]
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "a.example", "scope": "Cluster", "names": names, "versions": versions}
    body = {
        "metadata": {"name": "things.a.example"},
        "spec": {**spec, "conversion": {"strategy": "None"}},
        "status": {"storedVersions": ["v1"]},
    }
    monkeypatch.setattr(Part, "compared", 0)
    assert not list(check_definition(body))
    assert Part.compared < 10 * ITEMS


def test_keys_that_cannot_be_hashed_are_found_as_well() -> None:
    """A merge key may be anything in the body of somebody who is up to no good."""
    places = Places(["a", {"b": 1}, ["c"], "a", {"b": 1}])
    assert [places.of(one) for one in ("a", {"b": 1}, ["c"], {}, "d")] == [0, 1, 2, None, None]
    assert ["c"] in places
    assert None not in places
