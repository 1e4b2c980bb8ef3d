"""What people see of a Job whose worker is lost, as docs/losing-a-worker.md shows it, and whether that is still so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from e2e.jobs import Scene
from e2e.manager import ManagerProcess
from e2e.people import Person
from e2e.troubles.document import LOSSES
from e2e.troubles.looks import of_conditions, of_explain
from mirror.model import names

_CONDITIONS = ("Suspended", names.MOVED, names.PROGRESSING, "Complete", "Failed")
_AGAIN_SECONDS = 1.0
"""Some of it is to be seen for a few seconds only."""


async def compare(title: str, scene: Scene, manager: ManagerProcess, name: str, *, worker: str = "") -> None:
    """Wait until a Job looks as the document's section shows.

    Args:
        title: of the section.
        scene: where the Job is.
        manager: who runs it.
        name: of the Job.
        worker: events about its Secret are shown, too.

    Raises:
        AssertionError: it looks otherwise.
    """

    async def look() -> str:
        parts = [_job(scene, manager, name), *([_secret(manager, worker)] if worker else [])]
        lines = [line.rstrip() for part in await asyncio.gather(*parts) for line in part]
        return "\n".join(lines) + "\n"

    await LOSSES.compare(title, look, again_seconds=_AGAIN_SECONDS)


async def _job(scene: Scene, manager: ManagerProcess, name: str) -> list[str]:
    kubectl, place = scene.management.kubectl, ("--namespace", scene.namespace)
    person = Person(str(scene.management.kubeconfig), scene.namespace, manager.namespace)
    got, described, explained, source = await asyncio.gather(
        kubectl("get", "job", name, *place),
        kubectl("describe", "job", name, *place),
        person.mirror("explain", name),
        scene.source(name),
    )
    assert source is not None
    return [
        f"$ kubectl get job {name}",
        *got.splitlines(),
        f"$ kubectl describe job {name}",
        *_events(described),
        *of_conditions("job", source, _CONDITIONS),
        f"$ mirror explain {name}",
        *of_explain(explained),
    ]


async def _secret(manager: ManagerProcess, worker: str) -> list[str]:
    said = await manager.management.kubectl("events", "--for", f"secret/{worker}", "--namespace", manager.namespace)
    held = [line for line in said.splitlines() if line.startswith("LAST SEEN") or "MovesHeld" in line]
    return [f"$ kubectl -n jobmirror-system events --for secret/{worker}", *held]


def _events(described: str) -> Iterator[str]:
    """As they are listed; of a Job that has moved without those of how its worker was lost."""
    lines = described.splitlines()
    begin = lines.index("Events:")
    has_moved = any(line.split()[1:2] == ["Moved"] for line in lines[begin:])
    for line in lines[begin:]:
        is_before = has_moved and line.split()[1:2] in (["WorkerUnreachable"], ["WorkerLost"])
        if "-------" not in line and not is_before:
            yield line
