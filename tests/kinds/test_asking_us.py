"""Whether an object on a worker asks to be mirrored itself, so that it is no mirror (D1); whose a source is (D2)."""

from __future__ import annotations

import msgspec
import pytest

from mirror.kinds import registry
from mirror.kinds.asking import asks_us_alone, manager_of
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.objects import decode_object
from mirror.model import names
from mirror.model.terms import manager_in, mark_in, request_in, term_of, with_manager, with_term
from mirror.settings.schema import KindEntry

OURS = names.DEFAULT_MANAGED_BY


@pytest.mark.parametrize(("managed_by", "wanted"), [(OURS, True), ("example.com/other", False), (None, False)])
def test_our_own_value_is_asked_of_us(managed_by: str | None, wanted: bool) -> None:
    found = {"metadata": {"name": "a"}, "spec": {"managedBy": managed_by} if managed_by else {}}
    (job,) = registry.BUILT_IN
    assert asks_us_alone(job, decode_object(msgspec.json.encode(found)), OURS) is wanted


def test_a_value_that_others_set_too_says_nothing() -> None:
    """Kueue puts it on a RayJob of a queue that it spreads over clusters; where our mirror runs it may do so, too."""
    kind = kinds_of([KindEntry(kind="RayJob")])["RayJob"]
    found = {"metadata": {"name": "a"}, "spec": {"managedBy": kind.managed_by_value}}
    assert kind.managed_by_value
    assert not asks_us_alone(kind, decode_object(msgspec.json.encode(found)), OURS)


@pytest.mark.parametrize(
    ("reason", "mark", "wanted"),
    [
        ("Placed", None, None),
        ("Placed:t1", None, None),
        ("Placed", "team-a", "team-a"),
        ("PlacedBy_team_a", None, "team-a"),
        ("PlacedBy_team_a:t1", None, "team-a"),
        ("PlacedBy_team_a,MoveWanted:t1", None, "team-a"),
        ("PlacedBy_team_a", "team-b", "team-b"),
    ],
)
def test_a_source_says_who_has_placed_it(reason: str, mark: str | None, wanted: str | None) -> None:
    """Its annotation goes first: it is what ``mirror take-over`` writes; records of earlier versions say nothing."""
    kind = kinds_of([KindEntry(kind="JobSet")])["JobSet"]
    placed = {"type": names.PLACED, "status": "True", "reason": reason, "message": "east"}
    metadata = {"name": "a", "annotations": {} if mark is None else {names.MANAGER: mark}}
    found = {"metadata": metadata, "spec": {}, "status": {"conditions": [placed]}}
    assert manager_of(kind, decode_object(msgspec.json.encode(found))) == wanted


def test_whose_record_it_is_changes_nothing_else_of_it() -> None:
    """Term, request and mark are as they were, with a name and without."""
    placed = {"type": names.PLACED, "status": "True", "reason": "Placed,MoveWantedGone:t1", "message": "east"}
    plain = {"conditions": [placed]}
    named = with_manager(plain, "team-a")
    assert named["conditions"][0]["reason"] == "PlacedBy_team_a,MoveWantedGone:t1"
    for read in (term_of, mark_in, request_in):
        assert read(named) == read(plain)
    assert (manager_in(named), manager_in(plain)) == ("team-a", "")
    assert with_term(named, "t2")["conditions"][0]["reason"] == "PlacedBy_team_a,MoveWantedGone:t2"
    assert with_manager(named, "") == plain
