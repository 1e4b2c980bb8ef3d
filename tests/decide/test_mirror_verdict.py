"""Has a mirror still a right to be there?"""

from __future__ import annotations

from typing import Any

import pytest

from mirror.decide.mirror_verdict import MirrorState, MirrorVerdict, classify_mirror, is_too_many


@pytest.mark.parametrize(
    ("facts", "right"),
    [
        pytest.param({}, MirrorVerdict.CHECK_LIVE, id="no source in the cache: only a live look can tell"),
        pytest.param({"is_gone": True}, MirrorVerdict.DELETE, id="its source's deletion was seen"),
        pytest.param({"is_gone": True, "is_going": True}, MirrorVerdict.KEEP, id="it is being deleted already"),
        pytest.param({"source_exists": True, "placed": "east"}, MirrorVerdict.KEEP, id="recorded here"),
        pytest.param(
            {"source_exists": True}, MirrorVerdict.KEEP, id="not recorded anywhere: its record will be restored"
        ),
        pytest.param(
            {"source_exists": True, "placed": "west"},
            MirrorVerdict.CHECK_LIVE,
            id="recorded elsewhere: the cache may be old",
        ),
        pytest.param(
            {"source_exists": True, "source_is_deleting": True, "placed": "east"},
            MirrorVerdict.DELETE,
            id="its source goes",
        ),
        pytest.param(
            {"source_exists": True, "source_is_deleting": True, "has_labels": False},
            MirrorVerdict.KEEP,
            id="its source goes, and it is of another management cluster",
        ),
        pytest.param(
            {"source_exists": True, "source_is_deleting": True, "has_labels": False, "is_recorded": True},
            MirrorVerdict.DELETE,
            id="its source, which has recorded it, goes",
        ),
        pytest.param(
            {"source_exists": True, "source_is_deleting": True, "has_labels": False, "is_left_behind": True},
            MirrorVerdict.DELETE,
            id="its source, which left it behind, goes",
        ),
    ],
)
def test_the_right_to_stay(facts: dict[str, Any], right: MirrorVerdict) -> None:
    """D2, D10: what is not certain is asked for."""
    assert classify_mirror(MirrorState("east", "u", **({"is_going": False} | facts))) is right


@pytest.mark.parametrize(
    ("going", "mirrors", "halts"),
    [(20, 20, False), (21, 21, True), (100, 1000, False), (101, 1000, True), (0, 0, False)],
    ids=["twenty are all right", "one more is not", "a tenth of many", "more than a tenth", "nothing at all"],
)
def test_a_sweep_halts_above_twenty_and_a_tenth(going: int, mirrors: int, halts: bool) -> None:
    """D10."""
    assert is_too_many(going, mirrors) is halts
