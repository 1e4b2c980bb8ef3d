"""A real ``mirror run`` process beside a management cluster, as tests start, look at, stop and kill it.

Each has a namespace, a ``managedBy`` value and an origin of its own (``Identity``), so that tests share control planes
without meeting. Started by the fixture ``manager`` and by tests that need other settings or several processes. Not
here: Jobs (``jobs``), and what the manager does.
"""

from __future__ import annotations

import asyncio
import base64
import re
import signal
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml
from prometheus_client.parser import text_string_to_metric_families

from e2e import shipped
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import Program, installed_mirror
from e2e.controlplane.scratch import Scratch
from e2e.jobs import until

READY_SECONDS = 120.0
STOP_SECONDS = 30.0
"""After which a kubelet kills it (``terminationGracePeriodSeconds``)."""
_FETCH_SECONDS = 60.0
_LOG_SHOWN = 16_000
_LOOK_AGAIN_SECONDS = 0.1
_LISTENING = re.compile(r" mirror: started listen=(\S+)")
_LEADING = "leader: ok leading"
_BAD_LINE = re.compile(r"^\S+ (ERROR|CRITICAL) |Traceback \(most recent call last\)|Warning: ")
_PREFIX = "jobmirror.io/"


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells one installation from another on shared clusters; managers that share one elect a leader."""

    namespace: str
    managed_by: str
    origin: str

    @staticmethod
    def new() -> Identity:
        """One that nobody else has."""
        token = uuid.uuid4().hex[:8]
        return Identity(f"jobmirror-{token}", f"e2e.jobmirror.io/{token}", f"e2e-{token}")


@dataclass(frozen=True, slots=True)
class Samples:
    """One scrape of ``/metrics``."""

    values: Mapping[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float:
        """The sample of this name that has these labels, among others perhaps; several are added up, none is 0."""
        wanted = set(labels.items())
        return sum(value for (found, has), value in self.values.items() if found == name and wanted <= has)


class ManagerProcess:
    """One process with its configuration. Use ``start``; ``launch``, ``kill`` and ``restart`` are for faults."""

    def __init__(
        self, management: ControlPlane, *, identity: Identity | None = None, settings: Json | None = None
    ) -> None:
        self.management = management
        self.identity = identity or Identity.new()
        self.client: Client = management.client(user_agent="e2e-manager")
        self._scratch = Scratch("manager")
        self.config: Path = self._scratch.path / "mirror.yaml"
        self._settings = _settings(self.identity, settings or {})
        self._rights: list[tuple[ControlPlane, list[Json]]] = []
        """Given to our accounts, and where."""
        self._program = Program([installed_mirror(), "run", "--config", self.config], self._scratch)
        self._log_offset = 0
        self._expected: list[re.Pattern[str]] = []

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        management: ControlPlane,
        workers: Mapping[str, ControlPlane] | None = None,
        *,
        identity: Identity | None = None,
        settings: Json | None = None,
        command: Sequence[str] | None = None,
    ) -> AsyncIterator[ManagerProcess]:
        """A manager that is ready, leads and reaches these workers; stopped, and looked at, on leaving.

        Args:
            management: the management cluster; the manager's namespace is made there, and removed with an identity
                that was made here.
            workers: registered under their names before it starts.
            identity: of an installation that exists already; default a new one.
            settings: what differs from ``mirror.yaml``'s defaults and ours, merged mapping by mapping.
            command: takes the place of ``mirror``.
        """
        manager = cls(management, identity=identity, settings=settings)
        if command is not None:
            manager.run_as(command)
        try:
            await manager.prepare()
            for name, plane in (workers or {}).items():
                await manager.register(name, plane)
            manager.launch()
            await manager.wait_until_ready(is_leading=identity is None)
            # Ready is also who has waited long enough for a worker.
            await until(manager.metrics, lambda found: found.value("jobmirror_worker_up") >= len(workers or {}))
            yield manager
            await manager.stop()
        finally:
            print(f"log of {manager.namespace}:", manager._program.last_words(_LOG_SHOWN), sep="\n")  # if a test fails
            await manager.close(removes_namespace=identity is None)

    # -- what it is -------------------------------------------------------------------------------------------------

    @property
    def namespace(self) -> str:
        """Its own namespace on the management cluster."""
        return self.identity.namespace

    @property
    def managed_by(self) -> str:
        """The value of ``spec.managedBy`` that makes a Job its own."""
        return self.identity.managed_by

    @property
    def origin(self) -> str:
        """The value of the label ``jobmirror.io/origin`` on its mirrors."""
        return self.identity.origin

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
    def is_running(self) -> bool:
        """Whether it was launched and has not ended."""
        return self._program.is_running

    # -- its life ---------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Make its namespace, unless it is there, and an account with the shipped rights, and write its configuration.

        The account is left out if the settings name a kubeconfig.
        """
        try:
            await self.client.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
        if not self._settings.get("kubeconfig"):
            chosen = self._settings.get("namespaces", [])
            files = shipped.on_management(self._settings)
            others = shipped.elsewhere(self._settings)
            granted = shipped.read(*files, namespace=self.namespace, chosen=chosen, others=others)
            self._settings["kubeconfig"] = str(await self._account(self.management, granted))
        self.config.write_text(yaml.safe_dump(self._settings))

    async def _account(self, plane: ControlPlane, granted: list[Json]) -> Path:
        self._rights.append((plane, granted))
        return await shipped.account(plane, self.namespace, granted)

    async def _account_on(self, worker: ControlPlane, prefix: str, without: Collection[str] = ()) -> Path:
        """A kubeconfig with the rights that are shipped for a worker, for the chosen namespaces if there are some."""
        chosen = [prefix + name for name in self._settings.get("namespaces", [])]
        files = [file for file in shipped.on_worker(self._settings) if file not in without]
        return await self._account(worker, shipped.read(*files, namespace=self.namespace, chosen=chosen))

    def run_as(self, command: Sequence[str]) -> None:
        """From the next launch on, this command takes the place of ``mirror``."""
        self._program.command = [*command, "run", "--config", str(self.config)]

    def launch(self) -> None:
        """Start the process, and return at once; the log goes on where it was."""
        self._log_offset = len(self._log_text())
        self._program.start()

    async def wait_until_ready(self, *, is_leading: bool = True, seconds: float = READY_SECONDS) -> None:
        """Wait until ``/readyz`` says yes, and that it leads unless standing by will do.

        Raises:
            ProgramEnded: it ended instead.
            TimeoutError: it said so in no time; the text holds its last answer and the log.
        """
        last = "no answer"
        try:
            async with asyncio.timeout(seconds):
                while True:
                    self._program.check()
                    if self._listens_at() is not None:
                        try:
                            code, last = await self.fetch("/readyz")
                        except aiohttp.ClientError as error:
                            code, last = 0, repr(error)
                        if code == 200 and (not is_leading or _LEADING in last):
                            return
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        except TimeoutError:
            log = self._program.last_words()
            raise TimeoutError(f"the manager is not ready after {seconds} s: {last}\n{log}") from None

    async def stop(self, *, code: int = 0) -> None:
        """End it by SIGTERM and look at how it went; nothing happens if it does not run.

        Raises:
            AssertionError: it took more than half a minute, ended with another code, or complained in its log.
        """
        if self.is_running:
            self._program.send(signal.SIGTERM)
            ended = await self.wait_until_ended(seconds=STOP_SECONDS)
            assert ended == code, f"exit code {ended}\n{self._program.last_words()}"
        self.check_log()

    async def wait_until_ended(self, *, seconds: float = STOP_SECONDS) -> int:
        """As ``Program.wait_until_ended``."""
        return await self._program.wait_until_ended(seconds=seconds)

    async def kill(self) -> None:
        """End it by SIGKILL."""
        await self._program.kill()

    async def restart(self) -> None:
        """Stop it if it runs, start it again, and wait until it leads."""
        await self.stop()
        self.launch()
        await self.wait_until_ready()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP."""
        self._program.send(number)

    async def close(self, *, removes_namespace: bool = True) -> None:
        """End it in any case, and remove its files and its namespace."""
        await self._program.kill()
        try:
            if removes_namespace:
                await self.client.delete(f"/api/v1/namespaces/{self.namespace}")
                await self._withdraw_rights()
        except (StatusError, aiohttp.ClientError):
            pass  # the control plane is gone, or never had it
        finally:
            await self.client.close()
            self._scratch.close()

    async def _withdraw_rights(self) -> None:
        """Take back what our accounts were given, and their namespaces on workers."""
        for plane, granted in self._rights:
            await shipped.withdraw(plane, granted)
        for plane in {plane for plane, _ in self._rights if plane is not self.management}:
            async with Client(plane.kubeconfig) as client:
                await client.delete(f"/api/v1/namespaces/{self.namespace}")

    # -- workers ----------------------------------------------------------------------------------------------------

    async def register(
        self,
        name: str,
        plane: ControlPlane | None = None,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        kubeconfig: bytes | None = None,
    ) -> None:
        """Register a worker, or register it anew: a Secret with a kubeconfig of shipped rights, or with these bytes.

        Annotations without a prefix get ours: ``{"capacity": "2"}``.
        """
        prefix = (annotations or {}).get("namespace-prefix", "")
        if kubeconfig is None:
            kubeconfig = (await self._account_on(plane, prefix)).read_bytes() if plane else b""
        content = kubeconfig
        body: Json = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "labels": {f"{_PREFIX}worker": "true", **(labels or {})},
                "annotations": _prefixed(annotations or {}),
            },
            "data": {"kubeconfig": base64.b64encode(content).decode()},
        }
        try:
            await self.client.create(self._secrets, body)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            await self.client.call("PUT", f"{self._secrets}/{name}", body)

    async def kubeconfig_of(self, plane: ControlPlane, *, without: Collection[str] = ()) -> bytes:
        """A kubeconfig with the rights that are shipped for a worker, but for those of some files.

        For who registers it in another way.
        """
        return (await self._account_on(plane, "", without)).read_bytes()

    async def annotate_worker(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Change annotations of a worker's Secret; None removes one. Prefixes as in ``register``."""
        await self.client.merge(f"{self._secrets}/{name}", {"metadata": {"annotations": _prefixed(annotations)}})

    async def unregister(self, name: str) -> None:
        """Delete a worker's Secret."""
        await self.client.delete(f"{self._secrets}/{name}")

    async def worker_events(self, name: str, reason: str = "") -> list[Json]:
        """Our events about a worker's Secret, of this reason if one is given."""
        events = await self.client.list(
            f"/api/v1/namespaces/{self.namespace}/events", fieldSelector=f"involvedObject.name={name}"
        )
        return [event for event in events if reason in ("", event["reason"])]

    @property
    def _secrets(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    # -- what it says -----------------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where its own server listens, as ``HOST:PORT``; empty until it does."""
        return self._listens_at() or ""

    async def fetch(self, path: str) -> tuple[int, str]:
        """GET a path of its own server: status and text."""
        address = self._listens_at()
        if address is None:
            raise aiohttp.ClientError("it does not listen yet")
        timeout = aiohttp.ClientTimeout(total=_FETCH_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(f"http://{address}{path}") as answer:
            return answer.status, await answer.text()

    async def is_leading(self) -> bool:
        """Whether it says that it leads.

        Raises:
            aiohttp.ClientError: it does not answer.
        """
        _, text = await self.fetch("/readyz")
        return _LEADING in text

    async def metrics(self) -> Samples:
        """What ``/metrics`` says now."""
        _, text = await self.fetch("/metrics")
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return Samples({(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples})

    def log_lines(self) -> list[str]:
        """All lines of its log, of every launch."""
        return self._log_text().splitlines()

    def expect_complaints(self, *patterns: str) -> None:
        """Lines that one of these patterns is found in are no reason to fail at ``stop``."""
        self._expected += [re.compile(pattern) for pattern in patterns]

    def check_log(self) -> None:
        """Raise AssertionError if it logged an error, a traceback or a Python warning that no test expects."""
        bad = [line for line in self.log_lines() if _BAD_LINE.search(line)]
        unexpected = [line for line in bad if not any(pattern.search(line) for pattern in self._expected)]
        assert not unexpected, "the manager complains:\n" + "\n".join(unexpected)

    def _log_text(self) -> str:
        log = self._program.log
        return log.read_text(errors="replace") if log.exists() else ""

    def _listens_at(self) -> str | None:
        found = _LISTENING.search(self._log_text()[self._log_offset :])
        return found[1] if found else None


def _settings(identity: Identity, changes: Json) -> Json:
    """A configuration for tests: a leader outlasts a machine's pauses, and its workers are on this machine."""
    base: Json = {
        "managedBy": identity.managed_by,
        "origin": identity.origin,
        "namespace": identity.namespace,
        "listen": "127.0.0.1:0",
        "workers": {"allow": {"loopback": True}},
        "leaderElection": {"leaseDuration": "20s", "renewDeadline": "16s", "retryPeriod": "500ms"},
    }
    return _merged(base, changes)


def _merged(base: Json, changes: Json) -> Json:
    both = {key: _merged(base[key], value) for key, value in changes.items() if isinstance(base.get(key), dict)}
    return {**base, **changes, **both}


def _prefixed(annotations: Mapping[str, str | None]) -> dict[str, str | None]:
    return {key if "/" in key else _PREFIX + key: value for key, value in annotations.items()}
