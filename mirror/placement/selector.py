"""Label selectors over workers as users write them: ``region=eu,name in (a,b),!gpu``.

The grammar is that of kube-apiserver (``batch.label_selectors``); the bounds are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mirror.batch import label_selectors
from mirror.batch.label_selectors import MalformedSelector, Requirement

LONGEST_CHARACTERS = 4096
SHORT_CHARACTERS = 256
"""The parts of selectors up to this length are kept for a while: most Jobs of a user have the same one."""


class BadSelector(ValueError):
    """The text is not a label selector over workers; the message shows it and says why."""


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must match; none matches everything. Made by ``parse_selector``.

    Only the text is kept: thousands of waiting Jobs may have selectors of 4 KiB, whose parts would take a hundred times
    that (D29).
    """

    text: str = ""

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        return _short_requirements(self.text) if len(self.text) <= SHORT_CHARACTERS else _requirements(self.text)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return label_selectors.matches(self.requirements, labels)


EVERY = Selector()
"""Matches every worker."""


def parse_selector(text: str) -> Selector:
    """Read a selector.

    Raises:
        BadSelector: a part is malformed.
    """
    if len(text) > LONGEST_CHARACTERS:
        raise BadSelector(f"it is longer than {LONGEST_CHARACTERS} characters")
    if not text.strip():
        return EVERY
    selector = Selector(text)
    _ = selector.requirements  # read once, so that a malformed part is reported here
    return selector


@lru_cache(maxsize=1024)
def _short_requirements(text: str) -> tuple[Requirement, ...]:
    return _requirements(text)


def _requirements(text: str) -> tuple[Requirement, ...]:
    if "\0" in text:  # where kube-apiserver stops reading; what follows must not go unheard
        raise BadSelector(f"{_shown(text)}: a zero byte")
    try:
        found = label_selectors.parse(text)
    except MalformedSelector as error:
        raise BadSelector(f"{_shown(text)}: {_shortened(str(error))}") from error
    for one in found:
        if one.operator in ("Gt", "Lt"):
            raise BadSelector(f"{_shown(text)}: labels of workers are not compared as numbers")
    return found


def _shown(text: str) -> str:
    return repr(text[:80])


def _shortened(problem: str) -> str:
    """Without the place that the message begins with, and the regular expression that it ends with."""
    problem = problem.removeprefix("unable to parse requirement: ").removeprefix("<nil>: ")
    return problem if len(problem) <= 100 else f"{problem[:100]}…"
