"""How a request for another worker stands in the record, and what is left where it is fulfilled (S2, S6)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mirror.model import names
from mirror.model.fences import FENCED, mark_of, with_mark
from mirror.model.move_requests import MoveRequest, Step, Why, may_have_request, parse_request
from mirror.model.moves import LeftBehind
from mirror.model.terms import recorded_anew, request_in, term_of, with_request, with_term

ALL = [MoveRequest(step, why, is_unmade=unmade) for step, why, unmade in product(Step, Why, (False, True))]
TIME, LATER = "2026-03-01T12:00:00Z", "2026-03-01T12:00:05Z"


def placed(reason: str) -> dict[str, Any]:
    record = {"type": names.PLACED, "status": "True", "reason": reason, "message": "east", "lastTransitionTime": TIME}
    return {"active": 1, "conditions": [{"type": "Suspended", "status": "False", "reason": reason}, record]}


def reason_in(status: dict[str, Any]) -> str:
    return str(status["conditions"][1]["reason"])


@pytest.mark.parametrize("request_", ALL, ids=lambda one: one.text)
def test_each_request_is_read_as_it_was_written(request_: MoveRequest) -> None:
    """S2: with any mark and term, which stay as they are."""
    for mark, term in product(("Placed", FENCED), ("", "0f3c")):
        status = with_request(placed(mark), request_, term)
        assert (request_in(status), term_of(status)) == (request_, term)
        assert mark_of(status) == (FENCED if mark == FENCED else "")
        assert may_have_request(reason_in(status).encode())
        withdrawn = with_request(status, None, term)
        assert withdrawn == with_term(placed(mark), term)
        assert not may_have_request(reason_in(withdrawn).encode())


def test_what_is_written_is_a_reason_of_a_condition() -> None:
    """As the API's conditions have it: letters, digits, underscores, commas and colons, with a letter first."""
    status = with_request(placed(FENCED), MoveRequest(why=Why.FENCED), "0f3c")
    assert reason_in(status) == "PlacedWithFence,MoveWantedFenced:0f3c"
    assert reason_in(with_mark(status, "")) == "Placed,MoveWantedFenced:0f3c"
    assert status["conditions"][0] == placed(FENCED)["conditions"][0]


@pytest.mark.parametrize("text", ["", "Moved", "MoveWantedx", "movewanted", "MoveWantedUnmadeGone", "PlaceLost"])
def test_what_is_none_of_ours_requests_nothing(text: str) -> None:
    assert parse_request(text) is None
    assert request_in(placed(f"Placed,{text}:0f3c")) is None


def test_a_record_that_is_written_anew_is_another() -> None:
    """S2: so that a request which is on its way meets another version."""
    status = recorded_anew(placed("Placed:0f3c"), LATER)
    assert status != placed("Placed:0f3c")
    assert (reason_in(status), status["conditions"][1]["lastTransitionTime"]) == ("Placed:0f3c", LATER)


@pytest.mark.parametrize(
    ("request_", "left"),
    [
        (MoveRequest(), LeftBehind("east", "m")),
        (MoveRequest(why=Why.FENCED), LeftBehind("east", "m", "fenced")),
        (MoveRequest(why=Why.EXPIRED), LeftBehind("east", "m", "fenced")),
        (MoveRequest(why=Why.GONE), LeftBehind("east", "m", "gone")),
        (MoveRequest(why=Why.DRAINED), None),
        (MoveRequest(why=Why.GONE, is_unmade=True), None),
    ],
    ids=lambda one: one.text if isinstance(one, MoveRequest) else "",
)
def test_what_a_move_leaves_behind(request_: MoveRequest, left: LeftBehind | None) -> None:
    """D14: a copy that may run, or why it does not; nothing where none is."""
    assert request_.left_on("east", "m") == left
