"""Conditions that say why a source waits for a worker, or makes no progress on one (D22). For any kind with some."""

from __future__ import annotations

from mirror.batch import conditions
from mirror.batch.conditions import FALSE, TRUE, UNKNOWN, Condition, Conditions
from mirror.model import names, reasons
from mirror.model.reasons import Obstruction
from mirror.model.text import clean

_EXPLAIN = (names.PLACED, names.PROGRESSING)
LONGEST_MESSAGE = 1024
"""Characters; what the project lets any condition have (D7)."""


def reason_of(listed: Conditions) -> str:
    """The reason that the conditions give; empty when they give none."""
    for one in listed:
        if one.get("type") in _EXPLAIN and one.get("status") != TRUE:
            return str(one.get("reason") or "")
    return ""


def explained(listed: Conditions, why: Obstruction | None, *, is_placed: bool, at: str) -> list[Condition]:
    """The conditions with this reason and no other; without a reason there is neither condition.

    Args:
        listed: the conditions as they are.
        why: what keeps it from being placed, or from progressing on its worker.
        is_placed: a worker is recorded, and stays so.
        at: now, as stored.
    """
    kept = [one for one in listed if not _is_explanation(one)]
    if why is None:
        return kept
    type_name = names.PROGRESSING if is_placed else names.PLACED
    status = UNKNOWN if why.reason in reasons.UNKNOWN else FALSE
    before = conditions.find(listed, type_name)
    condition = conditions.new(
        type_name, status, reason=why.reason, message=clean(why.message, longest=LONGEST_MESSAGE), at=at
    )
    if before is None:
        return [*kept, condition]
    if before.get("status") == status:
        times = {name: before.get(name) for name in ("lastProbeTime", "lastTransitionTime")}
        condition |= {name: time for name, time in times.items() if time}
    return conditions.upsert([one for one in listed if one is before or not _is_explanation(one)], condition)


def _is_explanation(one: Condition) -> bool:
    return one.get("type") == names.PROGRESSING or (one.get("type") == names.PLACED and one.get("status") != TRUE)
