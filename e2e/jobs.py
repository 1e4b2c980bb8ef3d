"""Jobs as tests write them, and how tests look at a source, its mirrors, its events, and wait for them.

``Scene`` is one test's view: the sources in one namespace of the management cluster, and the workers by name. Looking
is done with the tests' own client and by watches; a wait that fails says what was there. Not here: the process under
test (``manager``).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

import yaml

from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from mirror.kube.resources import JOBS, Resource

T = TypeVar("T")

RUN_FOR = "300ms"
NODE_PREFIX = "e2e.jobmirror.io/"
RUN_FOR_KEY = f"{NODE_PREFIX}run-for"
PREFIX = "jobmirror.io/"
SOON_SECONDS = 14.0
"""Before a request that hangs is given up, and before a pause that has grown is over: nothing of it was waited for."""
_LOOK_AGAIN_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 0.2
"""Each pause is a fifth longer than the one before: looks cost both sides CPU, which those who are waited for want."""
_WAIT_SECONDS = 120.0


def job(
    name: str,
    managed_by: str | None = None,
    *,
    run_for: str = RUN_FOR,
    exit_code: int = 0,
    pods: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: object,
) -> Json:
    """A Job whose simulated pods run so long and end so.

    Args:
        name: its name.
        managed_by: who runs it; None: the built-in controller.
        run_for: how long each pod runs, or ``never`` to end.
        exit_code: of each container.
        pods: more of the node's annotations (``exit-code-index-2``), without their prefix.
        annotations: of the Job; those without a prefix get ours (``worker-selector``).
        labels: of the Job.
        spec: fields of its spec, in Kubernetes' spelling.
    """
    fares = {"run-for": run_for, "exit-code": str(exit_code), **(pods or {})}
    body: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": dict(labels or {}),
            "annotations": {key if "/" in key else PREFIX + key: value for key, value in (annotations or {}).items()},
        },
        "spec": {
            **({"managedBy": managed_by} if managed_by else {}),
            "backoffLimit": 0,
            **spec,
            "template": {
                "metadata": {"annotations": {f"{NODE_PREFIX}{key}": value for key, value in fares.items()}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]},
            },
        },
    }
    return body


def indexed(name: str, managed_by: str | None = None, *, completions: int = 3, **more: object) -> Json:
    """An Indexed Job whose pods all run at once; what else can be said is as for ``job``."""
    fields: Json = {"completions": completions, "parallelism": completions, "completionMode": "Indexed", **more}
    return job(name, managed_by, **fields)


def condition(found: Json | None, kind: str) -> Json:
    """A true condition of this type, or ``{}``."""
    listed = (found or {}).get("status", {}).get("conditions") or ()
    return next((dict(entry) for entry in listed if entry["type"] == kind and entry["status"] == "True"), {})


def is_complete(found: Json | None) -> bool:
    """Whether the Job is there and has succeeded."""
    return bool(condition(found, "Complete"))


def is_failed(found: Json | None) -> bool:
    """Whether the Job is there and has failed."""
    return bool(condition(found, "Failed"))


def is_over(found: Json | None) -> bool:
    """Whether the Job is there and has ended, either way."""
    return is_complete(found) or is_failed(found)


def is_suspended(found: Json | None) -> bool:
    """Whether the Job is there and its status says that it is suspended."""
    return bool(condition(found, "Suspended"))


def counts(**fields: object) -> Callable[[Json | None], bool]:
    """A question: does its status have these values? A number that is left out is 0."""
    return lambda found: (
        bool(found) and all((found or {}).get("status", {}).get(name, 0) == value for name, value in fields.items())
    )


def index_of(pod: Json) -> str:
    """The index of an Indexed Job's pod."""
    return str(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])


def runs(pods: int = 1) -> Callable[[Json | None], bool]:
    """A question: does its status count so many ready pods?"""
    return lambda found: bool(found) and (found or {}).get("status", {}).get("ready") == pods


def placed_on(found: Json | None) -> str:
    """The worker that the source is recorded on, or nothing."""
    return str(condition(found, PREFIX + "Placed").get("message", ""))


def annotation(found: Json | None, name: str) -> str:
    """One of our annotations, by the name after the prefix, or nothing."""
    return str((found or {}).get("metadata", {}).get("annotations", {}).get(PREFIX + name, ""))


def is_placed_or_waits(found: Json | None) -> bool:
    """Whether the manager has decided on it; after its worker was found unreachable it waits."""
    return bool(placed_on(found) or annotation(found, "waiting-because"))


def waits_because(text: str) -> Callable[[Json | None], bool]:
    """A question: does ``waiting-because`` hold this text?"""
    return lambda found: text in annotation(found, "waiting-because")


def uid(found: Json) -> str:
    """The object's uid."""
    return str(found["metadata"]["uid"])


async def until(
    look: Callable[[], Awaitable[T]],
    condition: Callable[[T], object] = bool,
    *,
    seconds: float = _WAIT_SECONDS,
    describe: Callable[[], Awaitable[str]] | None = None,
) -> T:
    """Look again and again until what is seen fulfils the condition, and give it.

    For what no single watch shows; an object is waited for by ``Client.wait_until``. A look in which a request is
    refused is repeated.

    Raises:
        TimeoutError: it never did; the text holds what was seen last, and what ``describe`` says.
    """
    seen: object = "nothing yet"
    pause = _LOOK_AGAIN_SECONDS
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    seen = found = await look()
                    if condition(found):
                        return found
                except StatusError as error:
                    seen = error
                await asyncio.sleep(pause)
                pause = min(1.2 * pause, _LONGEST_PAUSE_SECONDS)
    except TimeoutError:
        more = "\n" + await describe() if describe else ""
        raise TimeoutError(f"not so after {seconds} s; seen last: {seen!r}{more}") from None


class Scene:
    """One test's sources, in one namespace, and the workers that may run them. Has a client of each cluster."""

    def __init__(
        self,
        management: ControlPlane,
        workers: Mapping[str, ControlPlane],
        namespace: str,
        *,
        prefixes: Mapping[str, str] | None = None,
        resource: Resource = JOBS,
    ) -> None:
        """``prefixes``: the namespace prefixes of workers that have one. ``resource``: of sources and mirrors."""
        self.management = management
        self.planes = workers
        self.workers = tuple(workers)
        self.namespace = namespace
        self.client = management.client()
        self._clients = {worker: plane.client() for worker, plane in workers.items()}
        self._prefixes = prefixes or {}
        self.resource = resource

    async def close(self) -> None:
        """Close its connections."""
        for client in (self.client, *self._clients.values()):
            await client.close()

    # -- sources ----------------------------------------------------------------------------------------------------

    async def create(self, *bodies: Json) -> list[Json]:
        """Create sources (or unmanaged Jobs) on the management cluster, all at once."""
        return list(await asyncio.gather(*(self.client.create(self.jobs(), body) for body in bodies)))

    async def source(self, name: str) -> Json | None:
        """The source, or None."""
        return await read_or_none(self.client, f"{self.jobs()}/{name}")

    async def patch(self, name: str, body: Json) -> Json:
        """Merge this into the source, as a user would."""
        return await self.client.merge(f"{self.jobs()}/{name}", body)

    async def delete(self, name: str, *, propagation: str = "Background") -> None:
        """Delete the source."""
        await self.client.delete(f"{self.jobs()}/{name}", propagation=propagation)

    async def source_until(
        self, name: str, condition: Callable[[Json | None], object], *, seconds: float = _WAIT_SECONDS
    ) -> Json:
        """Wait until the source fulfils the condition, as seen by a watch.

        Raises:
            TimeoutError: it does not; the text shows source, mirrors and events.
        """
        return await self._until(self.client, f"{self.jobs()}/{name}", name, condition, seconds)

    async def until_jobs_wait(
        self, managed_by: str, because: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        """Wait until new Jobs wait for this reason, by making some: a manager may hear of them before the Secret."""
        for number in itertools.count():
            name = f"probe-{number}"
            await self.create(job(name, managed_by, annotations=annotations))
            found = await self.source_until(name, is_placed_or_waits)
            await self.delete(name)
            if because in annotation(found, "waiting-because"):
                return

    async def sources_until(
        self, names: Iterable[str], condition: Callable[[Json | None], object], *, seconds: float = _WAIT_SECONDS
    ) -> list[Json]:
        """Wait until each of these sources fulfils the condition, and give them in this order."""
        waits = (self.source_until(name, condition, seconds=seconds) for name in names)
        return list(await asyncio.gather(*waits))

    async def events(self, name: str, reason: str = "") -> list[Json]:
        """Our events about the source, of this reason if one is given, in the order of their making."""
        events = await self.client.list(
            f"/api/v1/namespaces/{self.namespace}/events", fieldSelector=f"involvedObject.name={name}"
        )
        ours = [event for event in events if event.get("source", {}).get("component") == "jobmirror"]
        return [event for event in ours if reason in ("", event["reason"])]

    async def event(self, name: str, reason: str, *, seconds: float = _WAIT_SECONDS) -> Json:
        """The event of this reason about the source, waited for: events are sent beside the work."""
        found = await until(lambda: self.events(name, reason), seconds=seconds, describe=lambda: self.describe(name))
        return found[0]

    async def only_event(self, name: str, reason: str) -> Json:
        """The event of this reason about the source, waited for; there is but one."""
        await self.event(name, reason)
        [found] = await self.events(name, reason)
        return found

    # -- workers ----------------------------------------------------------------------------------------------------

    def client_of(self, worker: str) -> Client:
        """The client of a worker."""
        return self._clients[worker]

    def jobs(self, worker: str = "") -> str:
        """The path of the Jobs of this test's namespace on a worker; without one, of the sources."""
        return self.resource.path(self.namespace_on(worker))

    def namespace_on(self, worker: str) -> str:
        """The namespace of the mirrors on a worker."""
        return self._prefixes.get(worker, "") + self.namespace

    async def mirror(self, worker: str, name: str) -> Json | None:
        """The Job of this name on a worker, whoever made it, or None."""
        return await read_or_none(self._clients[worker], f"{self.jobs(worker)}/{name}")

    async def mirrors(self, name: str) -> dict[str, Json]:
        """Every mirror of this name, by worker: Jobs that carry an origin label."""
        found = await asyncio.gather(*(self.mirror(worker, name) for worker in self.workers))
        return {
            worker: seen
            for worker, seen in zip(self.workers, found, strict=True)
            if seen and PREFIX + "origin" in seen["metadata"].get("labels", {})
        }

    async def mirror_until(
        self, worker: str, name: str, condition: Callable[[Json | None], object], *, seconds: float = _WAIT_SECONDS
    ) -> Json:
        """Wait until the mirror on this worker fulfils the condition; it sees None while there is none."""
        return await self._until(self._clients[worker], f"{self.jobs(worker)}/{name}", name, condition, seconds)

    async def until_no_mirror(self, name: str) -> None:
        """Wait until no worker has a mirror of this name any more."""
        await until(lambda: self.mirrors(name), lambda found: not found, describe=lambda: self.describe(name))

    async def pods(self, worker: str, name: str) -> list[Json]:
        """The pods of the Job of this name on a worker."""
        path = f"/api/v1/namespaces/{self.namespace_on(worker)}/pods"
        return await self._clients[worker].list(path, labelSelector=f"batch.kubernetes.io/job-name={name}")

    async def end_pods(self, worker: str, name: str) -> None:
        """Let the pods of the Job of this name end now, however long they would have run."""
        await self.end(worker, await self.pods(worker, name))

    async def end(self, worker: str, pods: Iterable[Json], **fares: str) -> None:
        """Let these pods end now; what else becomes of them is as for ``job``, with underscores (``exit_code``)."""
        said = {RUN_FOR_KEY: "0s"} | {f"{NODE_PREFIX}{key.replace('_', '-')}": value for key, value in fares.items()}
        for pod in pods:
            path = f"/api/v1/namespaces/{self.namespace_on(worker)}/pods/{pod['metadata']['name']}"
            await self._clients[worker].merge(path, {"metadata": {"annotations": said}})

    async def until_no_pods(self, worker: str, name: str) -> None:
        """Wait until the Job of this name has no pods on a worker any more."""
        await until(lambda: self.pods(worker, name), lambda pods: not pods, describe=lambda: self.describe(name))

    # -- namespaces ---------------------------------------------------------------------------------------------------

    async def make_namespace(self, worker: str = "") -> None:
        """Make this scene's namespace on a worker, under its prefix; without one, on the management cluster."""
        body = {"metadata": {"name": self.namespace_on(worker)}}
        await self._client(worker).create("/api/v1/namespaces", body)

    async def remove_namespaces(self) -> None:
        """Delete this scene's namespace wherever it is."""
        for worker in ("", *self.workers):
            with contextlib.suppress(StatusError):
                await self._client(worker).delete(f"/api/v1/namespaces/{self.namespace_on(worker)}")

    # -- for people -------------------------------------------------------------------------------------------------

    async def describe(self, name: str) -> str:
        """The source, its mirrors and its events, for a failure's message."""
        parts: Json = {"source": _shown(await self.source(name))}
        for worker in self.workers:
            parts[f"on {worker}"] = _shown(await self.mirror(worker, name))
        parts["events"] = [f"{event['reason']}: {event['message']}" for event in await self.events(name)]
        return yaml.safe_dump(parts, sort_keys=False, width=160)

    def _client(self, worker: str) -> Client:
        return self._clients[worker] if worker else self.client

    async def _until(
        self, client: Client, path: str, name: str, condition: Callable[[Json | None], object], seconds: float
    ) -> Json:
        try:
            return await client.wait_until(path, condition, seconds=seconds)
        except TimeoutError:
            shown = await self.describe(name)
        raise TimeoutError(f"{path} is not so after {seconds} s:\n{shown}")


async def read_or_none(client: Client, path: str) -> Json | None:
    """The object at this path, or None."""
    try:
        return await client.get(path)
    except StatusError as error:
        if error.status == 404:
            return None
        raise


def _shown(found: Json | None) -> Json | None:
    """What of a Job matters in a failure's message."""
    if found is None:
        return None
    metadata = {key: found["metadata"].get(key) for key in ("uid", "labels", "annotations", "deletionTimestamp")}
    spec = {key: value for key, value in found["spec"].items() if key not in ("template", "selector")}
    return {"metadata": metadata, "spec": spec, "status": found.get("status")}
