"""Conditions: looking at a list of them, and changing it."""

from __future__ import annotations

import pytest

from mirror.batch import conditions

SUSPENDED = conditions.new(
    "Suspended", "True", reason="JobSuspended", message="Job suspended", at="2026-01-02T03:04:05Z"
)
RESUMED = conditions.new("Suspended", "False", reason="JobResumed", at=None)
OTHER = {"type": "example.com/Seen", "status": "True", "observedGeneration": 3}


def test_a_new_condition_has_the_shape_that_the_api_serves() -> None:
    """DF20: both times are always there, empty texts never."""
    assert conditions.new("X", "True", at=None) == {
        "type": "X",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }


def test_an_entry_that_is_not_true_does_not_hide_one_that_is() -> None:
    """Q14: one type may stand there twice."""
    assert conditions.is_true([RESUMED, SUSPENDED], "Suspended")
    assert SUSPENDED is conditions.find([RESUMED, SUSPENDED], "Suspended", "True")


def test_upserting_replaces_in_place_and_leaves_one_of_the_type() -> None:
    """The order of the others stays, and so do fields that we do not know."""
    assert conditions.upsert([SUSPENDED, OTHER, SUSPENDED], RESUMED) == [RESUMED, OTHER]
    assert conditions.upsert([OTHER], RESUMED) == [OTHER, RESUMED]
    assert conditions.without([SUSPENDED, OTHER, RESUMED], "Suspended") == [OTHER]


@pytest.mark.parametrize(
    ("types", "verdict"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param(["Suspended"], None, id="suspended"),
        pytest.param(["SuccessCriteriaMet"], "Complete", id="will complete"),
        pytest.param(["FailureTarget"], "Failed", id="will fail"),
        pytest.param(["SuccessCriteriaMet", "Complete"], "Complete", id="complete"),
        pytest.param(["Complete", "FailureTarget"], "Failed", id="both claimed"),
    ],
)
def test_the_verdict_is_known_from_the_interim_condition_on(types: list[str], verdict: str | None) -> None:
    """A failure wins where a status claims both."""
    assert verdict == conditions.verdict([conditions.new(one, "True", at=None) for one in types])


def test_junk_in_the_place_of_conditions_is_no_condition() -> None:
    """Wrong types are read as nothing."""
    assert conditions.of({"conditions": "none"}) == []
    assert conditions.of({"conditions": [7, OTHER]}) == [{}, OTHER]
