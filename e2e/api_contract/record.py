"""``python -m e2e.api_contract.record [--kubeconfig FILE] [--again] [FILE …]``: write down what a real server says.

Steps of scripts that have no ``says`` yet get one, or all of them with ``--again``. Read the difference before you
commit it: what is written there is what ours will have to do.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from e2e.api_contract import servers
from e2e.api_contract.answer import Wrong
from e2e.api_contract.api import Api
from e2e.api_contract.script import FOLDER, Script, _Loader
from e2e.api_contract.server import Server
from e2e.api_contract.shared import prepare

Json: TypeAlias = dict[str, Any]
_WIDTH = 116
_PATIENCE_SECONDS = 20


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m e2e.api_contract.record", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="ask this server instead of a new one")
    parser.add_argument("--again", action="store_true", help="also what was recorded before")
    parser.add_argument("files", nargs="*", type=Path, help="only these")
    asyncio.run(_run(parser.parse_args()))


async def _run(options: argparse.Namespace) -> None:
    where = servers.existing(options.kubeconfig) if options.kubeconfig else servers.real()
    async with where as server:
        await prepare(server)
        for file in options.files or sorted(FOLDER.glob("*.yaml")):
            await _record(server, file, is_again=options.again)


async def _record(server: Server, file: Path, *, is_again: bool) -> None:
    heading, cases = read(file)
    for case in cases:
        steps = case.get("steps") or [case]
        if is_again or any("says" not in step and not step.get("fine") for step in steps):
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    await _fill_in(server, case, steps)
            except (Wrong, TimeoutError) as wrong:
                print(f"{file.name}: {case['case']}: {wrong}")
    write(file, heading, cases)


def read(file: Path) -> tuple[str, list[Json]]:
    """The comment at the top, and the cases."""
    text = file.read_text()
    heading = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    return heading, yaml.load(text, _Loader) or []


def write(file: Path, heading: str, cases: Iterable[Json]) -> None:
    """The same again."""
    file.write_text(heading + "\n".join(written(case) for case in cases))


async def _fill_in(server: Server, case: Json, steps: list[Json]) -> None:
    namespace = f"contract-{secrets.token_hex(4)}x"
    api = Api(server, namespace)
    (await api.post("namespaces", {"metadata": {"name": namespace}})).ok(201)
    answers = await Script.read(case).answers(api)
    for step, said in zip(steps, answers[-len(steps) :], strict=True):
        if not step.get("fine"):
            step["says"] = said


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


if __name__ == "__main__":
    main()
