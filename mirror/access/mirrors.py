"""Finds a source's mirror on its worker, and reads its pods and events there, within bounds.

Only the mirror that is recorded counts (D1): worker and uid by conditions on the source, which its users cannot write;
before a uid is recorded, both labels. Only pods that this very object controls, itself or by what its kind puts between
(``workers.pod_owners``), are ever shown, whatever is asked for. A worker is asked by its own client, after what
mirroring has to ask, few requests at a time, and never for long (D12).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from mirror.access.answers import StatusError, no_pod, no_source
from mirror.access.bounds import Bounds
from mirror.access.pods import BadList, Event, Listed, Pod, read_events, read_list, read_pods
from mirror.access.request_parsing import Page
from mirror.access.reviews import Person
from mirror.access.under_way import Most, UnderWay
from mirror.batch.syntax import subdomain_problems
from mirror.decide.identity import Identity, identify, own_labels
from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.errors import BadRequest, Forbidden, KubeError, NotFound, TooManyRequests, describe
from mirror.kube.objects import Meta, Object
from mirror.kube.requests import Rank, Request
from mirror.kube.resources import EVENTS, PODS, Resource
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.model.text import clean
from mirror.workers.pod_owners import PodOwners, read_metadata, read_metadata_list
from mirror.workers.worker import Worker

RIGHTS_FILE = "config/rbac/worker-logs.yaml"
KIND_RIGHTS = "the kind's file in config/rbac/kinds"


@dataclass(frozen=True, slots=True)
class Mirror:
    """A source's mirror, as the worker's watch has shown it."""

    kind: Kind
    source: Object
    found: Object
    worker: Worker

    @property
    def uid(self) -> str:
        return self.found.metadata.uid

    @property
    def namespace(self) -> str:
        return self.found.metadata.namespace

    @property
    def pod_selectors(self) -> tuple[str, ...]:
        return self.kind.pod_selectors(self.found)


class Mirrors:
    """Looks for mirrors in caches, and for what is in them on workers."""

    def __init__(
        self,
        sources: Callable[[SourceKey], Object | None],
        workers: Mapping[str, Worker],
        *,
        origin: str,
        bounds: Bounds,
    ) -> None:
        self._sources = sources
        self._workers = workers
        self._origin = origin
        self._bounds = bounds
        # Requests under way, by worker: one that hangs holds a few of them and nobody else's.
        self._under_way = UnderWay()

    def source(self, kind: Kind, namespace: str, name: str) -> Object:
        """Find a source in the cache.

        Raises:
            StatusError: 404.
        """
        found = self._sources(SourceKey(kind.name, namespace, name))
        if found is None:
            raise no_source(kind, namespace, name)
        return found

    def mirror(self, kind: Kind, source: Object) -> Mirror:
        """Find the mirror that is recorded on a source of this kind (D1).

        Raises:
            StatusError: 409 while there is none, 503 while its worker is unreachable.
        """
        name = kind.summary(source).placed
        if name is None:
            why = source.annotations.get(names.WAITING_BECAUSE)
            raise StatusError(409, f"the {kind.name} has no worker yet{f': {why}' if why else ''}")
        worker = self._workers.get(name)
        if worker is not None and worker.is_remote:
            raise _of_another_manager(worker)
        if worker is None or not worker.is_reachable:
            # Why, is for operators: it may hold the address of the worker.
            raise StatusError(503, f"worker {name} is unreachable from the manager; its operator can see why")
        metadata = source.metadata
        found = worker.mirrors_of(kind).get(worker.namespace_of(metadata.namespace), metadata.name)
        identity = self._identity(kind, source, found) if found is not None else Identity.FOREIGN
        if found is None or identity in (Identity.FOREIGN, Identity.NAMESAKE):
            raise StatusError(409, f"worker {name} has no mirror of this {kind.name} (not yet, or not any more)")
        if identity is Identity.REPLACED:
            raise StatusError(409, f"the mirror on worker {name} is not the one that is recorded on the {kind.name}")
        return Mirror(kind, source, found, worker)

    def _identity(self, kind: Kind, source: Object, found: Object) -> Identity:
        uid, recorded = source.metadata.uid, kind.summary(source).mirror_uid
        its = found.metadata.uid
        return identify(its, own_labels(found), origin=self._origin, source_uid=uid, recorded_uid=recorded)

    # -- pods ---------------------------------------------------------------------------------------------------------

    async def pods(self, mirror: Mirror, page: Page, person: Person) -> tuple[list[Pod], str]:
        """One page of its pods, and the token of the next.

        Raises:
            StatusError: the worker does not give them.
        """
        index, most = mirror.kind.pod_index, page.most or self._bounds.items
        narrowed = f",{index}={page.index}" if page.index is not None else ""
        narrowed += f",{mirror.kind.pod_roles.selector(page.role)}" if page.role else ""
        many, *few = (f"{one}{narrowed}" for one in mirror.pod_selectors)

        async def items(selector: str, token: str, limit: int) -> Listed:
            request = requests.list_page(
                PODS, namespace=mirror.namespace, label_selector=selector, limit=limit, continue_token=token
            )
            return await self._list(mirror, request, person, "list pods")

        # Those of the other selectors are few, and all on the first page.
        others = [] if page.continue_token else [one for of in few for one in (await items(of, "", most)).items]
        listed = await items(many, page.continue_token, max(1, most - len(others)))
        # A name that no API server stores could only do harm: it goes into headers and paths.
        found = [
            pod for pod in read_pods([*others, *listed.items], index=index) if not subdomain_problems(pod.metadata.name)
        ]
        are_its = await self._owners(mirror, person).are_of_mirror([pod.owners for pod in found])
        return [pod for pod, is_its in zip(found, are_its, strict=True) if is_its], listed.continue_token

    async def pod(self, mirror: Mirror, name: str, person: Person) -> Pod:
        """One of its pods, by name.

        Raises:
            StatusError: 404 where it has no such pod, whoever else has; or the worker does not say.
        """
        try:
            raw = await self._send(mirror, requests.get(PODS, name, namespace=mirror.namespace), person, "get pods")
        except NotFound:
            raise no_pod(mirror.kind, name) from None
        found = read_pods([raw], index=mirror.kind.pod_index)
        if not found or found[0].metadata.name != name:
            raise no_pod(mirror.kind, name)
        if not all(await self._owners(mirror, person).are_of_mirror([found[0].owners])):
            raise no_pod(mirror.kind, name)
        return found[0]

    def _owners(self, mirror: Mirror, person: Person) -> PodOwners:
        """Looks whether pods are this very object's, or of what it controls."""

        async def get(resource: Resource, name: str) -> Meta | None:
            request = requests.get(resource, name, namespace=mirror.namespace).metadata_only()
            try:
                return read_metadata(await self._send(mirror, request, person, f"get {resource_text(resource)}"))
            except NotFound:
                return None

        async def list_(resource: Resource) -> list[Meta]:
            request = requests.list_page(
                resource, namespace=mirror.namespace, label_selector=mirror.pod_selectors[0], limit=self._bounds.items
            ).metadata_only()
            try:
                doing = f"list {resource_text(resource)}"
                return read_metadata_list(await self._send(mirror, request, person, doing))
            except (NotFound, StatusError):
                return []  # each is asked for then

        return PodOwners(mirror.kind, mirror.uid, get=get, list_=list_)

    # -- events -------------------------------------------------------------------------------------------------------

    async def events(self, mirror: Mirror, page: Page, person: Person) -> tuple[list[Event], bool]:
        """Events about the mirror, its pods, and what is between, the oldest first; whether there may be more.

        That a JobSet's pods may not be created is said of its child Jobs.

        Raises:
            StatusError: the worker does not give them.
        """
        pods, token = await self.pods(mirror, Page(index=page.index, role=page.role), person)
        uids = {pod.metadata.uid for pod in pods}
        makers = await self._owners(mirror, person).between(
            [pod.owners for pod in pods], without_pods=page.index is None and not page.role
        )
        of_mirror = await self._events_page(mirror, f"involvedObject.uid={mirror.uid}", person)
        found = [one for one in read_events(of_mirror.items) if one.involved_object.uid == mirror.uid]
        is_cut = bool(token or of_mirror.continue_token)
        for kind in dict.fromkeys((PODS.kind, *makers.values())):
            of_kind = uids if kind == PODS.kind else {uid for uid, its in makers.items() if its == kind}
            about, more = await self._events_of(mirror, kind, of_kind, person)
            found += about
            is_cut = is_cut or more
        found.sort(key=lambda event: event.at)
        most = page.most or self._bounds.items
        return found[-most:], is_cut or len(found) > most

    async def _events_of(self, mirror: Mirror, kind: str, uids: set[str], person: Person) -> tuple[list[Event], bool]:
        """Few objects are asked for one by one; for many, the namespace's events are looked through, within bounds."""
        if len(uids) <= self._bounds.pods_asked_singly:
            listed = [await self._events_page(mirror, f"involvedObject.uid={uid}", person) for uid in sorted(uids)]
            is_cut = any(one.continue_token for one in listed)
        else:
            listed, token = [], ""
            for _ in range(self._bounds.event_pages):
                listed.append(await self._events_page(mirror, f"involvedObject.kind={kind}", person, token))
                token = listed[-1].continue_token
                if not token:
                    break
            is_cut = bool(token)
        events = (event for one in listed for event in read_events(one.items))
        return [event for event in events if event.involved_object.uid in uids], is_cut

    async def _events_page(self, mirror: Mirror, selector: str, person: Person, token: str = "") -> Listed:
        request = requests.list_page(EVENTS, namespace=mirror.namespace, limit=self._bounds.items, continue_token=token)
        request = replace(request, query=(*request.query, ("fieldSelector", selector)))
        return await self._list(mirror, request, person, "list events")

    # -- the wire -----------------------------------------------------------------------------------------------------

    async def _list(self, mirror: Mirror, request: Request, person: Person, doing: str) -> Listed:
        try:
            return read_list(await self._send(mirror, request, person, doing), most=self._bounds.items)
        except NotFound as error:
            raise refusal_of(error, mirror.worker.name, doing) from error
        except BadList:
            raise StatusError(502, f"worker {mirror.worker.name} sent a response that cannot be decoded") from None

    async def _send(self, mirror: Mirror, request: Request, person: Person, doing: str) -> bytes:
        """Send one request to the mirror's worker, within all bounds.

        Raises:
            StatusError: it failed.
            NotFound: as it is; what that means depends.
        """
        return await self.send(mirror.worker, request, person, doing)

    async def send(self, worker: Worker, request: Request, person: Person, doing: str) -> bytes:
        """Send one request to a worker; bounds and errors as for ``_send``."""
        if worker.is_remote:
            raise _of_another_manager(worker)
        bounds = self._bounds
        request = replace(request, deadline_seconds=bounds.answer_seconds, most_bytes=bounds.list_bytes)
        async with self.asking(worker, doing):
            return await worker.client.send(request.in_line(Rank.LAST, person.name))

    @asynccontextmanager
    async def asking(self, worker: Worker, doing: str) -> AsyncIterator[None]:
        """One of the few requests to a worker that may be under way; what goes wrong is a StatusError, or NotFound."""
        most = self._bounds.calls_of_worker
        bound = Most(worker.name, most, f"too many concurrent requests to worker {worker.name}")
        with self._under_way.one_more([bound]):
            try:
                # Waiting for the rate limit is in it, too: mirroring goes first there.
                async with asyncio.timeout(self._bounds.answer_seconds):
                    yield
            except NotFound:
                raise
            except KubeError as error:
                raise refusal_of(error, worker.name, doing) from error
            except TimeoutError:
                raise StatusError(504, f"worker {worker.name} did not answer in time") from None


def _of_another_manager(worker: Worker) -> StatusError:
    return StatusError(503, f"worker {worker.name} is followed by another manager, and cannot be looked at from here")


def resource_text(resource: Resource) -> str:
    """As in a Role: ``jobsets.jobset.x-k8s.io``."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def refusal_of(error: KubeError, worker: str, doing: str) -> StatusError:
    """What a worker's failure means to a user."""
    match error:
        case Forbidden():
            missing = f"the manager has no permission to {doing} on worker {worker}"
            if "." in doing:  # of a pod's owner, which is another kind's
                return StatusError(502, f"{missing}; its operator grants it with {KIND_RIGHTS}")
            return StatusError(502, f"{missing}; its operator grants it with mirror worker add --logs ({RIGHTS_FILE})")
        case BadRequest():
            return StatusError(400, f"worker {worker}: {clean(error.message)}")
        case NotFound():
            return StatusError(404, f"worker {worker}: {clean(error.message)}", details={"name": error.about_name})
        case TooManyRequests():
            return StatusError(429, f"worker {worker} limits requests; retry", retry_after_seconds=1)
    if hasattr(error, "code"):
        return StatusError(502, f"worker {worker} failed: {clean(str(error))}")
    return StatusError(504, f"worker {worker} is unreachable: {clean(describe(error))}")
