"""The commands in the documents: every line of a code block that begins with a program that a reader would type.

Used by ``test_documents``, which runs them, and by ``tests/documents``, which asks that none is left out. Not here:
which test runs which command (``elsewhere``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
_PROGRAMS = "kubectl|mirror|make|python3?|pytest|pipx?|helm|docker|kind|git|etcdutl|source"
_COMMAND = re.compile(rf"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/|e2e/kind/)?(?:{_PROGRAMS}|run\.sh)(?: |$)")
_FENCE = re.compile(r"\s*```")
_INDENTED = re.compile(r"(?: {4}|\t)(?=\S|\s)")
_SPAN = re.compile(r"`((?:kubectl|mirror|helm|(?:\.venv/bin/)?python -m|(?:\.venv/bin/)?python deploy/) ?[^`]+)`")
_COMMENT = re.compile(r"\s+# .*$|\s{2,}#.*$")


@dataclass(frozen=True, slots=True)
class Command:
    """One command as a document says it."""

    text: str
    """Without a comment, on one line."""
    document: str
    """The file's path, from the top of the project."""
    line: int

    def __str__(self) -> str:
        return f"{self.document}:{self.line}: {self.text}"


def documents() -> list[Path]:
    """The files that are read: all that is written for readers rather than for maintainers of one folder."""
    return [
        *sorted(TOP.glob("*.md")),
        *(TOP / name for name in ("deploy/README.md", "e2e/README.md", "bench/README.md")),
        *sorted((TOP / "docs").glob("*.md")),
    ]


def all_commands() -> list[Command]:
    """Every command of every document, in order."""
    return [one for file in documents() for one in commands_of(file.read_text(), str(file.relative_to(TOP)))]


def commands_of(text: str, document: str) -> Iterator[Command]:
    """The commands of one document: of its code blocks, and whole ones in its sentences."""
    begun, begun_at = "", 0
    for number, (line, is_code) in enumerate(_lines(text), start=1):
        if not is_code:
            yield from (Command(found, document, number) for found in _SPAN.findall(line) if _is_whole(found))
            continue
        begun, begun_at = (f"{begun} {line.strip()}", begun_at) if begun else (line.strip(), number)
        if begun.endswith("\\"):
            begun = begun.removesuffix("\\").strip()
            continue
        if _COMMAND.match(begun):
            yield Command(_COMMENT.sub("", begun).strip(), document, begun_at)
        begun = ""


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of a document in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (TOP / document).read_text(), flags=re.MULTILINE | re.DOTALL)


def indented(document: str, first: str) -> str:
    """The block of a document that is indented and begins with this line, without its indent."""
    begun = (TOP / document).read_text().split(f"\n    {first}\n", 1)[1]
    more = takewhile(lambda line: line.startswith("    "), begun.splitlines())
    return "\n".join((first, *(line.removeprefix("    ") for line in more)))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is code: fenced, or indented after an empty line or other code."""
    is_fenced, was_code = False, True
    for line in text.splitlines():
        if _FENCE.match(line):
            is_fenced, was_code = not is_fenced, False
            yield "", False
            continue
        is_code = is_fenced or (was_code and bool(_INDENTED.match(line)))
        yield line, is_code
        was_code = is_code or not line.strip()


def _is_whole(span: str) -> bool:
    """Whether a span is a command to type, rather than the name of one: it has an argument with a dash, or is ours."""
    return any(word.startswith("-") for word in span.split()) or "generate.py" in span
