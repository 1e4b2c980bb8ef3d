"""Compares traces line by line and tells people what differs. Pure."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from e2e.job_scenarios.explained import Explained
from e2e.job_scenarios.trace import Trace

_CONTEXT_LINES = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs in one scenario."""

    upstream: tuple[str, ...]
    """Lines that only upstream's trace has."""
    ours: tuple[str, ...]
    is_whole: bool
    """Both scripts were played to their ends."""
    text: str
    """A unified diff."""

    def is_explained_by(self, explained: Explained | None) -> bool:
        """Whether every line is one that is known."""
        if explained is None or not self.is_whole:
            return False
        sides = ((self.upstream, explained.upstream), (self.ours, explained.ours))
        return all(any(text in line for text in known) for lines, known in sides for line in lines)


def compare(upstream: Trace, ours: Trace) -> Difference | None:
    """What differs, or None. A script that broke off on either side is a difference."""
    if upstream.lines == ours.lines and not (upstream.problem or ours.problem):
        return None
    diff = list(difflib.unified_diff(upstream.lines, ours.lines, "upstream", "ours", lineterm="", n=_CONTEXT_LINES))
    body = diff[2:]
    sides = (("upstream", upstream), ("ours", ours))
    problems = [f"{side}: {trace.problem}" for side, trace in sides if trace.problem]
    return Difference(
        upstream=tuple(line[1:] for line in body if line.startswith("-")),
        ours=tuple(line[1:] for line in body if line.startswith("+")),
        is_whole=not problems,
        text="\n".join([*diff, *problems]),
    )
