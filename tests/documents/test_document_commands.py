"""Every command in the documents is run by a test, or says why not; links lead somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.documents.commands import TOP, Command, all_commands, commands_of, documents
from tests.documents.elsewhere import NOT_RUN, PROVED

PLAYED = TOP / "e2e/test_documents.py"


def typed() -> set[str]:
    """The commands that the people in ``e2e/test_documents.py`` type."""
    calls = (node for node in ast.walk(ast.parse(PLAYED.read_text())) if isinstance(node, ast.Call))
    found = set[str]()
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("follow", "follow_until", "follow_on"):
            found |= texts(call.args[0])
    return found


def texts(node: ast.expr) -> set[str]:
    """A text that stands there, or those that the name of a local variable stands for."""
    if isinstance(node, ast.Constant):
        return {str(node.value)}
    assert isinstance(node, ast.Name), "a command is written out, so that it can be found"
    tree = ast.parse(PLAYED.read_text())
    given = [one.value for one in ast.walk(tree) if isinstance(one, ast.Assign) and names(one) == [node.id]]
    return {str(ast.literal_eval(value)) for value in given}


def names(assignment: ast.Assign) -> list[str]:
    return [target.id for target in assignment.targets if isinstance(target, ast.Name)]


def test_no_command_is_left_out() -> None:
    """Each is typed in the end-to-end test, proved by a test that is named, or has a reason not to be."""
    known = typed() | PROVED.keys() | NOT_RUN.keys()
    assert [str(one) for one in all_commands() if one.text not in known] == []


def test_no_command_is_remembered_that_no_document_has() -> None:
    """So a command that changes in a document changes here as well."""
    said = {one.text for one in all_commands()}
    assert sorted((typed() | PROVED.keys() | NOT_RUN.keys()) - said) == []


def test_no_command_has_two_answers() -> None:
    """What is typed needs neither another proof nor an excuse."""
    assert not typed() & (PROVED.keys() | NOT_RUN.keys())
    assert not PROVED.keys() & NOT_RUN.keys()


@pytest.mark.parametrize("test", sorted(set(PROVED.values())))
def test_the_proof_exists(test: str) -> None:
    """A test of this name is in that file."""
    file, name = test.split("::")
    tree = ast.parse((TOP / file).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_commands_are_found_where_readers_see_them() -> None:
    """In fences, in indented blocks, over several lines, in sentences; without their comments."""
    text = (
        "Text\n\n    mirror get    # all\n    NAME  WORKER\n\n```bash\nkubectl get jobs \\\n  -A\n```\n"
        "as `kubectl get -A` shows, `kubectl get` alone not\n"
    )
    assert list(commands_of(text, "x.md")) == [
        Command("mirror get", "x.md", 3),
        Command("kubectl get jobs -A", "x.md", 7),
        Command("kubectl get -A", "x.md", 10),
    ]


@pytest.mark.parametrize("file", documents(), ids=lambda file: str(file.relative_to(TOP)))
def test_links_lead_somewhere(file: Path) -> None:
    """Files exist, and sections in them."""
    for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text()):
        if "://" in target:
            continue
        path, _, section = target.partition("#")
        found = (file.parent / path).resolve() if path else file
        assert found.exists(), target
        assert not section or section in anchors_of(found), target


def anchors_of(file: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_users_documents_are_as_long_as_somebody_reads() -> None:
    """The runbook is looked at in a hurry, README by who has never been here."""
    lengths = {name: len((TOP / name).read_text().splitlines()) for name in ("README.md", "docs/runbook.md")}
    assert lengths["README.md"] <= 120
    assert lengths["docs/runbook.md"] <= 200
