"""The theoretical minimum of mirroring: it copies Jobs and statuses and does nothing else.

    python -m bench.minimum M.kubeconfig W.kubeconfig     # and bench.mirroring --managed-by bench.jobmirror.io/minimum
    python -m bench.minimum --kind JobSet …               # the same of another kind

No checks, no record, no recovery, one worker, one namespace: what the machine allows, which others are compared with.
It prints ``ready`` once it watches.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from bench import outside
from bench.forms import FORMS, Form
from e2e.controlplane.client import JSON_PATCH, Client, Json

MANAGED_BY = "bench.jobmirror.io/minimum"


async def mirror(management: Client, worker: Client, form: Form, on_ready: Callable[[], None]) -> None:
    """Until it is cancelled."""
    path = form.collection("default")
    newest: dict[str, Json] = {}
    """Statuses that wait for the write before them."""
    writing: set[str] = set()

    async def write(name: str) -> None:
        while status := newest.pop(name, None):
            patch = [{"op": "add", "path": "/status", "value": status}]
            await management.call("PATCH", f"{path}/{name}/status", patch, JSON_PATCH)
        writing.discard(name)

    async def copy_jobs(version: str) -> None:
        async for event in outside.follow(management, path, version):
            found = event["object"]
            if event["type"] == "ADDED" and form.policy(found["spec"]).get("managedBy") == MANAGED_BY:
                scope.create_task(worker.create(path, form.copy_of(found)))

    async def copy_statuses(version: str) -> None:
        async for event in outside.follow(worker, path, version):
            name, status = event["object"]["metadata"]["name"], event["object"].get("status")
            if event["type"] == "MODIFIED" and status:
                newest[name] = status
                if name not in writing:
                    writing.add(name)
                    scope.create_task(write(name))

    async with asyncio.TaskGroup() as scope:
        scope.create_task(copy_jobs(await outside.newest(management, path)))
        scope.create_task(copy_statuses(await outside.newest(worker, path)))
        on_ready()


async def run(management: Path, worker: Path, form: Form) -> None:
    """With the kubeconfigs of both."""
    async with Client(management, user_agent="minimum") as here, Client(worker, user_agent="minimum") as there:
        await mirror(here, there, form, lambda: print("ready", flush=True))


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, as the manager has it, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def run_fast(work: Coroutine[Any, Any, None]) -> None:
    """As ``asyncio.run``, with that loop."""
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(work)


def main() -> None:
    """Until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("management", type=Path)
    parser.add_argument("worker", type=Path)
    parser.add_argument("--kind", choices=FORMS, default="Job", help="what is copied; default Job")
    options = parser.parse_args()
    run_fast(run(options.management, options.worker, FORMS[options.kind]))


if __name__ == "__main__":
    main()
