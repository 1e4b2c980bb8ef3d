"""A real Kueue: beside a control plane of ours (definitions, webhooks, its manager as a process), or one that is given.

The program is named by ``TEST_ASSET_KUEUE`` (``CGO_ENABLED=0 go build ./cmd/kueue`` in its module); definitions and
webhooks are those of the module's version. It reads a certificate for metrics from a fixed path below ``/etc``, so it
gets an ``/etc`` of its own, in a namespace of mounts (``unshare``), which changes nothing on this machine.

``TEST_KUEUE_MANAGEMENT`` and ``TEST_KUEUE_WORKER`` are kubeconfigs of clusters in which a Kueue runs already, for Jobs
and JobSets, beside JobSet's controller: they take the place of ours.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from e2e import operators
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import Shape
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Program
from e2e.controlplane.provider import Existing
from e2e.controlplane.scratch import Scratch
from e2e.definitions import DEFINITIONS
from e2e.go_modules import definition, module_directory
from e2e.jobs import until
from e2e.operator_table import JOBSET
from e2e.ports import number_of, reserve_port
from mirror.serving.x509 import Authority

KUEUE = "kueue.x-k8s.io"
MODULE = "sigs.k8s.io/kueue@v0.19.2"
VARIABLE = "TEST_ASSET_KUEUE"
GIVEN = {"gated": "TEST_KUEUE_MANAGEMENT", "queued": "TEST_KUEUE_WORKER"}
"""The variables that name clusters of others, by what a run calls them."""
API = "/apis/kueue.x-k8s.io/v1beta2"
_API_VERSION = "kueue.x-k8s.io/v1beta2"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_START_SECONDS = 180.0
_GROUPS = (["batch"], ["jobset.x-k8s.io"], ["kueue.x-k8s.io"])
_FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset")
_OWN_ETC = (
    "mount -t tmpfs none /etc && mkdir -p /etc/kueue/metrics/certs"
    ' && cp "$1"/tls.crt "$1"/tls.key /etc/kueue/metrics/certs/ && exec "$2" --config="$3" --kubeconfig="$4"'
)


def is_there(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this run can have the cluster of this name of ``GIVEN``."""
    return any(map(environment.get, (VARIABLE, GIVEN[name])))


@asynccontextmanager
async def cluster(name: str, shape: Shape, environment: Mapping[str, str] = os.environ) -> AsyncIterator[ControlPlane]:
    """A cluster with a Kueue and JobSets: that which is given by this name of ``GIVEN``, or a new one."""
    if (given := _given(name, shape, environment)) is not None:
        async with given.start(name) as plane:
            yield plane
        return
    async with Cluster.start(name, shape) as own, operators.running(own, operators=(JOBSET,)), running(own):
        yield own


def _given(name: str, shape: Shape, environment: Mapping[str, str]) -> Existing | None:
    """What others started; its node is simulated as those of other existing clusters."""
    kubeconfig = environment.get(GIVEN[name])
    simulates = shape.kwok and environment.get("MIRROR_E2E_SIMULATE_NODES", "").lower() == "true"
    return Existing({name: Path(kubeconfig).absolute()}, simulates) if kubeconfig else None


@asynccontextmanager
async def running(plane: Cluster) -> AsyncIterator[None]:
    """Kueue manages what is in a queue of this cluster, which serves JobSets and should be nobody else's.

    Raises:
        ProgramEnded: on leaving: it ended although nobody ended it.
    """
    scratch, port = Scratch(f"kueue-{plane.name}"), reserve_port()
    client = plane.client(user_agent="e2e-kueue")
    authority = Authority.new(plane.name, now=datetime.now(UTC))
    serving = authority.issue_server(["127.0.0.1"])
    (scratch.path / "tls.crt").write_bytes(serving.certificate)
    (scratch.path / "tls.key").write_bytes(serving.key)
    config = scratch.path / "config.yaml"
    config.write_text(yaml.safe_dump(_settings(number_of(port), scratch.path)))
    kubeconfig = plane.kubeconfig_for("kueue", groups=["system:masters"])
    kueue = os.environ[VARIABLE]
    command = [
        shutil.which("unshare") or "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        _OWN_ETC,
        "kueue",
    ]
    program = Program([*command, scratch.path, kueue, config, kubeconfig], scratch)
    try:
        for one in _definitions():
            await client.create(DEFINITIONS, one)
        bundle = b64encode(authority.certificate).decode()
        for one in _webhooks(f"https://127.0.0.1:{number_of(port)}", bundle):
            await client.create(f"{_ADMISSION}/{_PLURALS[one['kind']]}", one)

        async def answers() -> bool:
            if not program.is_running:
                program.start()  # it ends where discovery does not have its kinds yet; a Deployment would do the same
            try:
                await client.create(f"{API}/resourceflavors?dryRun=All", _object("ResourceFlavor", "probe", spec={}))
            except StatusError:
                return False
            return True

        await until(answers, seconds=_START_SECONDS, describe=partial(asyncio.to_thread, program.last_words))
        yield
        program.check()
    finally:
        await program.kill()
        await client.close()
        scratch.close()
        port.close()


@asynccontextmanager
async def queue(
    client: Client, namespace: str, *, cpu: str, node_labels: dict[str, str] | None = None
) -> AsyncIterator[None]:
    """A new namespace with a LocalQueue ``users``, which has so much quota, of nodes with these labels.

    What is of the whole cluster, a priority class among that, has the namespace's name: others may use that cluster as
    well. All of it goes with the block.
    """
    flavor: Json = {"nodeLabels": node_labels} if node_labels else {}
    quota = {"name": "cpu", "nominalQuota": cpu}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": namespace, "resources": [quota]}]}]
    preemption = {"withinClusterQueue": "LowerPriority"}
    spec: Json = {"namespaceSelector": {}, "resourceGroups": groups, "preemption": preemption}
    urgent = {
        "apiVersion": _API_VERSION,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": namespace},
        "value": 100,
    }
    made: dict[str, Json] = {
        "/api/v1/namespaces": {"metadata": {"name": namespace}},
        f"{API}/resourceflavors": _object("ResourceFlavor", namespace, spec=flavor),
        f"{API}/clusterqueues": _object("ClusterQueue", namespace, spec=spec),
        f"{API}/workloadpriorityclasses": urgent,
    }
    try:
        for collection, body in made.items():
            await client.create(collection, body)
        local = _object("LocalQueue", "users", spec={"clusterQueue": namespace})
        await client.create(f"{API}/namespaces/{namespace}/localqueues", local)
        yield
    finally:
        for collection in made:
            with suppress(StatusError):
                await client.delete(f"{collection}/{namespace}")


async def set_quota(client: Client, namespace: str, cpu: str) -> None:
    """Of the queue of this namespace."""
    patch = [{"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": cpu}]
    await client.call("PATCH", f"{API}/clusterqueues/{namespace}", patch, "application/json-patch+json")


def _object(kind: str, name: str, *, spec: Any) -> Json:
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _settings(port: int, certificates: Path) -> Json:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": [*_FRAMEWORKS]},
        "featureGates": {"VisibilityOnDemand": False},
    }


def _definitions() -> Iterator[Json]:
    bases = "config/components/crd/bases"
    for path in sorted((module_directory(MODULE) / bases).glob("*.yaml")):
        yield definition(MODULE, f"{bases}/{path.name}")


def _webhooks(url: str, bundle: str) -> Iterator[Json]:
    """Its own registrations for Jobs, JobSets and its own kinds, by URL instead of by Service."""
    manifests = module_directory(MODULE) / "config/components/webhook/manifests.yaml"
    for one in yaml.safe_load_all(manifests.read_text()):
        one["metadata"]["name"] = f"e2e-kueue-{one['kind'].lower()}"
        one["webhooks"] = [each for each in one["webhooks"] if each["rules"][0]["apiGroups"] in _GROUPS]
        for each in one["webhooks"]:
            path = each["clientConfig"]["service"]["path"]
            each["clientConfig"] = {"url": url + path, "caBundle": bundle}
        yield one


def loose_definition(plural: str, kind: str, scope: str = "Namespaced") -> Json:
    """Of Kueue's API alone, any content; ``status`` is no subresource, so that it is stored as it is created."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    named = {"plural": plural, "singular": kind.lower(), "kind": kind}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{KUEUE}", "annotations": {"api-approved.kubernetes.io": f"https://{KUEUE}"}},
        "spec": {"group": KUEUE, "scope": scope, "names": named, "versions": [version]},
    }
