"""docs/choosing.md counts kinds as they are built in."""

from __future__ import annotations

from e2e.kind_choice import ALL
from mirror.kinds.declared.choosing import built_in
from mirror.model import names
from tests.documents.commands import TOP

WORDS = {3: "three", 4: "four", 7: "seven", 8: "eight", 9: "nine", 12: "twelve", 13: "thirteen", 14: "fourteen"}
TEXT = (TOP / "docs/choosing.md").read_text()


def test_how_many_kinds_there_are_is_true() -> None:
    """All of them, those that a Kueue keeps from being placed, and those whose controller is played."""
    every = WORDS[len(built_in())]
    shared = WORDS[sum(one.managed_by.value == names.MULTIKUEUE_MANAGED_BY for one in built_in().values())]
    played = [str(kind) for kind in ALL if any(one.script for one in kind.operators)]

    assert f"| other kinds than Job | [{every}](kinds.md), and those that you declare |" in TEXT
    assert f"Of the {every} other kinds, {shared} admit no `managedBy` but MultiKueue's" in TEXT
    assert all(one.startswith("Ray") for one in played)
    assert f"but for Ray's {WORDS[len(played)]}:" in TEXT
