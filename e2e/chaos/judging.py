"""The judge: a history in, what it breaks out. Pure; ``python -m e2e.chaos judge`` and each campaign ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from e2e.chaos import rules_mirrors, rules_sources
from e2e.chaos.breaches import Breach
from e2e.chaos.history import Record
from e2e.chaos.kinds import KINDS
from e2e.chaos.story import Story, tell

RULES: Mapping[str, Callable[[Story], Iterator[Breach]]] = {
    "one-copy": rules_mirrors.one_copy,
    "second-copy": rules_mirrors.second_copies_have_a_reason,
    "recorded-first": rules_mirrors.recorded_first,
    "foreign": rules_mirrors.nothing_foreign,
    "left-behind": rules_mirrors.no_mirror_is_left,
    "never-back": rules_sources.never_back,
    "true-end": rules_sources.ends_are_true,
    "lease": rules_sources.leases_are_no_verdict,
    "capacity": rules_sources.capacity_is_held,
    "log": rules_sources.logs_are_clean,
    "ended": rules_sources.all_have_ended,
}


def judge(records: Iterable[Record]) -> list[Breach]:
    """All that is wrong in a history, in the order of the rules; nothing: it is as promised."""
    story = tell(records)
    return [breach for rule in RULES.values() for breach in rule(story)]


def summary(records: Iterable[Record]) -> str:
    """What a history is made of, in one line."""
    story = tell(records)
    made = ", ".join(_count(story, kind) for kind in KINDS)
    broken = sum(not one.is_over for one in story.faults)
    return (
        f"seed {story.opening.seed}: {made}, "
        f"{len(story.requests)} writes by managers, {broken} faults, {len(story.restored)} restored clusters"
    )


def _count(story: Story, kind: str) -> str:
    sources = [source for source in story.sources.values() if source.kind.name == kind]
    ended = sum(source.kind.end(source.last) is not None for source in sources)
    copies = sum(len(mirrors) for (name, _), mirrors in story.mirrors.items() if name == kind)
    return f"{len(sources)} {kind} ({ended} ended) with {copies} copies"
