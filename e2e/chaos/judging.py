"""The judge: a history in, what it breaks out. Pure; ``python -m e2e.chaos judge`` and each campaign ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from e2e.chaos import (
    rules_calm,
    rules_counts,
    rules_deletions,
    rules_mirrors,
    rules_moves,
    rules_operators,
    rules_pods,
    rules_sources,
    rules_turns,
)
from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Record
from e2e.chaos.story import Story, tell

RULES: Mapping[str, Callable[[Story], Verdicts]] = {
    "one-copy": rules_mirrors.one_copy,
    "pods": rules_pods.pods_of_one_copy,
    "runs-on": rules_calm.nothing_runs_on,
    "breach-told": rules_calm.breaches_are_told,
    "second-copy": rules_mirrors.second_copies_have_a_reason,
    "recorded-first": rules_mirrors.recorded_first,
    "foreign": rules_mirrors.nothing_foreign,
    "in-turn": rules_turns.writes_come_in_turn,
    "deleted-rightly": rules_deletions.deleted_rightly,
    "named": rules_mirrors.left_copies_stay_named,
    "left-behind": rules_mirrors.no_mirror_is_left,
    "never-back": rules_sources.never_back,
    "true-end": rules_sources.ends_are_true,
    "counted": rules_counts.counted_as_copies_do,
    "moves": rules_moves.moves_are_guarded,
    "moves-count": rules_moves.moves_stay_counted,
    "closed": rules_operators.closed_workers_get_nothing,
    "drained": rules_operators.drained_by_somebody,
    "seed": rules_operators.seeds_hold,
    "lease": rules_sources.leases_are_no_verdict,
    "capacity": rules_sources.capacity_is_held,
    "log": rules_sources.logs_are_clean,
    "ended": rules_sources.all_have_ended,
}


def judge(records: Iterable[Record]) -> list[Breach]:
    """All that is wrong in a history, in the order of the rules; nothing: it is as promised."""
    story = tell(records)
    return [found for rule in RULES.values() for found in rule(story) if found is not None]
