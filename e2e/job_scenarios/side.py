"""One side of the comparison: a control plane whose Jobs are run by one Job controller, upstream's or ours.

The controller is a process of its own with a user of its own, so that it can be killed alone and its writes can be told
from others'; its neighbours (garbage collection, TTL, CronJobs) are kube-controller-manager's on both sides.
There is no kubelet, scheduler, pod garbage collection or namespace deletion. Not here: scripts (``stage``).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from e2e.controlplane import components
from e2e.controlplane.assets import find_binaries
from e2e.controlplane.client import Client
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import Files, Shape
from e2e.controlplane.process import Program, installed_mirror
from e2e.controlplane.scratch import Scratch
from e2e.job_controller import GANG_GATES, with_gangs
from e2e.job_scenarios.pulse import Pulse
from e2e.job_scenarios.sightings import Sightings
from mirror.kube.resources import POD_GROUPS, WORKLOADS

CONTROLLER_USER = "job-controller"
NEIGHBOURS_USER = "system:kube-controller-manager"
_NEIGHBOURS = "garbage-collector-controller,cronjob-controller"
_TTL = "ttl-after-finished-controller"
_QPS, _BURST = 1000, 2000
_READY_SECONDS = 180.0
_FLUSH_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 0.02
_TAIL_BYTES = 20_000
_PROBES = "job-scenarios-probe"
_WRITES = ("create", "update", "patch", "delete", "deletecollection")

Command = Callable[[Cluster, Path], list[str | Path]]
"""The command line of a Job controller for a cluster and a kubeconfig."""


def upstream(cluster: Cluster, kubeconfig: Path) -> list[str | Path]:
    """kube-controller-manager with nothing but its Job controller."""
    binary = find_binaries("kube-controller-manager")["kube-controller-manager"]
    gates = cluster.shape.feature_gates
    shape = Shape(controllers="job-controller", client_qps=_QPS, client_burst=_BURST, feature_gates=gates)
    return components.controller_manager(binary, Files(cluster.directory), kubeconfig, shape)


def ours(cluster: Cluster, kubeconfig: Path) -> list[str | Path]:
    """``mirror job-controller``."""
    limits = (f"--qps={_QPS}", f"--burst={_BURST}")
    gates = [f"{name}=true" for name in GANG_GATES if cluster.shape.feature_gates.get(name)]
    return [
        installed_mirror(),
        "job-controller",
        f"--kubeconfig={kubeconfig}",
        "--listen=127.0.0.1:0",
        "--no-leader-election",
        f"--feature-gates={','.join(gates)}",
        *limits,
    ]


@dataclass(frozen=True, slots=True)
class Kind:
    """A Job controller and the neighbours that it needs."""

    command: Command
    neighbours: str
    """``--controllers`` of the kube-controller-manager beside it."""


KINDS = {"upstream": Kind(upstream, f"{_NEIGHBOURS},{_TTL}"), "ours": Kind(ours, _NEIGHBOURS)}  # ours has its own TTL


class Side:
    """A running control plane with its Job controller. Make one with ``start``."""

    def __init__(self, cluster: Cluster, client: Client, sightings: Sightings, controller: Program) -> None:
        self.cluster = cluster
        self.client = client
        self.sightings = sightings
        self.controller = controller
        self.pulse = Pulse(client, sightings, _PROBES)
        self._probes = itertools.count()
        self._outages: Outages | None = None

    @classmethod
    @asynccontextmanager
    async def start(cls, name: str, kind: Kind, *, has_gangs: bool = False) -> AsyncIterator[Side]:
        """A side that works, with gang scheduling or as it is by default; it is gone when the block is left.

        Raises what ``Cluster.start`` does, and TimeoutError if the Job controller does nothing.
        """
        async with AsyncExitStack() as stack:
            scratch = stack.enter_context(closing(Scratch(f"job-controller-{name}")))
            shape = _shape(scratch.path, kind.neighbours)
            starting = Cluster.start(name, with_gangs(shape) if has_gangs else shape)
            cluster = await stack.enter_async_context(starting)
            kubeconfig = cluster.kubeconfig_for(CONTROLLER_USER, groups=["system:masters"])
            controller = Program(kind.command(cluster, kubeconfig), scratch)
            watcher = cluster.client(user_agent="job-scenarios-watch")
            sightings = await stack.enter_async_context(Sightings.watching(watcher))
            client = cluster.client(user_agent="job-scenarios")
            side = cls(cluster, client, sightings, controller)
            await side.client.create("/api/v1/namespaces", {"metadata": {"name": _PROBES}})
            stack.push_async_callback(controller.kill)
            controller.start()
            await side.until_it_works()
            await stack.enter_async_context(side.pulse.beating())
            yield side

    async def until_it_works(self) -> None:
        """Wait until the controller starts a new Job.

        Raises:
            ProgramEnded: it ended instead.
            TimeoutError: it does not; the text holds the end of its log.
        """
        name = f"probe-{next(self._probes)}"
        spec = {"parallelism": 0, "template": {"spec": _POD}}
        jobs = f"/apis/batch/v1/namespaces/{_PROBES}/jobs"
        await self.client.create(jobs, {"metadata": {"name": name}, "spec": spec})
        waiting = asyncio.create_task(
            self.client.wait_until(f"{jobs}/{name}", lambda job: job and job["status"], seconds=_READY_SECONDS),
            name=f"wait for {name}",
        )
        try:
            while not waiting.done():
                self.controller.check()
                await asyncio.wait([waiting], timeout=0.1)
            await waiting
        except TimeoutError:
            raise TimeoutError(f"the Job controller does nothing:\n{self.controller.last_words()}") from None
        finally:
            waiting.cancel()

    def expect_outages(self, count: int) -> None:
        """So many scripts will ask for an ``outage``; all of them get the same one."""
        self._outages = Outages(self, count)

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """The controller is down within the block, for everybody who was expected."""
        assert self._outages is not None, "expect_outages comes first"
        async with self._outages.one():
            yield

    async def miss_outage(self) -> None:
        """A script ended before it came to its outage: the others need not wait for it."""
        async with self.outage():
            pass

    def audit_log(self) -> Path:
        """Where the API server writes every write with its answer."""
        return self.cluster.directory / "audit.log"

    async def flush_audit_log(self) -> None:
        """Return when all that was answered so far is in the log."""
        mark = f"mark-{next(self._probes)}"
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": mark}})
        async with asyncio.timeout(_FLUSH_SECONDS):
            while True:
                if mark.encode() in self.audit_log().read_bytes()[-_TAIL_BYTES:]:
                    return
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def make_namespace(self, name: str, labels: dict[str, str] | None = None) -> None:
        """Make a namespace; one that is there is an error."""
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels or {}}})


class Outages:
    """One time in which the controller is down, for several scripts at once: it starts when the last has come."""

    def __init__(self, side: Side, count: int) -> None:
        self._side = side
        self._missing = count
        self._inside = count
        self._down = asyncio.Event()
        self._up = asyncio.Event()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """One script's part."""
        await self.come()
        try:
            yield
        finally:
            await self.go()

    async def come(self) -> None:
        """One more is there. With the last one it begins."""
        self._missing -= 1
        if self._missing == 0:
            await self._side.controller.kill()
            self._down.set()
        await self._down.wait()

    async def go(self) -> None:
        """One is done. With the last one it ends."""
        self._inside -= 1
        if self._inside == 0:
            self._side.controller.start()
            await self._side.until_it_works()
            self._up.set()
        await self._up.wait()


_POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}


def _shape(directory: Path, neighbours: str) -> Shape:
    """Neighbours of the Job controller, and an audit log that holds what was answered to each write on its objects."""
    rules = [
        {
            "level": "RequestResponse",
            "verbs": list(_WRITES),
            "resources": [
                {"group": "batch", "resources": ["jobs", "jobs/status"]},
                {"group": "", "resources": ["pods", "namespaces"]},
                {"group": WORKLOADS.group, "resources": [WORKLOADS.plural, POD_GROUPS.plural]},
            ],
        },
        {"level": "None"},
    ]
    policy = directory / "audit-policy.json"
    body = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    policy.write_bytes(msgspec.json.encode(body))
    return Shape(
        controllers=neighbours,
        audit="Metadata",
        client_qps=_QPS,
        client_burst=_BURST,
        apiserver_args=(f"--audit-policy-file={policy}", "--audit-log-maxsize=10000"),
    )
