"""Tests that documents name as the cause of what they describe exist."""

from __future__ import annotations

import re

import pytest

from tests.documents.commands import TOP

_TEST = re.compile(r"`((?:tests|e2e)/\S+\.py)::(\w+)`")
NAMED = sorted(
    {(path.name, *found) for path in (TOP / "docs").glob("*.md") for found in _TEST.findall(path.read_text())}
)


@pytest.mark.parametrize(("document", "file", "test"), NAMED, ids=lambda value: value)
def test_a_test_that_a_document_names_exists(document: str, file: str, test: str) -> None:
    """By its file and its function."""
    assert re.search(rf"^ *(?:async )?def {test}\(", (TOP / file).read_text(), re.MULTILINE), document


def test_some_are_named() -> None:
    """Else the form of the names has changed."""
    assert len(NAMED) >= 7
