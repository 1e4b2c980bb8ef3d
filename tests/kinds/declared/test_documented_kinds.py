"""docs/kinds.md says of every built-in kind what its entry says, with which release it was tested, what an entry is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import dropwhile, takewhile
from pathlib import Path

import msgspec
import pytest

from e2e.kind_choice import ALL
from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.registry import JOB
from mirror.model import names
from mirror.settings.kind_rules import alternatives, clause_parts
from mirror.settings.kinds import KIB, Done, KindEntry
from mirror.settings.load import parse
from mirror.settings.section import Section
from tests.documents.commands import indented

DOCUMENT = Path(__file__).parents[3] / "docs" / "kinds.md"
DIRECTIVES = (
    "metadata.labels", "metadata.annotations", "spec.nodeSelector", "spec.tolerations", "spec.schedulingGates"
)  # fmt: skip


def rows(title: str) -> dict[str, list[str]]:
    """The rows of the first table below a title, by their first cell."""
    section = DOCUMENT.read_text().split(title, 1)[1].split("\n## ")[0].splitlines()
    begun = dropwhile(lambda line: line[:1] != "|", section)
    table = [line for line in takewhile(lambda line: line[:1] == "|", begun) if line[:2] == "| "]
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


def who_says_it(entry: KindEntry) -> str:
    """The cell about ``managedBy``."""
    value = {"": "any", names.MULTIKUEUE_MANAGED_BY: "MultiKueue's"}[entry.managed_by.value]
    return f"`{entry.managed_by.path}`, {value}"


def what_holds_it(entry: KindEntry) -> str:
    """The cell about what suspends it."""
    field = entry.suspend
    if not field.path:
        return "not at all"
    return f"`{field.path}`" if field.held is True else f"`{field.path}: {field.held}`"


def when_it_is_over(done: Done) -> str:
    """The cell about how it ends: how it succeeds, and how it fails."""
    if done.never:
        return "never"
    said = [" and ".join(map(in_words, clauses)) for clauses in (done.succeeded, done.failed, done.withdrawable)]
    return "; ".join(said[:2]) + (f"; withdrawable: {said[2]}" if said[2] else "")


def in_words(clause: str) -> str:
    """A clause for people; one of several parts is in parentheses."""
    parts = list(map(_part_in_words, alternatives(clause)))
    return f"({' or '.join(parts)})" if len(parts) > 1 else parts[0]


def _part_in_words(text: str) -> str:
    what, name, is_not, values = clause_parts(text)
    *first, last = (f"`{value}`" for value in values)
    said, no = " or ".join((*([", ".join(first)] if first else []), last)), "not " if is_not else ""
    if what == "reason":
        return f"`{name}` {no}by {said}"
    if (what, is_not, values) == ("condition", False, ("True",)):
        return f"`{name}`"
    return f"`{name}` is there" if is_not and values == ("",) else f"`{name}` is {no}{said}"


@pytest.mark.parametrize("entry", built_in().values(), ids=built_in())
def test_a_kind_is_documented_as_it_is(entry: KindEntry) -> None:
    """Its resource, who may run it, what suspends it, when it is over; what follows when, and what never does."""
    table = rows("## Built in")
    resource, managed_by, suspend, over, _ = table[entry.kind]
    like = [built_in()[cell.removeprefix("as ")] if cell.startswith("as ") else entry for cell in (managed_by, suspend)]
    assert resource == f"`{entry.resource}`"
    assert table[like[0].kind][1] == who_says_it(like[0]) == who_says_it(entry)
    assert table[like[1].kind][2] == what_holds_it(like[1]) == what_holds_it(entry)
    assert over == when_it_is_over(entry.done)
    assert rows("## What is carried, and what follows")[entry.kind] == cells(entry)


@pytest.mark.parametrize("kind", ALL, ids=str)
def test_a_kind_was_tested_with_the_release_that_is_named(kind: object) -> None:
    """The one whose definition and controllers the tests take; whether they are played."""
    assert isinstance(kind, type(ALL[0]))
    tested = rows("## Built in")[str(kind)][-1]
    releases = {one.module.rpartition("@v")[2] for one in kind.operators}
    assert set(re.findall(r"\d+\.\d+\.\d+", tested)) == releases
    assert tested.endswith(" played") is any(one.script for one in kind.operators)


def test_each_kind_is_documented_once() -> None:
    """In each table, in the same order."""
    assert list(rows("## Built in")) == list(built_in()) == list(rows("## What is carried, and what follows"))


def test_what_is_counted_of_pods_is_documented_as_it_is() -> None:
    """Which kinds say nothing, and what the others are measured by."""
    measured = {"": "child Jobs: active, but not all", "spec": "against the `replicas` of the spec"}
    measured |= {"status": "worker pods that are ready, against those desired"}
    found = dict[str, str]()
    for listed, (said,) in rows("## Pods that do not start").items():
        found |= dict.fromkeys(listed.split(", "), said)

    assert found.keys() == built_in().keys()
    for kind, entry in built_in().items():
        (by,) = {path.partition(".")[0] for path in entry.counts.desired} or {""}
        assert (measured[by] if entry.counts.ready else "nothing: ") in found[kind], kind


def default_of(name: str) -> str:
    """How a field is by default, as the table of the form of an entry has it."""
    value = getattr(KindEntry(), name)
    if name in ("kind", "resource", "done"):
        return "required"
    said = [_shown_value(one) for one in (msgspec.structs.astuple(value) if isinstance(value, Section) else [value])]
    while said and said[-1] == "none":
        said.pop()
    return ", ".join(said) or "none"


def _shown_value(value: object) -> str:
    if value is True or value is False:
        return f"`{str(value).lower()}`"
    if not value:
        return "none"
    return f"`{value // KIB}Ki`" if isinstance(value, int) else f"`{value}`"


def test_the_form_of_an_entry_is_documented_as_it_is() -> None:
    """Every field and its default, and what is in it."""
    documented = dict[str, tuple[str, str]]()
    for listed, (meaning, default) in rows("## The form of an entry").items():
        documented |= dict.fromkeys(re.findall("`(.+?)`", listed), (meaning, default))
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(KindEntry)}

    assert documented.keys() == fields.keys()
    for key, name in fields.items():
        meaning, default = documented[key]
        assert re.split("[:;]", default)[0] == default_of(name), key
        part = getattr(KindEntry(), name)
        inside = [one.encode_name for one in msgspec.structs.fields(part)] if isinstance(part, Section) else []
        assert [one for one in inside if not re.search(rf"`{one}\b", meaning)] == [], key


def test_the_settings_of_the_first_page_are_good() -> None:
    """What a reader copies; ``e2e/test_own_kinds.py`` lives with it."""
    kinds = kinds_of(parse(indented("docs/kinds.md", "kinds:").encode(), "mirror.yaml").kinds)
    assert [kind.name for kind in kinds] == ["Job", "JobSet", "MPIJob", "Simulation"]
    other, own = kinds["MPIJob"], kinds["Simulation"]
    assert isinstance(other, DeclaredKind)
    assert isinstance(own, DeclaredKind)
    assert other.entry == msgspec.structs.replace(
        built_in()["MPIJob"], status=msgspec.structs.replace(built_in()["MPIJob"].status, limit_bytes=64 * KIB)
    )
    assert (own.can_be_suspended, own.knows_pods, own.never_ends) == (True, True, False)
