"""docs/kinds.md says of every built-in kind what its entry says: its row, and what of it follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import built_in
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.registry import JOB
from mirror.settings.kinds import KindEntry

DOCUMENT = Path(__file__).parents[3] / "docs" / "kinds.md"
DIRECTIVES = (
    "metadata.labels", "metadata.annotations", "spec.nodeSelector", "spec.tolerations", "spec.schedulingGates"
)  # fmt: skip


def rows(title: str) -> dict[str, list[str]]:
    """The rows of the first table below a title, by their first cell."""
    table = [
        line for line in DOCUMENT.read_text().split(title, 1)[1].split("\n## ")[0].splitlines() if line[:2] == "| "
    ]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table]
    return {name: more for name, *more in cells[1:]}


def shown(paths: Iterable[str]) -> str:
    """A cell: fields of the spec without ``spec.``; the scheduling directives of a pod template are its name."""
    return ", ".join(f"`{path.removeprefix('spec.')}`" for path in _together(tuple(paths))) or "—"


def _together(paths: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        template = next((path.removesuffix(f".{one}") for one in DIRECTIVES if path.endswith(f".template.{one}")), None)
        if template is None or not {f"{template}.{one}" for one in DIRECTIVES} <= set(paths):
            yield path
        elif path.endswith(DIRECTIVES[0]):
            yield template


def cells(entry: KindEntry) -> list[str]:
    """What a row of ``What is carried, and what follows`` says of a kind."""
    left_out = filter(None, (entry.managed_by.path, *entry.strip, entry.time_to_live))
    theirs = (*entry.theirs, *entry.autoscaling.theirs)
    return [*map(shown, (entry.carry.always, entry.carry.suspended, left_out, theirs))]


def test_each_kind_has_a_row_about_the_loss_of_its_worker() -> None:
    """Whether it is moved, and whether it may be fenced, as the code has it; a reason where not."""
    documented = rows("## When its worker is lost")
    kinds: list[Kind] = [JOB, *map(DeclaredKind, built_in().values())]
    assert list(documented) == [kind.name for kind in kinds]
    for kind in kinds:
        moved, fenced, why_not, _ = documented[kind.name]
        assert (moved, fenced) == ("yes" if kind.can_move else "no", "yes" if kind.fence is not None else "no")
        assert (why_not == "—") is (kind.fence is not None)


@pytest.mark.parametrize("entry", built_in().values(), ids=built_in())
def test_a_kind_is_documented_as_it_is(entry: KindEntry) -> None:
    """Its resource, the paths of ``managedBy`` and of what suspends it; what follows when, and what never does."""
    resource, managed_by, suspend, *_ = rows("## Built in")[entry.kind]
    assert resource == f"`{entry.resource}`"
    assert f"`{entry.managed_by.path}`" in managed_by or managed_by.startswith("as ")
    assert f"`{entry.suspend.path}" in suspend or suspend in ("not at all", managed_by)
    assert rows("## What is carried, and what follows")[entry.kind] == cells(entry)
