"""Whether two servers said the same, and how they differ. Pure.

Lenient only where the real server itself is not exact: values of Go's own types (E5), and the order in which Go walks a
map, which differs from one run to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from e2e.api_differential.compare import Cause, is_same
from tests.contract.like import differences
from tests.contract.script import strict

Json: TypeAlias = dict[str, Any]
_UNTYPED = "failed to create typed patch object"


def different(real: Json, ours: Json) -> list[str]:
    """What differs between two answers in normal form, in a line each."""
    if real["status"] != ours["status"]:
        return [f"status: {real['status']} but ours {ours['status']}: {_words(real)} but ours {_words(ours)}"]
    theirs, mine = dict(real), dict(ours)
    found: list[str] = []
    causes = _causes(theirs), _causes(mine)
    if causes[0] and causes[1]:
        found += _causes_differ(*causes)
        # The message repeats the causes.
        for said in (theirs, mine):
            said.pop("causes"), said.pop("message", None)
    if _is_same_untyped(theirs.get("message") or "", mine.get("message") or ""):
        for said in (theirs, mine):
            said.pop("message", None)
    if sorted(theirs.get("warnings") or ()) == sorted(mine.get("warnings") or ()):
        for said in (theirs, mine):
            said.pop("warnings", None)
    return [*found, *differences(strict(theirs), mine)]


def _is_same_untyped(theirs: str, mine: str) -> bool:
    """Of several fields that fit no schema, Go tells all or only some, as the map happens to be walked."""
    if not (theirs.startswith(_UNTYPED) and mine.startswith(_UNTYPED)):
        return False
    one, other = (set(text.partition("): ")[2].removeprefix("errors:\n  ").split("\n  ")) for text in (theirs, mine))
    return one <= other


def _causes(said: Json) -> list[Cause]:
    parts = [cause.split(" | ", 2) for cause in said.get("causes") or ()]
    return [(field, reason, message) for reason, field, message in parts]


def _causes_differ(theirs: list[Cause], mine: list[Cause]) -> Iterator[str]:
    left = list(mine)
    for cause in theirs:
        same = next((one for one in left if is_same(cause, one)), None)
        if same is None:
            yield f"cause: only theirs: {cause}"
        else:
            left.remove(same)
    yield from (f"cause: only ours: {cause}" for cause in left)


def _words(said: Json) -> str:
    return str(said.get("message") or said.get("reason") or "accepted")[:300]
