"""A Job controller beside a control plane that has none: ours as a real process, or kube-controller-manager's.

Tests of ours start one, look at it and end it; what they claim of Kubernetes they prove by the other. The cluster's
own controller manager must not run Jobs (``WITHOUT_JOBS``), and one cluster has one Job controller at a time. Not here:
Jobs (``jobs``), and what a Job controller does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from e2e.controlplane import components
from e2e.controlplane.assets import find_binaries
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import JOB_CONTROLLERS, WORKER, Files, Shape
from e2e.controlplane.process import Program, installed_mirror
from e2e.controlplane.scratch import Scratch
from e2e.manager import Samples
from e2e.ports import number_of, reserve_port
from mirror.kube.resources import WORKLOADS

READY_SECONDS = 120.0
STOP_SECONDS = 30.0
_FETCH_SECONDS = 60.0
UNLIMITED = 1_000_000
"""Requests a second that nobody reaches; kube-controller-manager has no other way to say it."""
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/jobmirror-job-controller"
"""Whose controller it is now."""
_LOOK_AGAIN_SECONDS = 0.1
_LOG_SHOWN = 16_000

WITHOUT_JOBS = replace(WORKER, controllers=JOB_CONTROLLERS.removeprefix("job-controller,"))
"""A worker whose Jobs nobody runs yet."""

GANG_GATES = {"GenericWorkload": True, "WorkloadWithJob": True}
"""Gang scheduling: Workloads and PodGroups are served, and Job controllers create them. Alpha, and off."""

_EMULATED_BY_GATE = {"JobManagedBy": "1.34", "JobPodReplacementPolicy": "1.33"}
"""Gates that 1.36 has locked, and the newest version that kube-controller-manager can emulate where they were not."""
_OPEN_GATES = {"MutableSchedulingDirectivesForSuspendedJobs", "MutablePodResourcesForSuspendedJobs"}


def with_gangs(shape: Shape) -> Shape:
    """A control plane whose API server has Workloads and PodGroups, and whose scheduler heeds them."""
    return replace(
        shape,
        feature_gates={**shape.feature_gates, **GANG_GATES, "GangScheduling": True},
        apiserver_args=(*shape.apiserver_args, f"--runtime-config={WORKLOADS.api_version}=true"),
        controllers=f"{shape.controllers},podgroup-protection-controller",
    )


class Kind(StrEnum):
    """Whose Job controller it is."""

    OURS = "ours"
    UPSTREAM = "upstream"

    def knows_gate(self, name: str) -> bool:
        """Whether this gate can be off: the oldest version that is emulated has locked some already."""
        return self is Kind.OURS or name in _OPEN_GATES or name in _EMULATED_BY_GATE


CHOSEN = Kind(os.environ.get("MIRROR_E2E_JOB_CONTROLLER", Kind.OURS))
"""Who runs the Jobs in tests that leave it open; ``upstream`` shows that such a test claims nothing wrong."""


@dataclass(frozen=True, slots=True)
class Flags:
    """How it is started."""

    qps: int = 1000
    burst: int = 2000
    gates: Mapping[str, bool] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    """Environment variables; only ours looks at them."""


class JobController:
    """One process. Use ``start``; ``launch``, ``kill`` and ``stop`` are for faults."""

    def __init__(self, cluster: Cluster, kind: Kind = Kind.OURS, flags: Flags | None = None) -> None:
        self.kind = kind
        self.user = f"job-controller-{kind}"
        """As whom it acts: this name is in the audit log."""
        self._reserved = reserve_port()
        self._port = number_of(self._reserved)
        self._scratch = Scratch(f"jobs-{kind}")
        kubeconfig = cluster.kubeconfig_for(self.user, groups=["system:masters"])
        command = _ours if kind is Kind.OURS else _upstream
        self._program = Program(command(cluster, kubeconfig, self._port, flags or Flags()), self._scratch)

    @classmethod
    @asynccontextmanager
    async def start(
        cls, cluster: Cluster, kind: Kind = Kind.OURS, flags: Flags | None = None
    ) -> AsyncIterator[JobController]:
        """One that is ready; stopped, and looked at, on leaving.

        Raises:
            ProgramEnded, TimeoutError: it did not become ready; the text holds its log.
            AssertionError: on leaving: it did not stop in time, or not well.
        """
        controller = cls(cluster, kind, flags)
        try:
            controller.launch()
            await controller.wait_until_ready()
            yield controller
            await controller.stop()
        finally:
            print(f"log of {controller.user}:", controller.log[-_LOG_SHOWN:], sep="\n")  # if a test fails
            await controller.close()

    @property
    def pid(self) -> int:
        """Its process number.

        Raises:
            ProgramEnded: it does not run.
        """
        self._program.check()
        assert self._program.pid is not None
        return self._program.pid

    @property
    def log(self) -> str:
        """What it has said so far, over all launches."""
        return self._program.last_words(sys.maxsize)

    def launch(self) -> None:
        """Start the process, and return at once."""
        self._program.start()

    async def wait_until_ready(self, *, seconds: float = READY_SECONDS) -> None:
        """Wait until ``/readyz`` (upstream: ``/healthz``) says yes.

        Raises:
            ProgramEnded: it ended instead.
            TimeoutError: it said so in no time; the text holds its last answer and the log.
        """
        last = "no answer"
        path = "/readyz" if self.kind is Kind.OURS else "/healthz"
        try:
            async with asyncio.timeout(seconds):
                while True:
                    self._program.check()
                    try:
                        code, last = await self.fetch(path)
                    except aiohttp.ClientError as error:
                        code, last = 0, repr(error)
                    if code == 200:
                        return
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        except TimeoutError:
            words = self._program.last_words()
            raise TimeoutError(f"{self.user} is not ready after {seconds} s: {last}\n{words}") from None

    async def wait_until_ended(self, *, seconds: float = STOP_SECONDS) -> int:
        """As ``Program.wait_until_ended``."""
        return await self._program.wait_until_ended(seconds=seconds)

    async def stop(self) -> None:
        """End it by SIGTERM and look at how it went; nothing happens if it does not run.

        Raises:
            AssertionError: ours took more than half a minute, ended with another code, or complained in its log.
        """
        if self.kind is Kind.UPSTREAM:
            await self.kill()
            return
        if self._program.is_running:
            self._program.send(signal.SIGTERM)
            assert await self.wait_until_ended() == 0, self._program.last_words()
        assert "Traceback (most recent call last)" not in self.log, self.log

    async def kill(self) -> None:
        """End it by SIGKILL."""
        await self._program.kill()

    async def close(self) -> None:
        """End it in any case, and remove its files."""
        await self._program.kill()
        self._scratch.close()
        self._reserved.close()

    async def fetch(self, path: str) -> tuple[int, str]:
        """GET a path of its own server: status and text."""
        scheme = "http" if self.kind is Kind.OURS else "https"
        url, timeout = f"{scheme}://127.0.0.1:{self._port}{path}", aiohttp.ClientTimeout(total=_FETCH_SECONDS)
        # Upstream makes itself a certificate that nobody has signed.
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, ssl=False) as answer:
            return answer.status, await answer.text()

    async def metrics(self) -> Samples:
        """What ``/metrics`` says now."""
        _, text = await self.fetch("/metrics")
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return Samples({(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples})


class WithKubeconfig(JobController):
    """One that acts as somebody else than an administrator."""

    def __init__(self, cluster: Cluster, kubeconfig: Path, flags: Flags | None = None) -> None:
        super().__init__(cluster, flags=flags)
        ours = f"--kubeconfig={kubeconfig}"
        command = self._program.command
        self._program.command = [ours if part.startswith("--kubeconfig=") else part for part in command]


def _ours(_: Cluster, kubeconfig: Path, port: int, flags: Flags) -> list[str | Path]:
    gates = ",".join(f"{name}={str(enabled).lower()}" for name, enabled in flags.gates.items())
    return [
        *(["/usr/bin/env", *(f"{name}={value}" for name, value in flags.constants.items())] if flags.constants else []),
        installed_mirror(),
        "job-controller",
        f"--kubeconfig={kubeconfig}",
        f"--qps={flags.qps}",
        f"--burst={flags.burst}",
        f"--listen=127.0.0.1:{port}",
        *([f"--feature-gates={gates}"] if gates else []),
    ]


def _upstream(cluster: Cluster, kubeconfig: Path, port: int, flags: Flags) -> list[str | Path]:
    emulated = min((_EMULATED_BY_GATE[name] for name in flags.gates if name in _EMULATED_BY_GATE), default="")
    shape = Shape(
        controllers="job-controller,ttl-after-finished-controller",
        client_qps=flags.qps,
        client_burst=flags.burst,
        feature_gates=flags.gates,
        controller_manager_args=(
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--authorization-always-allow-paths=/healthz,/metrics",
            *([f"--emulated-version=kube={emulated}"] if emulated else []),
        ),
    )
    binary = find_binaries("kube-controller-manager")["kube-controller-manager"]
    return components.controller_manager(binary, Files(cluster.directory), kubeconfig, shape)
