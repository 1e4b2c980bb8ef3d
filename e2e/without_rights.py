"""Takes each shipped right away in turn and says what fails then: ``python -m e2e.without_rights``, some ten minutes.

A right whose absence nobody notices ends it with 1. What notices is the API server's audit log (a request that was
refused for want of the right), and mostly the manager's life as well (``shipped_life``). Run by hand: that each right
is used is tested (``test_shipped_rights``), and what is used cannot be taken away unnoticed.
"""

from __future__ import annotations

import asyncio
import copy
import sys
import uuid
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import aiohttp

from e2e import shipped
from e2e.controlplane.client import Json, Refused
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import ProgramEnded
from e2e.jobs import Scene
from e2e.manager import ManagerProcess
from e2e.shipped import Right
from e2e.shipped_life import life, old_clusters

_LIFE_SECONDS = 90.0
_LOOK_SECONDS = 1.0
_FAILURES = (AssertionError, TimeoutError, ProgramEnded, Refused, aiohttp.ClientError)


class Lacking(ManagerProcess):
    """A manager, one of whose rights on one cluster is left out."""

    lacks: tuple[str, Right]
    """Where, and what; in the files' own words, since names differ here."""

    async def _account(self, plane: ControlPlane, granted: list[Json]) -> Path:
        where, right = self.lacks
        return await super()._account(plane, without(granted, right) if plane.name == where else granted)


def without(objects: Iterable[Json], right: Right) -> list[Json]:
    """The objects, with one verb on one resource left out of the rules that give exactly this."""
    found = copy.deepcopy(list(objects))
    for one in found:
        rules = one.get("rules", [])
        for rule in rules:
            if rule["resources"] == [right.resource] and rule.get("resourceNames", [""]) == [right.name]:
                in_namespace = "namespace" in one["metadata"]
                if in_namespace == bool(right.namespace):
                    rule["verbs"] = [verb for verb in rule["verbs"] if verb != right.verb]
        if rules:
            one["rules"] = [rule for rule in rules if rule["verbs"]]
    return found


async def lived(planes: tuple[Cluster, Cluster], where: str, right: Right) -> tuple[list[str], str]:
    """What was refused in a life without the right, and how the life ended, or how far it came until then."""
    before = {plane.name: len(await plane.audit_entries()) for plane in planes}

    async def refused() -> list[str]:
        return [line for p in planes for line in shipped.refused((await p.audit_entries())[before[p.name] :])]

    async with asyncio.TaskGroup() as scope:
        living = scope.create_task(_live(planes, where, right), name="live")
        while not living.done() and not await refused():
            await asyncio.wait([living], timeout=_LOOK_SECONDS)
        living.cancel()
        await asyncio.wait([living])
    return await refused(), "was stopped there" if living.cancelled() else living.result()


async def _live(planes: tuple[Cluster, Cluster], where: str, right: Right) -> str:
    management, east = planes
    scene = Scene(management, {"east": east}, f"team-{uuid.uuid4().hex[:6]}")
    await scene.make_namespace()
    try:
        lacking: type[Lacking] = type("Lacks", (Lacking,), {"lacks": (where, right)})
        async with asyncio.timeout(_LIFE_SECONDS):
            settings = {"workers": {"createNamespaces": True}}
            async with lacking.start(management, {"east": east}, settings=settings) as manager:
                manager.expect_complaints(".")
                await life(manager, scene)
    except _FAILURES as error:
        return f"ended with {type(error).__name__}"
    finally:
        await scene.remove_namespaces()
        await scene.close()
    return "went on"


async def main() -> int:
    """Go through all of them; the exit code says whether each was missed."""
    spare = []
    async with old_clusters() as planes:
        for where, file in (("management", "management"), ("east", "worker")):
            for right in shipped.rights(shipped.read(file, namespace="x")):
                with redirect_stdout(StringIO()):  # managers' logs
                    refused, how = await lived(planes, where, right)
                first = refused[0].partition(": ")[2] if refused else "nothing"
                print(f"{where}: {right}: refused {first}; life {how}", flush=True)
                if not refused:
                    spare.append(right)
    print("every right is missed" if not spare else f"nobody misses {spare}")
    return int(bool(spare))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
