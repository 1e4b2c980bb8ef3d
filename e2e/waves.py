"""Many Jobs at once, and whether each of them ran exactly once. Used by the tests of faults.

Not here: single Jobs (``jobs``), and the history of mirrors (``recorder``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from e2e.controlplane.client import Json
from e2e.jobs import Scene, is_complete, is_over, uid, until
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder


async def sources(scene: Scene) -> dict[str, Json]:
    """Every Job of the scene's namespace on the management cluster, by name."""
    found = await scene.client.list(scene.jobs())
    return {source["metadata"]["name"]: source for source in found}


async def mirrors_on(scene: Scene, worker: str) -> dict[str, Json]:
    """Every Job of the scene's namespace on one worker, by name."""
    found = await scene.client_of(worker).list(scene.jobs(worker))
    return {mirror["metadata"]["name"]: mirror for mirror in found}


async def until_sources(
    scene: Scene, names: Collection[str], condition: Callable[[Json | None], object], *, seconds: float = 180
) -> dict[str, Json]:
    """Wait until each of these sources fulfils the condition; seen by lists, which survive an outage of the server.

    Raises:
        TimeoutError: some do not; the text describes the first few.
    """

    async def missing() -> list[str]:
        found = await sources(scene)
        return [name for name in names if not condition(found.get(name))]

    async def describe() -> str:
        return "\n".join([await scene.describe(name) for name in (await missing())[:2]])

    await until(missing, lambda left: not left, seconds=seconds, describe=describe)
    found = await sources(scene)
    return {name: found[name] for name in names}


async def until_over(scene: Scene, names: Collection[str], *, seconds: float = 180) -> dict[str, Json]:
    """Wait until each of these sources has ended, and give them."""
    return await until_sources(scene, names, is_over, seconds=seconds)


async def assert_ran_once(scene: Scene, ended: dict[str, Json], recorder: Recorder) -> None:
    """Each source is Complete and had one mirror in its whole life."""
    incomplete = [name for name, source in ended.items() if not is_complete(source)]
    assert not incomplete, await scene.describe(incomplete[0])
    history = recorder.by_source()
    unusual = {name: history.get(uid(source), []) for name, source in ended.items()}
    assert not {name: mirrors for name, mirrors in unusual.items() if len(mirrors) != 1}


async def mirrored_events(scene: Scene) -> dict[str, int]:
    """How many events ``Mirrored`` there are about each source, by name."""
    path = f"/api/v1/namespaces/{scene.namespace}/events"
    counts: dict[str, int] = {}
    for event in await scene.client.list(path, fieldSelector="reason=Mirrored"):
        name = event["involvedObject"]["name"]
        counts[name] = counts.get(name, 0) + 1
    return counts


async def secret_events(manager: ManagerProcess, worker: str) -> dict[str, str]:
    """The messages of the newest events about a worker's Secret, by reason."""
    path = f"/api/v1/namespaces/{manager.namespace}/events"
    events = await manager.client.list(path, fieldSelector=f"involvedObject.name={worker}")
    return {event["reason"]: event["message"] for event in events}
