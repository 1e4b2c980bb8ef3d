"""Rules are looked up in ``docs/rules.md``: each citation has one, each is cited by a test; signs name what exists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

from tests.documents.commands import TOP

RULES = TOP / "docs/rules.md"
MIRROR = TOP / "mirror"

RULE = re.compile(r"^- \*\*([A-Z]+)([1-9]\d?)\*\*", re.MULTILINE)
FAMILY = re.compile(r"^## ([A-Z]+): ", re.MULTILINE)
CITATION = re.compile(r"(?<![\w%.\\#&-])([A-Z]{1,2})([1-9]\d?)(?:[–-]\1([1-9]\d?))?(?!\w)")
READ_BY_PEOPLE = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*')
"""Texts and comments of a Python file: names of variables such as ``T1`` cite nothing."""

NO_CITATIONS = {"RE2"}
"""What has the form of a citation: the library."""

NOT_TESTED_ALONE = {
    "K1": "the number of workers shows only under load; that a key is worked on once is the queue's test",
}
"""Rules that no single test can cite, and why."""

QUOTED = r"``([a-z_]+(?:[/.][a-z_]+)*)``"
CALLED_BY = re.compile(
    rf"\b(?:called|used|asked) (?:only )?by ((?:{QUOTED}(?:, (?:and )?(?:by )?| and )?)+)", re.IGNORECASE
)
"""Where a module docstring says who uses the module, a name without a path is a module's, too."""

NO_MODULES = re.compile(r"(?:pods|serviceaccounts)/|access\.url$")
"""What looks like one: subresources of the API, a setting."""


@cache
def read(path: Path) -> str:
    return path.read_text()


@cache
def python(folder: str) -> list[Path]:
    return sorted((TOP / folder).rglob("*.py"))


def documents() -> Iterator[Path]:
    yield from (one for one in (TOP / "docs").rglob("*.md") if one != RULES)
    yield TOP / "CONTRIBUTING.md"


KNOWN = ["".join(found) for found in RULE.findall(read(RULES))]
FAMILIES = FAMILY.findall(read(RULES))


@cache
def cited(path: Path) -> frozenset[str]:
    """The rules that a file names; ``V10–V42`` stands for those at both ends and all between that exist."""
    text = "\n".join(READ_BY_PEOPLE.findall(read(path))) if path.suffix == ".py" else read(path)
    found = set[str]()
    for family, first, last in CITATION.findall(text):
        found |= {f"{family}{first}", f"{family}{last or first}"}
        found |= {f"{family}{number}" for number in range(int(first), int(last or first))} & set(KNOWN)
    return frozenset(found - NO_CITATIONS)


def without_rule(paths: Iterable[Path]) -> list[tuple[str, str]]:
    return [(str(path.relative_to(TOP)), rule) for path in paths for rule in sorted(cited(path) - set(KNOWN))]


def test_a_number_stands_for_one_rule() -> None:
    """Each is there once, below the heading of its family, which is there once, too."""
    assert len(set(KNOWN)) == len(KNOWN)
    assert len(set(FAMILIES)) == len(FAMILIES)
    _, *parts = FAMILY.split(read(RULES))
    for family, section in zip(parts[::2], parts[1::2], strict=True):
        assert {found[0] for found in RULE.findall(section)} == {family}


def test_each_citation_has_a_rule() -> None:
    """In the code and in the documents, whatever has the form of a citation."""
    assert without_rule(chain(python("mirror"), documents())) == []


def test_each_citation_of_a_test_has_a_rule() -> None:
    """There, other things have that form as well, so only the families that exist are looked at."""
    found = without_rule(chain(python("tests"), python("e2e")))
    assert [(path, rule) for path, rule in found if rule.rstrip("0123456789") in FAMILIES] == []


def test_each_rule_has_a_test() -> None:
    """One that cites it, or a reason why none can; a reason that is not needed any more goes."""
    tests = (path for path in chain(python("tests"), python("e2e")) if path != Path(__file__))
    tested = set[str]().union(*map(cited, tests))
    assert [rule for rule in KNOWN if rule not in tested] == sorted(NOT_TESTED_ALONE)


def modules() -> set[str]:
    """Every module and package of the project, as a path below ``mirror``."""
    files = {path.relative_to(MIRROR).with_suffix("") for path in python("mirror")}
    return {str(path) for path in files} | {str(folder) for path in files for folder in path.parents}


MODULES = modules()
ROOMS = {name.split("/")[0] for name in MODULES if "/" in name}
IN_A_ROOM = f"(?:{'|'.join(sorted(ROOMS))})/"


def test_signs_name_modules_that_exist() -> None:
    """Whatever a package's docstring quotes, paths and callers in a module's, and paths from the top anywhere."""
    wrong = [
        (str(path.relative_to(TOP)), name)
        for path in python("mirror")
        for name in sorted(named(path))
        if not exists(name, path) and not NO_MODULES.match(name)
    ]
    assert wrong == []


def test_documents_name_modules_that_exist() -> None:
    """Where they give a path below ``mirror``; decisions tell of their own time."""
    wrong = [
        (str(path.relative_to(TOP)), name)
        for path in documents()
        if path.parent.name != "decisions"
        for name in re.findall(rf"`({IN_A_ROOM}[a-z_/]+[a-z_.]*)`", read(path))
        if not exists(name.rstrip("/"), MIRROR / "__init__.py")
    ]
    assert wrong == []


def named(path: Path) -> set[str]:
    """The modules that a file names."""
    found = re.match(r'"""(.*?)"""', read(path), re.DOTALL)
    sign = found[1] if found else ""
    quoted = set(re.findall(QUOTED, sign))
    with_path = {name for name in quoted if "/" in name or name.split(".")[0] in ROOMS}
    with_path |= set(re.findall(rf"``((?:mirror\.|{IN_A_ROOM})[a-z_./]*[a-z_])``", read(path)))
    if path.name == "__init__.py":
        return with_path | {name for name in quoted if "." not in name}
    return with_path | {name for said in CALLED_BY.findall(sign) for name in re.findall(QUOTED, said[0])}


def exists(name: str, seen_from: Path) -> bool:
    """Whether a file or module is found by this name, from ``mirror`` or from a package around the file that names it.

    The last part of a path may be a name within the module; a name without a path may be anywhere in the same room.
    """
    if name == "mirror" or (seen_from.parent / name).exists() or (TOP / name).exists():
        return True
    path = name.removeprefix("mirror.").replace(".", "/")
    if "/" not in path:
        room = seen_from.relative_to(MIRROR).parts[0]
        return path in MODULES or any(one.startswith(f"{room}/") and one.endswith(f"/{path}") for one in MODULES)
    around = [folder for folder in seen_from.parents if folder.is_relative_to(MIRROR)]
    return any(
        str((folder / path).relative_to(MIRROR)) in MODULES or (folder / path).parent.with_suffix(".py").exists()
        for folder in around
    )
