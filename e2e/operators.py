"""The real controllers of other kinds than Job beside control planes of ours: JobSet's with its webhooks, mpi-operator.

Built from their Go modules (``controlplane/build``); they act as cluster administrators. Webhooks of pods are left out:
JobSet needs them for exclusive placement alone. Only for control planes that can reach this machine's loopback.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import yaml

from e2e.controlplane.assets import find_binaries
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.plane import CannotDo, ControlPlane
from e2e.controlplane.process import Program
from e2e.controlplane.scratch import Scratch
from e2e.go_modules import JOBSET, definition_of, module_directory
from e2e.jobs import until
from e2e.jobsets import DEFINITIONS
from e2e.ports import number_of, reserve_port
from mirror.kube.resources import Resource
from mirror.serving.x509 import Authority

JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
MPIJOBS = Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
KINDS = (JOBSETS, MPIJOBS)
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_WEBHOOKS = "config/components/webhook/manifests.yaml"
_PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}


@asynccontextmanager
async def running(*planes: ControlPlane) -> AsyncIterator[None]:
    """Both kinds are served on these, and run there by their own controllers.

    Raises:
        MissingBinaries: the controllers are not built.
        CannotDo: a cluster is not of our own making.
        ProgramEnded: on leaving: a controller ended although nobody ended it.
    """
    for plane in planes:
        if not isinstance(plane, Cluster):
            raise CannotDo(f"{plane.name} cannot reach webhooks on this machine")
    beside = [_Beside(plane) for plane in planes if isinstance(plane, Cluster)]
    try:
        await asyncio.gather(*(one.start() for one in beside))
        yield
        for one in beside:
            one.check()
    finally:
        await asyncio.gather(*(one.stop() for one in beside))


class _Beside:
    """The controllers of one cluster, with their definitions and webhooks."""

    def __init__(self, plane: Cluster) -> None:
        binaries = find_binaries("jobset-controller", "mpi-operator")
        user = plane.kubeconfig_for("operators", groups=["system:masters"])
        self._client = plane.client(user_agent="e2e-operators")
        self._scratch = Scratch(f"operators-{plane.name}")
        self._port = reserve_port()
        config, bundle = _webhook_server(self._scratch, plane.name, number_of(self._port))
        self._webhooks = list(_webhooks(f"https://127.0.0.1:{number_of(self._port)}", bundle))
        self._programs = [
            Program([binaries["jobset-controller"], f"--kubeconfig={user}", f"--config={config}"], self._scratch),
            Program([binaries["mpi-operator"], user], self._scratch),
        ]

    async def start(self) -> None:
        await asyncio.gather(*(define(self._client, kind) for kind in KINDS))
        for one in self._webhooks:
            await self._client.create(f"{_ADMISSION}/{_PLURALS[one['kind']]}", one)
        for program in self._programs:
            program.start()
        await until(self._is_answered)

    def check(self) -> None:
        """Raise ``ProgramEnded`` if a controller does not run."""
        for program in self._programs:
            program.check()

    async def stop(self) -> None:
        """The cluster is everybody's, so nothing of it stays."""
        try:
            await asyncio.gather(*(undefine(self._client, kind) for kind in KINDS))
            for one in self._webhooks:
                with suppress(StatusError):
                    await self._client.delete(f"{_ADMISSION}/{_PLURALS[one['kind']]}/{one['metadata']['name']}")
        finally:
            for program in self._programs:
                await program.kill()
            await self._client.close()
            self._scratch.close()
            self._port.close()

    async def _is_answered(self) -> bool:
        """Whether JobSet's webhooks answer: one of them fills in what this leaves out."""
        self.check()
        pod = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
        body = {
            "apiVersion": JOBSETS.api_version,
            "kind": JOBSETS.kind,
            "metadata": {"name": "probe"},
            "spec": {"replicatedJobs": [{"name": "main", "template": {"spec": {"template": pod}}}]},
        }
        stored = await self._client.create(f"{JOBSETS.path('default')}?dryRun=All", body)
        return bool(stored["spec"].get("successPolicy"))


def _webhook_server(scratch: Scratch, name: str, port: int) -> tuple[Path, str]:
    """JobSet's configuration, and who signed the certificate of the webhooks that it serves on this port."""
    authority = Authority.new(name, now=datetime.now(UTC))
    serving = authority.issue_server(["127.0.0.1"])
    (scratch.path / "tls.crt").write_bytes(serving.certificate)
    (scratch.path / "tls.key").write_bytes(serving.key)
    config = scratch.path / "jobset.yaml"
    settings = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(scratch.path)},
    }
    config.write_text(yaml.safe_dump(settings))
    return config, b64encode(authority.certificate).decode()


def _webhooks(url: str, bundle: str) -> Iterator[Json]:
    """JobSet's own registrations for JobSets, by URL instead of by Service."""
    for one in yaml.safe_load_all((module_directory(JOBSET) / _WEBHOOKS).read_text()):
        one["metadata"]["name"] = f"e2e-jobset-{one['kind'].lower()}"
        one["webhooks"] = [each for each in one["webhooks"] if each["rules"][0]["resources"] == ["jobsets"]]
        for each in one["webhooks"]:
            path = each["clientConfig"]["service"]["path"]
            each["clientConfig"] = {"url": url + path, "caBundle": bundle}
        yield one


async def define(client: Client, kind: Resource) -> None:
    """Serve a kind; waited for while an earlier definition of it is still going."""
    await until(lambda: client.create(DEFINITIONS, definition_of(kind.kind)))
    await until(lambda: is_served(client, kind))


async def undefine(client: Client, kind: Resource) -> None:
    """Serve a kind no more; with that, all its objects go."""
    with suppress(StatusError):
        await client.delete(f"{DEFINITIONS}/{kind.plural}.{kind.group}")
    await until(lambda: is_served(client, kind), lambda found: not found)


async def is_served(client: Client, kind: Resource) -> bool:
    """Whether there is a list of it."""
    try:
        await client.list(kind.path())
    except StatusError:
        return False
    return True
