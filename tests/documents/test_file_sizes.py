"""A file or a function that has grown too long to be read at once is divided where its subject divides."""

from __future__ import annotations

import ast

from tests.documents.commands import TOP

PACKAGE = TOP / "mirror"
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 400, 60


def test_no_file_of_the_package_is_longer_than_400_lines() -> None:
    """Without exceptions: what is longer holds two subjects."""
    lengths = {file.relative_to(PACKAGE): len(file.read_text().splitlines()) for file in PACKAGE.rglob("*.py")}
    assert lengths, "the package was not found"
    assert {file: lines for file, lines in lengths.items() if lines > MOST_LINES} == {}


def test_no_function_of_the_package_is_longer_than_60_lines() -> None:
    """With its docstring: what is longer does more than one thing."""
    lengths = {
        f"{file.relative_to(PACKAGE)}:{found.lineno} {found.name}": (found.end_lineno or 0) - found.lineno + 1
        for file in PACKAGE.rglob("*.py")
        for found in ast.walk(ast.parse(file.read_text()))
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert lengths, "the package was not found"
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}
