"""Documents that guide newcomers name every room that the import contracts have, and stay short enough to be read."""

from __future__ import annotations

import re
from configparser import ConfigParser

import pytest

from tests.documents.commands import TOP

MOST_LINES = 150
GUIDES = {"rooms": "docs/architecture.md", "apiserver": "docs/embedded.md"}
"""The document whose table lists the rooms of a contract."""


def rooms_of(contract: str) -> set[str]:
    """All layers of a contract of ``.importlinter``."""
    read = ConfigParser()
    read.read(TOP / ".importlinter")
    return set(re.findall(r"[a-z_]+", read[f"importlinter:contract:{contract}"]["layers"]))


def rooms_listed(document: str) -> set[str]:
    """What the first column of the table ``room`` names."""
    _, _, rest = (TOP / document).read_text().partition("| room |")
    rows = rest.partition("\n\n")[0].splitlines()[2:]
    return {name for row in rows for name in re.findall(r"`([a-z_]+)(?:/|\.py)?`", row.split("|")[1])}


@pytest.mark.parametrize(("contract", "document"), GUIDES.items(), ids=GUIDES.values())
def test_every_room_is_listed(contract: str, document: str) -> None:
    """Who looks for a room finds what lives there, and a room that is gone is not looked for."""
    assert rooms_listed(document) == rooms_of(contract)


def test_the_guide_is_short() -> None:
    assert len((TOP / "docs/architecture.md").read_text().splitlines()) <= MOST_LINES
