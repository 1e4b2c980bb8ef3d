"""A file that has grown too long to be read at once is divided where its subject divides."""

from __future__ import annotations

from tests.documents.commands import TOP

PACKAGE = TOP / "mirror"
MOST_LINES = 400


def test_no_file_of_the_package_is_longer_than_400_lines() -> None:
    """Without exceptions: what is longer holds two subjects."""
    lengths = {file.relative_to(PACKAGE): len(file.read_text().splitlines()) for file in PACKAGE.rglob("*.py")}
    assert lengths, "the package was not found"
    assert {file: lines for file, lines in lengths.items() if lines > MOST_LINES} == {}
