"""Whoever silences a check says why, in the same line: `# noqa: E402 - …`, `# type: ignore[misc]  # …`."""

from __future__ import annotations

import io
import re
import tokenize

import pytest

from tests.documents.commands import TOP

FOLDERS = ("mirror", "tests", "e2e", "bench", "deploy")
SILENCED = re.compile(r"#\s*(?:type:\s*ignore|noqa|mypy:|ruff:|pragma:)")
WITH_REASON = re.compile(r"# (?:type: ignore\[[a-z,-]+\]  # |noqa: [A-Z]+\d+(?:, [A-Z]+\d+)*(?: - |  # ))\w")


def unexplained(text: str) -> list[str]:
    """The comments that silence something and give no reason."""
    comments = (
        one.string for one in tokenize.generate_tokens(io.StringIO(text).readline) if one.type == tokenize.COMMENT
    )
    return [one for one in comments if SILENCED.match(one) and not WITH_REASON.match(one)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_silenced_check_has_a_reason(folder: str) -> None:
    """Of linter and types."""
    found = {}
    for file in (TOP / folder).rglob("*.py"):
        if "#" in (text := file.read_text()) and (comments := unexplained(text) if SILENCED.search(text) else []):
            found[str(file.relative_to(TOP))] = comments
    assert found == {}


@pytest.mark.parametrize(
    ("line", "silent"),
    [
        ("import a  # noqa: E402 - after the above", False),
        ("import a  # noqa: E402, F401 - after the above", False),
        ("x = y  # type: ignore[misc]  # made at run time", False),
        ("x = '# noqa: E501'", False),
        ("import a  # noqa: E402", True),
        ("import a  # noqa", True),
        ("x = y  # type: ignore[misc]", True),
        ("x = y  # type: ignore", True),
        ("# ruff: noqa", True),
    ],
)
def test_a_reason_is_told_from_none(line: str, silent: bool) -> None:
    """Also a comment from a text that looks like one."""
    assert bool(unexplained(line)) is silent
