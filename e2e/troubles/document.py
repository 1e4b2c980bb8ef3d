"""docs/troubleshooting.md: its sections, their block of real output, and whether that is still so.

Blocks stay as they are, with their times and names, as long as they say the same; ``WRITES`` replaces the others.
"""

from __future__ import annotations

import os
import re

from tests.documents.commands import TOP

PATH = TOP / "docs/troubleshooting.md"
WRITES = os.environ.get("MIRROR_E2E_WRITE_DOCUMENTS") == "1"
"""Set to put what is seen into the document, instead of comparing."""
_SECTION = r"^### {title}\n(?:(?!^### |^## ).*\n)*?```text\n(?P<block>(?:(?!```).*\n)*)```$"
_MASKS = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"\(x\d+ over [^)]*\)|\(\d+ times\)", ""),
    (r"\btrain-(\d+-)?[a-z0-9]{5}\b", "POD"),
    (r"\b127\.0\.0\.1:\d+", "HOST"),
    (r"(?<![\w.])(\d+(\.\d+)?(ms|[smhd]))+\b", "AGE"),
    (r"\b\d+ (second|minute)s?\b", "AGE"),
    (r"\b\d+ pods? failed", "N pods failed"),
    (r"/ \d+ Failed", "/ N Failed"),
    (r"connection (refused|reset by the API server|closed by the API server before it answered)", "BROKEN"),
    (r"401 Unauthorized: Unauthorized|no response within \d+ s", "BROKEN"),
    (r",? ?status lag AGE", ""),
    (r"(?m) for AGE$", ""),
    (r"[ \t]+", " "),
]


def titles() -> list[str]:
    """The sections that have a block."""
    return re.findall(r"^### (.*)$", PATH.read_text(), flags=re.MULTILINE)


def block(title: str) -> str:
    """What the document shows in this section; empty where it has none."""
    found = re.search(_SECTION.format(title=re.escape(title)), PATH.read_text(), flags=re.MULTILINE)
    return found["block"] if found else ""


def write(title: str, text: str) -> None:
    """Put this into the section."""
    document = PATH.read_text()
    found = re.search(_SECTION.format(title=re.escape(title)), document, flags=re.MULTILINE)
    assert found, f"docs/troubleshooting.md has no section with a block: {title}"
    PATH.write_text(document[: found.start("block")] + text + document[found.end("block") :])


def masked(text: str) -> list[str]:
    """What has to be the same: lines without times, uids, names of pods and widths, in any order, each counted once.

    Events of one moment come in any order.
    """
    for pattern, word in _MASKS:
        text = re.sub(pattern, word, text)
    return sorted({line.strip() for line in text.splitlines()})
