"""``python -m e2e.api_contract.record [--kubeconfig FILE] [--again] [FILE …]``: write down what a real server says.

Steps of scripts that have no ``says`` yet get one, or all of them with ``--again``. Read the difference before you
commit it: what is written there is what ours will have to do.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
from pathlib import Path
from typing import Any, TypeAlias

from e2e.api_contract import servers
from tests.contract.answer import Wrong
from tests.contract.api import Api
from tests.contract.files import read, write
from tests.contract.script import FOLDER, Script
from tests.contract.server import Server
from tests.contract.shared import prepare

Json: TypeAlias = dict[str, Any]
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


async def _fill_in(server: Server, case: Json, steps: list[Json]) -> None:
    namespace = f"contract-{secrets.token_hex(4)}x"
    api = Api(server, namespace)
    (await api.post("namespaces", {"metadata": {"name": namespace}})).ok(201)
    answers = await Script.read(case).answers(api)
    for step, said in zip(steps, answers[-len(steps) :], strict=True):
        if not step.get("fine"):
            step["says"] = said


if __name__ == "__main__":
    main()
