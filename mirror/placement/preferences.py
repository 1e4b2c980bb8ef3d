"""What a single Job asks of the choice between workers that take it: by annotations, read here. Pure.

First its order of workers, then how it is to be spread; only then the scores (``policy``) decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mirror.batch.syntax import qualified_name_problems
from mirror.model import names
from mirror.model.text import clean

MOST_IN_ORDER = 32
LARGEST_PRIORITY = 1_000_000_000
"""As for a PriorityClass of users."""
_GLOB = re.compile(r"[-a-z0-9.*?\[\]!]{1,253}")
_NUMBER = re.compile(r"-?[0-9]{1,10}")


class BadPreference(ValueError):
    """An annotation cannot be understood; the text says why and the way out, without its name."""


def order_of(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Names and globs of workers, the first choice first; empty: none is asked for.

    Raises:
        BadPreference: it is no such list.
    """
    text = annotations.get(names.WORKER_ORDER)
    if text is None:
        return ()
    wanted = tuple(part.strip() for part in text.split(","))
    if len(wanted) > MOST_IN_ORDER:
        raise BadPreference(f"more than {MOST_IN_ORDER} workers; name fewer, or use globs such as eu-*")
    for one in wanted:
        if not _GLOB.fullmatch(one):
            raise BadPreference(f"{_shown(one)} is no name of a worker; write names or globs such as east,eu-*")
    return tuple(dict.fromkeys(wanted))


def spread_of(annotations: Mapping[str, str]) -> str:
    """The label of workers over whose values the Job is to be spread; empty: none.

    Raises:
        BadPreference: it is no name of a label.
    """
    text = annotations.get(names.SPREAD_BY)
    if text is None:
        return ""
    label = text.strip()
    if qualified_name_problems(label):
        raise BadPreference(f"{_shown(label)} is no name of a label; write one that workers have, such as region")
    return label


def spread_key_of(annotations: Mapping[str, str]) -> str:
    """The same; empty, too, where it is none: for counting."""
    if names.SPREAD_BY not in annotations:
        return ""
    try:
        return spread_of(annotations)
    except BadPreference:
        return ""


def priority_of(annotations: Mapping[str, str]) -> int:
    """Who waits with a higher one gets a worker first; 0 if nothing is said.

    Raises:
        BadPreference: it is no whole number, or out of bounds.
    """
    text = annotations.get(names.PRIORITY)
    if text is None:
        return 0
    number = text.strip()
    if not _NUMBER.fullmatch(number) or abs(int(number)) > LARGEST_PRIORITY:
        raise BadPreference(
            f"{_shown(number)} is no priority; write a whole number from -{LARGEST_PRIORITY} to {LARGEST_PRIORITY}"
        )
    return int(number)


def _shown(text: str) -> str:
    return f"'{clean(text, longest=80)}'"
