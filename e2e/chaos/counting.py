"""What a history is made of, in numbers: what was broken, what came of it, what each rule had to judge. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from e2e.chaos.history import Record
from e2e.chaos.judging import RULES
from e2e.chaos.kinds import KINDS
from e2e.chaos.reading import is_ended_by_lease, moves_in
from e2e.chaos.story import Story, tell


def summary(records: Iterable[Record]) -> str:
    """Some lines, each with what it is about."""
    story = tell(records)
    judged = {name: sum(1 for _ in rule(story)) for name, rule in RULES.items()}
    made = ", ".join(_objects(story, kind) for kind in KINDS)
    deleted = len(story.deletions)
    return "\n".join(
        (
            f"seed {story.opening.seed}: {made}",
            f"managers: {len(story.requests)} writes, {deleted} deletions on workers",
            f"broken: {_faults(story)}",
            f"moves: {_listed(_moves(story))}; leases that have ended a copy: {_lease_ends(story)}",
            f"judged: {_listed(judged)}",
        )
    )


def _objects(story: Story, kind: str) -> str:
    sources = [source for source in story.sources.values() if source.kind.name == kind]
    ended = sum(source.kind.end(source.last) is not None for source in sources)
    copies = sum(len(mirrors) for (name, _), mirrors in story.mirrors.items() if name == kind)
    return f"{len(sources)} {kind} ({ended} ended) with {copies} copies"


def _faults(story: Story) -> str:
    """Kills and freezes, whose they are, and all else that was broken."""
    begun = [one for one in story.faults if not one.is_over]
    kills = [one for one in begun if one.name.partition(" ")[0] == "kill"]
    freezes = [one for one in begun if one.name.partition(" ")[0] == "freeze"]
    of_managers = [sum(one.target.startswith("manager-") for one in some) for some in (kills, freezes)]
    others = len(begun) - len(kills) - len(freezes)
    return (
        f"{len(kills)} kills ({of_managers[0]} of managers), {len(freezes)} freezes ({of_managers[1]} of managers), "
        f"{others} other faults, {len(story.restored)} restored clusters"
    )


def _moves(story: Story) -> Mapping[str, int]:
    """How many there were for each reason; ``started over``: on the same worker, as ``Recreate`` wants it."""
    sources = story.sources.values()
    return Counter(move.why for source in sources for move in moves_in(body for _, body in source.bodies))


def _lease_ends(story: Story) -> int:
    copies = (copy for mirrors in story.mirrors.values() for copy in mirrors)
    return sum(any(is_ended_by_lease(body, copy.kind) for _, body in copy.bodies) for copy in copies)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
