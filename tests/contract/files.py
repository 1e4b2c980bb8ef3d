"""Cases as they stand in the files of ``scripts``: read, and written the same again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tests.contract.script import Loader

Json: TypeAlias = dict[str, Any]
_WIDTH = 116


def read(file: Path) -> tuple[str, list[Json]]:
    """The comment at the top, and the cases."""
    text = file.read_text()
    heading = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    return heading, yaml.load(text, Loader) or []


def write(file: Path, heading: str, cases: Iterable[Json]) -> None:
    """The same again."""
    file.write_text(heading + "\n".join(written(case) for case in cases))


def written(case: Json, indent: str = "- ") -> str:
    """A case or a step as it stands in a file."""
    lines: list[str] = []
    for name, value in case.items():
        space = " " * len(indent) if lines else indent
        if name in ("steps", "before"):
            inner = (
                (written(one, "- ") for one in value) if name == "steps" else (f"- {_flow(one, 6)}" for one in value)
            )
            body = "\n".join(f"    {line}" for part in inner for line in part.rstrip("\n").splitlines())
            lines.append(f"{space}{name}:\n{body}")
        elif name == "says" and isinstance(value, dict) and len(value) > 1:
            inner = (f"{key}: {_flow(item, len(space) + 4)}" for key, item in value.items())
            body = "\n".join(f"{' ' * len(indent)}  {line}" for part in inner for line in part.splitlines())
            lines.append(f"{space}{name}:\n{body}")
        else:
            flow = _flow(value, len(space) + 2)
            lines.append(f"{space}{name}: " + flow.replace("\n", "\n" + " " * len(indent)))
    return "\n".join(lines) + "\n"


def _flow(value: object, indent: int) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=_WIDTH - indent, sort_keys=False, allow_unicode=True)
    text = text.removesuffix("\n...\n").rstrip("\n")
    return "\n  ".join(text.splitlines())
