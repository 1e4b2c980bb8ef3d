"""Each scenario of ``docs/loss-scenarios.md`` is played by tests that exist and cite its number (D14)."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.documents.commands import TOP

ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| (.*) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
NUMBERS = re.compile(r"(?:Scenarios? )?(\d+(?:(?:, | and )\d+)*)\b")
MOST = 60
ROWS = {int(number): played for number, _, _, played in ROW.findall((TOP / "docs/loss-scenarios.md").read_text())}


@cache
def numbers_by_test(file: str) -> dict[str, set[int]]:
    """By name: the numbers at the beginning of its docstring or of the names of its cases."""
    found = dict[str, set[int]]()
    for node in ast.walk(ast.parse((TOP / file).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            cases = (one for decorator in node.decorator_list for one in ast.walk(decorator))
            texts = [one.value for one in cases if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            found[node.name] = {
                int(number)
                for text in (ast.get_docstring(node) or "", *texts)
                if (begin := NUMBERS.match(text))
                for number in re.findall(r"\d+", begin[1])
            }
    return found


def test_every_number_has_its_row() -> None:
    assert list(ROWS) == list(range(1, MOST + 1))


@pytest.mark.parametrize("number", ROWS)
def test_a_scenario_is_played_by_tests_that_cite_it(number: int) -> None:
    played = TEST.findall(ROWS[number])
    assert played
    assert [test for file, test in played if number not in numbers_by_test(file).get(test, set())] == []


def test_what_is_seen_from_outside_is_also_played_on_real_clusters() -> None:
    """Those that cite a number end to end are in the table, too."""
    cited = {
        (f"e2e/{file.name}", test, number)
        for file in sorted((TOP / "e2e").glob("test_*.py"))
        if "cenario" in file.read_text()
        for test, numbers in numbers_by_test(f"e2e/{file.name}").items()
        for number in numbers
    }
    listed = {(file, test, number) for number, row in ROWS.items() for file, test in TEST.findall(row)}
    assert {one for one in cited if one[2] <= MOST} <= listed
