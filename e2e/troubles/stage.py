"""Where troubles are played: one manager, five control planes, a user; and what one trouble sees of it.

A trouble is a *story*: an async generator that causes it, gives a ``Sight`` of it, cures it, and gives a ``Sight`` of
its end. Each plays in a namespace of its own with a Job ``train``, so that all of them can play at once. Not here: the
stories (``placing``, ``admission``, ``pods``, ``lives``, ``unreachable``), and what is printed of them (``looks``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from e2e.controlplane.client import Client, Json
from e2e.controlplane.cluster import Cluster
from e2e.jobs import Scene, annotation, job
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy
from e2e.troubles.policies import until_refused
from mirror.kube.resources import JOBS, Resource
from mirror.model import names

JOB = "train"
EU: Mapping[str, str] = {"worker-selector": "region=eu"}
"""What a Job says that wants to run on ``east``, where pods run."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What has to be seen of the Job now."""

    title: str
    """Of the section that shows it; empty: the trouble is over."""
    so: Callable[[Json | None], object]
    texts: tuple[str, ...] = ()
    """What events, ``mirror get`` and ``mirror explain`` have to say, where no section shows it: a reason first."""
    why: tuple[str, ...] = ()
    """What the page has to say of it, where no section shows it."""
    passes: bool = False
    """It becomes another trouble by itself: it is looked at without waiting for a turn."""


Story = Callable[["Play"], AsyncGenerator[Sight, None]]


@dataclass(frozen=True, slots=True)
class Stage:
    """What all stories share."""

    management: Cluster
    workers: Mapping[str, Cluster]
    proxies: Mapping[str, Proxy]
    """Between the manager and those workers that have one."""
    manager: ManagerProcess
    page: str
    user: Path
    """A kubeconfig with a token of somebody who may do what Kubernetes' role ``edit`` allows."""
    west: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Who has it has the only place on ``west``, and may change that worker; no Job is left there afterwards."""


@dataclass(frozen=True, slots=True)
class Play:
    """One story's part of the stage."""

    stage: Stage
    scene: Scene

    @classmethod
    async def begin(cls, stage: Stage, story: Story, resource: Resource = JOBS) -> Play:
        """Its namespace, on all clusters; the story is about an object of this kind."""
        namespace = story.__name__.replace("_", "-")
        play = cls(stage, Scene(stage.management, stage.workers, namespace, resource=resource))
        for client in (play.scene.client, *(play.on(worker) for worker in stage.workers)):
            await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        return play

    @property
    def namespace(self) -> str:
        return self.scene.namespace

    @property
    def core(self) -> str:
        """The path of what the core group has in its namespace."""
        return f"/api/v1/namespaces/{self.namespace}"

    @property
    def client(self) -> Client:
        """Of the management cluster."""
        return self.scene.client

    def on(self, worker: str = "east") -> Client:
        """Of a worker."""
        return self.scene.client_of(worker)

    def job(self, **more: object) -> Json:
        """The Job, with pods that do not end; what else can be said is as for ``jobs.job``."""
        fields: Json = {"run_for": "never", "annotations": EU, **more}
        return job(JOB, names.DEFAULT_MANAGED_BY, **fields)

    async def create(self, body: Json | None = None, **pod: object) -> None:
        """Create the Job, with these fields of its pods."""
        body = body or self.job()
        body["spec"]["template"]["spec"] |= pod
        await self.scene.create(body)

    async def until_status_refused(self, status: Json) -> None:
        """Wait until a policy of the management cluster refuses such a status, tried at a Job of nobody's."""
        await self.scene.create(job("probe", "example.com/nobody"))
        await until_refused(self.client, f"{self.scene.jobs()}/probe/status", {"status": status})

    async def clear(self) -> None:
        """Delete the Job, and wait until its mirror has gone."""
        await self.scene.delete(JOB)
        await self.scene.source_until(JOB, lambda found: found is None)
        await self.scene.until_no_mirror(JOB)

    async def create_anew(self, body: Json | None = None, **pod: object) -> None:
        """Create the Job once more, when the one before has gone."""
        await self.clear()
        await self.create(body, **pod)


def progresses(found: Json | None) -> bool:
    """Whether the Job is there and nothing is said to be in its way."""
    return found is not None and not reason_of(found) and not annotation(found, "waiting-because")


def says(reason: str, *texts: str) -> Callable[[Json | None], bool]:
    """A question: is this the reason why it does not progress, with these texts in its message?"""
    return lambda found: reason_of(found) == reason and all(text in _unmet(found)["message"] for text in texts)


def reason_of(found: Json | None) -> str:
    """The reason of the condition that says why it does not progress, or nothing."""
    return str(_unmet(found).get("reason", ""))


def told(reason: str, *texts: str, state: str = "") -> Sight:
    """A trouble that no section shows: in the condition, an event, ``get`` (with the state), ``explain``, the page."""
    return Sight("", says(reason, *texts), (reason, *texts, *([state] if state else [])), texts)


def is_so(type_name: str, reason: str = "") -> Callable[[Json | None], bool]:
    """A question: has it this condition, for this reason?"""
    return lambda found: any(
        (one["type"], one["status"]) == (type_name, "True") and reason in ("", one["reason"])
        for one in (found or {}).get("status", {}).get("conditions") or ()
    )


def over(so: Callable[[Json | None], object] = progresses) -> Sight:
    """The end of a trouble."""
    return Sight("", so)


def _unmet(found: Json | None) -> Json:
    ours = (names.PLACED, names.PROGRESSING)
    listed = (found or {}).get("status", {}).get("conditions") or ()
    return next((one for one in listed if one["type"] in ours and one["status"] != "True"), {})
