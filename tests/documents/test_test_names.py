"""Files of tests are told apart by their names alone: pytest takes no two of one name, wherever they are."""

from __future__ import annotations

from collections import Counter

from tests.documents.commands import TOP


def test_no_two_files_of_tests_have_one_name() -> None:
    """Each alone is collected, so that only a run of everything shows it."""
    names = Counter(file.name for file in (TOP / "tests").rglob("test_*.py"))
    assert len(names) > 100, "the tests were not found"
    assert [name for name, times in names.items() if times > 1] == []
