"""A management cluster and its workers: embedded API servers in this process, whose requests are counted.

They have no controllers and no storage but memory, and everybody may do everything. What managers send comes over HTTPS
and is counted; what is done here goes past that.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from e2e.controlplane.plane import ControlPlane
from mirror.embedded import certificates, kubeconfigs, web
from mirror.embedded.apiserver.messages import ADMIN, Answer, Request
from mirror.model import names
from mirror.planes.plane import ControlPlane as Embedded
from mirror.planes.plane import control_plane
from mirror.planes.serving import HOST
from mirror.planes.shape import NONE, Shape
from mirror.serving import x509

MANAGEMENT = "management"
NAMESPACE = "jobmirror-system"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOBS_STORED, LEASES_STORED = "jobs.batch", "leases.coordination.k8s.io"
"""What the collections are called in storage."""
_TOKEN = "scale"
_RESOURCE = re.compile(r"^/apis?/(?:[^/]+\.[^/]+/|[^/]*/)?v\w+/(?:namespaces/[^/]+/)?(\w+)(?:/[^/]+(?:/(\w+))?)?$")


class Counted:
    """What answers the requests to one cluster, and counts them as ``PATCH jobs/status``."""

    def __init__(self, plane: Embedded, requests: Counter[str]) -> None:
        self._plane = plane
        self._requests = requests

    async def handle(self, request: Request) -> Answer:
        """As the cluster does."""
        self._requests[what(request.method, request.path, request.query)] += 1
        return await self._plane.handle(request)


def what(method: str, path: str, query: str = "") -> str:
    """A request's method (``WATCH`` is one) and its resource with the subresource, or its path where there is none."""
    found = _RESOURCE.match(path)
    resource = "/".join(filter(None, found.groups())) if found else path
    return f"{'WATCH' if 'watch=' in query else method} {resource}"


@dataclass(frozen=True, slots=True)
class Clusters:
    """All of them, running."""

    management: Embedded
    served: ControlPlane
    """The management cluster as managers reach it."""
    workers: Mapping[str, Embedded]
    requests: Counter[str]
    """To the management cluster, by ``what``."""
    worker_requests: Counter[str]


def worker_name(number: int) -> str:
    """Names of equal length."""
    return f"worker-{number:04d}"


@asynccontextmanager
async def clusters(count: int, folder: Path) -> AsyncIterator[Clusters]:
    """Run a management cluster and so many workers, which are registered there, while the block runs."""
    authority = x509.Authority.new("scale", now=datetime.now(UTC))
    tls = x509.server_context(authority.issue_server(certificates.names_for(HOST)))
    requests: Counter[str] = Counter()
    worker_requests: Counter[str] = Counter()
    workers: dict[str, Embedded] = {}
    async with AsyncExitStack() as stack:

        async def run(name: str, counts: Counter[str]) -> tuple[Embedded, str]:
            shape = Shape(name=name, controllers=NONE, tokens={_TOKEN: ADMIN})
            plane = await stack.enter_async_context(control_plane(shape))
            serving = web.serve(Counted(plane, counts), listen=(HOST, 0), tls=tls, clock=plane.clock)
            _, port = await stack.enter_async_context(serving)
            url = kubeconfigs.url(HOST, port)
            return plane, kubeconfigs.kubeconfig(url, authority=authority.certificate, user=_TOKEN, name=name)

        management, kubeconfig = await run(MANAGEMENT, requests)
        path = folder / f"{MANAGEMENT}.kubeconfig"
        kubeconfigs.write(path, kubeconfig)
        await management.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for number in range(count):
            name = worker_name(number)
            workers[name], text = await run(name, worker_requests)
            data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
            secret = {"metadata": {"name": name, "labels": {names.WORKER: "true"}}, "data": data}
            await management.api.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)
        served = ControlPlane(MANAGEMENT, path, folder, runs_pods=False)
        try:
            yield Clusters(management, served, workers, requests, worker_requests)
        finally:
            await served.close()
