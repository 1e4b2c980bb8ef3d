"""The kubelet of a control plane, put together: its nodes, what runs containers, and the shell around them."""

from __future__ import annotations

import os
import platform
import random as chances
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mirror.embedded.controllers.client import Api
from mirror.embedded.controllers.kubelet.environment import Environment
from mirror.embedded.controllers.kubelet.kubelet import Kubelet
from mirror.embedded.controllers.kubelet.node import Machinery, Node
from mirror.embedded.controllers.kubelet.runtime import Runtime
from mirror.embedded.controllers.kubelet.simulated import Simulated
from mirror.embedded.controllers.recording import event_recorder
from mirror.embedded.controllers.settings import Settings
from mirror.embedded.podlogs import PodLogs
from mirror.kube.client import Client
from mirror.runtime.clock import Clock
from mirror.telemetry.logs import Log

Pods = Literal["simulated", "process"]

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Containers:
    """What the kubelet does with containers."""

    pods: Pods = "simulated"
    """Only say that they run, or run their commands as processes."""
    random: chances.Random = field(default_factory=chances.SystemRandom)
    """Where their ids come from."""
    logs: PodLogs = field(default_factory=PodLogs)
    """Where what they write is kept; the API server that serves ``pods/log`` has the same."""


async def run(client: Client, *, clock: Clock, log: Log, settings: Settings, containers: Containers) -> None:
    """Run the kubelet of all nodes of the settings until cancelled.

    Raises:
        OSError: processes need a folder, and it cannot be made.
    """
    api = Api(client, "kubelet")
    is_silent = not settings.has_pod_events
    recorder = event_recorder(api, "kubelet", clock=clock, host=settings.nodes[0], is_silent=is_silent)
    machinery = Machinery() if containers.pods == "simulated" else _this_machine()
    nodes = {
        name: Node(name, f"10.0.0.{number + 1}", api, machinery=machinery, settings=settings, clock=clock, log=log)
        for number, name in enumerate(settings.nodes)
    }
    runtime: Runtime = Simulated(containers.logs, containers.random)
    if containers.pods == "process":
        # Only here, since it needs a system with processes and limits as Unix has them.
        from mirror.embedded.controllers.kubelet.processes import Processes

        if settings.folder is not None:
            settings.folder.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="jobmirror-pods-", dir=settings.folder))
        environment = Environment(api, machinery.capacity)
        runtime = Processes(folder, containers.logs, environment, chance=containers.random, clock=clock)
    try:
        await Kubelet(client, api, nodes, runtime, recorder, clock=clock).run(log)
    finally:
        runtime.close()


def _this_machine() -> Machinery:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    return Machinery(
        capacity={"cpu": str(os.cpu_count() or 1), "memory": f"{memory}Ki", "pods": "1000"},
        about="containers are processes of this machine",
        runtime="jobmirror://process",
        system=platform.platform(),
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
    )
