"""A control plane on a port of this machine, with kubeconfigs for who wants to use it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror.embedded import certificates, kubeconfigs, web
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.messages import MASTERS_GROUP
from mirror.embedded.apiserver.side_thread import SideThread
from mirror.planes.plane import ControlPlane
from mirror.serving import x509
from mirror.serving.client_certificates import CONFIGMAP, KEY, NAMESPACE

HOST = "127.0.0.1"
ADMINISTRATOR = "kubernetes-admin"


@dataclass(frozen=True, slots=True)
class Served:
    """A control plane that can be reached over HTTPS."""

    plane: ControlPlane
    url: str
    kubeconfig: str
    """The administrator's, as text."""

    def write_kubeconfig(self, path: Path) -> Path:
        """Put it into a file that only its owner can read; gives the path."""
        kubeconfigs.write(path, self.kubeconfig)
        return path


@asynccontextmanager
async def served(plane: ControlPlane, *, host: str = HOST, port: int = 0) -> AsyncIterator[Served]:
    """Serve it while the block runs, by default on any free port; kubeconfigs are valid as long as its data.

    Large requests, in memory too, are worked on by a thread meanwhile, so that the loop is free for others.

    Raises:
        CannotStart: the address cannot be listened on.
    """
    authority = certificates.kept_authority(plane.storage, plane.name, now=plane.clock.now())
    tls = x509.server_context(
        authority.issue_server(certificates.names_for(host)), client_authority=authority.certificate
    )
    async with _with_thread(plane), web.serve(plane, listen=(host, port), tls=tls, clock=plane.clock) as (_, found):
        url = kubeconfigs.url(host, found)
        user = authority.issue_client(ADMINISTRATOR, [MASTERS_GROUP])
        text = kubeconfigs.kubeconfig(url, authority=authority.certificate, user=user, name=plane.name)
        await _publish(plane, authority.certificate)
        yield Served(plane, url, text)


async def _publish(plane: ControlPlane, authority: bytes) -> None:
    """Tell everybody inside whose client certificates count, in the ConfigMap in which every API server does."""
    configmaps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    data = {KEY: authority.decode()}
    try:
        await plane.api.create(configmaps, {"metadata": {"name": CONFIGMAP}, "data": data})
    except StatusError as refused:
        if refused.reason != "AlreadyExists":
            raise
        await plane.api.merge(f"{configmaps}/{CONFIGMAP}", {"data": data})


@asynccontextmanager
async def _with_thread(plane: ControlPlane) -> AsyncIterator[None]:
    thread = SideThread()
    plane.use_thread(thread)
    try:
        yield
    finally:
        plane.use_thread(None)
        thread.close()
