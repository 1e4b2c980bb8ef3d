"""successPolicy (Z1–Z3): which rule the succeeded indexes meet."""

from __future__ import annotations

from collections.abc import Mapping

from mirror.batch import indexes, views
from mirror.batch.indexes import Intervals

REASON = "SuccessPolicy"


def met_rule(spec: Mapping[str, object], completed: Intervals, completions: int) -> int | None:
    """The first rule that is met; none is while no index has succeeded (Z1)."""
    if not completed:
        return None
    rules = views.items(views.mapping(spec.get("successPolicy")).get("rules"))
    return next((at for at, rule in enumerate(rules) if _is_met(views.mapping(rule), completed, completions)), None)


def message(rule: int) -> str:
    return f"Matched rules at index {rule}"


def _is_met(rule: Mapping[str, object], completed: Intervals, completions: int) -> bool:
    """A list that names nothing leaves its rule unmet, with a count beside it too (Z1)."""
    listed = views.optional_text(rule.get("succeededIndexes"))
    needed = views.optional_number(rule.get("succeededCount"))
    if listed is None:
        return needed is not None and indexes.count(completed) >= needed
    wanted = indexes.read(listed, completions)
    if not wanted:
        return False
    missing = indexes.count(indexes.minus(wanted, completed))
    return not missing or (needed is not None and indexes.count(wanted) - missing >= needed)
