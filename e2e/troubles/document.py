"""Documents that show real output: their sections, the block of it in each, and whether that is still so.

Blocks stay as they are, with their times and names, as long as they say the same; ``WRITES`` replaces the others.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.documents.commands import TOP

WRITES = os.environ.get("MIRROR_E2E_WRITE_DOCUMENTS") == "1"
"""Set to put what is seen into the document, instead of comparing."""
LOOKS, AGAIN_SECONDS = 8, 3.0
"""What is seen may be about to change: a pod that is replaced, an event that is on its way."""
_SECTION = r"^### {title}\n(?:(?!^### |^## ).*\n)*?```text\n(?P<block>(?:(?!```).*\n)*)```$"
_MASKS = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"\b\d\d:\d\d:\d\d UTC\b", "TIME"),
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


@dataclass(frozen=True, slots=True)
class Document:
    """One document, by its path from the top of the project."""

    name: str

    def titles(self) -> list[str]:
        """The sections of the third level."""
        return re.findall(r"^### (.*)$", self._text, flags=re.MULTILINE)

    def block(self, title: str) -> str:
        """What it shows in this section; empty where it has none."""
        found = self._section(title)
        return found["block"] if found else ""

    async def compare(
        self,
        title: str,
        look: Callable[[], Awaitable[str]],
        *,
        looks: int = LOOKS,
        again_seconds: float = AGAIN_SECONDS,
    ) -> None:
        """Look until it is as this section says, or, where that is to be written, until it stays as it is.

        Raises:
            AssertionError: it shows something else.
        """
        wanted, seen = masked(self.block(title)), ""
        for _ in range(looks):
            before = masked(seen)
            seen = await look()
            if masked(seen) == wanted:
                return
            if WRITES and masked(seen) == before:
                break
            await asyncio.sleep(again_seconds)
        if WRITES:
            self._write(title, seen)
            return
        differs = difflib.unified_diff(wanted, masked(seen), "the document", "seen", lineterm="", n=0)
        raise AssertionError(f"{title}:\n" + "\n".join(differs))

    @property
    def _text(self) -> str:
        return (TOP / self.name).read_text()

    def _section(self, title: str) -> re.Match[str] | None:
        return re.search(_SECTION.format(title=re.escape(title)), self._text, flags=re.MULTILINE)

    def _write(self, title: str, text: str) -> None:
        found, document = self._section(title), self._text
        assert found, f"{self.name} has no section with a block: {title}"
        (TOP / self.name).write_text(document[: found.start("block")] + text + document[found.end("block") :])


TROUBLES = Document("docs/troubleshooting.md")
LOSSES = Document("docs/losing-a-worker.md")


def masked(text: str) -> list[str]:
    """What has to be the same: lines without times, uids, names of pods and widths, in any order, each counted once.

    Events of one moment come in any order.
    """
    for pattern, word in _MASKS:
        text = re.sub(pattern, word, text)
    return sorted({line.strip() for line in text.splitlines()})
