"""The theoretical minimum of mirroring: it copies Jobs and statuses and does nothing else.

    python -m bench.minimum M.kubeconfig W.kubeconfig     # and bench.mirroring --managed-by bench.jobmirror.io/minimum

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
from e2e.controlplane.client import JSON_PATCH, Client, Json

MANAGED_BY = "bench.jobmirror.io/minimum"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
DROPPED = ("managedBy", "selector", "manualSelector")


def copy_of(job: Json) -> Json:
    """What is created on the worker."""
    spec = {key: value for key, value in job["spec"].items() if key not in DROPPED}
    spec["template"] = {"spec": job["spec"]["template"]["spec"]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["metadata"]["name"]}, "spec": spec}


async def mirror(management: Client, worker: Client, on_ready: Callable[[], None]) -> None:
    """Until it is cancelled."""
    newest: dict[str, Json] = {}
    """Statuses that wait for the write before them."""
    writing: set[str] = set()

    async def write(name: str) -> None:
        while status := newest.pop(name, None):
            patch = [{"op": "add", "path": "/status", "value": status}]
            await management.call("PATCH", f"{JOBS}/{name}/status", patch, JSON_PATCH)
        writing.discard(name)

    async def copy_jobs(version: str) -> None:
        async for event in outside.follow(management, JOBS, version):
            job = event["object"]
            if event["type"] == "ADDED" and job["spec"].get("managedBy") == MANAGED_BY:
                scope.create_task(worker.create(JOBS, copy_of(job)))

    async def copy_statuses(version: str) -> None:
        async for event in outside.follow(worker, JOBS, version):
            name, status = event["object"]["metadata"]["name"], event["object"].get("status")
            if event["type"] == "MODIFIED" and status:
                newest[name] = status
                if name not in writing:
                    writing.add(name)
                    scope.create_task(write(name))

    async with asyncio.TaskGroup() as scope:
        scope.create_task(copy_jobs(await outside.newest(management, JOBS)))
        scope.create_task(copy_statuses(await outside.newest(worker, JOBS)))
        on_ready()


async def run(management: Path, worker: Path) -> None:
    """With the kubeconfigs of both."""
    async with Client(management, user_agent="minimum") as here, Client(worker, user_agent="minimum") as there:
        await mirror(here, there, lambda: print("ready", flush=True))


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
    options = parser.parse_args()
    run_fast(run(options.management, options.worker))


if __name__ == "__main__":
    main()
