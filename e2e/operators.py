"""The real controllers of other kinds than Job beside control planes of ours, with their definitions and webhooks.

Built from their Go modules (``controlplane/build``); they act as cluster administrators. Which there are, and what each
needs, is in ``operator_table``. Only for control planes that can reach this machine's loopback.
"""

from __future__ import annotations

import asyncio
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import yaml

from e2e import definitions
from e2e.controlplane.assets import find_binaries
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.plane import CannotDo, ControlPlane
from e2e.controlplane.process import Program
from e2e.controlplane.scratch import Scratch
from e2e.go_modules import definition, definition_of, module_directory
from e2e.jobs import read_or_none, until
from e2e.operator_table import JOBSET, MPI_OPERATOR, Files, Operator
from e2e.ports import number_of, reserve_port
from mirror.kube.resources import Resource
from mirror.serving.x509 import Authority

ALWAYS = (JOBSET, MPI_OPERATOR)
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}


@asynccontextmanager
async def running(
    *planes: ControlPlane, operators: Iterable[Operator] = ALWAYS, planes_end: bool = False
) -> AsyncIterator[Controllers]:
    """The kinds of these operators are served on these planes, and run there by their own controllers.

    With ``planes_end`` nothing is taken back on leaving: a definition goes after its thousands of objects.

    Raises:
        MissingBinaries: the controllers are not built.
        CannotDo: a cluster is not of our own making.
        ProgramEnded: on leaving: a controller ended although nobody ended it.
    """
    for plane in planes:
        if not isinstance(plane, Cluster):
            raise CannotDo(f"{plane.name} cannot reach webhooks on this machine")
    chosen = list(dict.fromkeys(operators))
    find_binaries(*(one.program for one in chosen if not one.script))
    beside = [_Beside(plane, one) for plane in planes if isinstance(plane, Cluster) for one in chosen]
    try:
        await asyncio.gather(*(one.define() for one in beside))
        await asyncio.gather(*(one.start() for one in beside))
        yield Controllers(beside)
        for one in beside:
            one.check()
    finally:
        await asyncio.gather(*(one.stop(takes_back=not planes_end) for one in beside))


class Controllers:
    """Those that run, for faults."""

    def __init__(self, beside: Iterable[_Beside]) -> None:
        self._beside = list(beside)

    @asynccontextmanager
    async def away(self, plane: ControlPlane, kind: Resource) -> AsyncIterator[None]:
        """While the block runs, one cluster lacks the controller of a kind, and its webhooks do not answer."""
        (one,) = (each for each in self._beside if each.plane is plane and kind in each.operator.kinds)
        await one.kill()
        try:
            yield
        finally:
            await one.run()


class _Beside:
    """One controller of one cluster, with its definitions and webhooks."""

    def __init__(self, plane: Cluster, operator: Operator) -> None:
        self.plane = plane
        self.operator = operator
        self._client = plane.client(user_agent="e2e-operators")
        self._scratch = Scratch(f"{operator.program}-{plane.name}")
        self._port = reserve_port()
        authority = Authority.new(plane.name, now=datetime.now(UTC))
        serving = authority.issue_server(["127.0.0.1"])
        (self._scratch.path / "tls.crt").write_bytes(serving.certificate)
        (self._scratch.path / "tls.key").write_bytes(serving.key)
        bundle = b64encode(authority.certificate).decode()
        self._webhooks = list(_webhooks(operator, f"https://127.0.0.1:{number_of(self._port)}", bundle))
        self._configuration = list(operator.configuration())
        self._definitions: list[str] = []
        user = plane.kubeconfig_for("operators", groups=["system:masters"])
        files = Files(user, self._scratch.path, number_of(self._port))
        self._program = Program([*_program_of(operator), *operator.arguments(files)], self._scratch)

    async def define(self) -> None:
        """Have its kinds served, and what it reads at its start; one controller may watch another's kind."""
        found = [definition_of(kind.kind) for kind in self.operator.kinds]
        found += [definition(self.operator.module, path) for path in self.operator.definitions]
        self._definitions = [definitions.name_of(one) for one in found]
        await asyncio.gather(*(definitions.define(self._client, one) for one in found))
        for one in self._configuration:
            await self._client.create(one.collection, one.body)

    async def start(self) -> None:
        """Run it; it answers when this returns."""
        for one in self._webhooks:
            await self._client.create(f"{_ADMISSION}/{_PLURALS[one['kind']]}", one)
        await self.run()

    async def run(self) -> None:
        """Let it run, again perhaps."""
        self._program.start()
        await until(self._is_answered, seconds=180, describe=self._last_words)

    async def kill(self) -> None:
        """End it; what is registered of it stays."""
        await self._program.kill()

    def check(self) -> None:
        """Raise ``ProgramEnded`` if the controller does not run."""
        self._program.check()

    async def stop(self, *, takes_back: bool) -> None:
        """End it; where the cluster is everybody's, nothing of it stays."""
        try:
            if takes_back:
                await self._take_back()
        finally:
            await self._program.kill()
            await self._client.close()
            self._scratch.close()
            self._port.close()

    async def _take_back(self) -> None:
        await asyncio.gather(*(definitions.undefine(self._client, name) for name in self._definitions))
        webhooks = [f"{_ADMISSION}/{_PLURALS[one['kind']]}/{one['metadata']['name']}" for one in self._webhooks]
        for path in (*webhooks, *(one.path for one in self._configuration)):
            with suppress(StatusError):
                await self._client.delete(path)

    async def _last_words(self) -> str:
        return await asyncio.to_thread(self._program.last_words)

    async def _is_answered(self) -> bool:
        """Whether its webhooks are asked and answer: what it is given is changed or denied by them."""
        self.check()
        if not self._webhooks:
            return True
        for one in self.operator.named:
            if await read_or_none(self._client, one.path) is None:
                try:
                    await self._client.create(one.collection, one.body)
                except StatusError:
                    return False
        kind, body = self.operator.kinds[0], self.operator.probe
        named = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "probe"}, **body}
        try:
            stored: Json | None = await self._client.create(f"{kind.path('default')}?dryRun=All", named)
        except StatusError as error:
            if "denied the request" not in str(error):
                return False
            stored = None
        return self.operator.is_answer(stored)


def _program_of(operator: Operator) -> list[str | Path]:
    if operator.script:
        return [sys.executable, Path(__file__).with_name(operator.script)]
    return [find_binaries(operator.program)[operator.program]]


def _webhooks(operator: Operator, url: str, bundle: str) -> Iterator[Json]:
    """Its own registrations for its kinds, by URL instead of by Service."""
    if not operator.webhooks:
        return
    for one in yaml.safe_load_all((module_directory(operator.module) / operator.webhooks).read_text()):
        one["metadata"]["name"] = f"e2e-{operator.program}-{one['kind'].lower()}"
        one["webhooks"] = [each for each in one["webhooks"] if operator.takes(each["rules"][0]["resources"])]
        for each in one["webhooks"]:
            path = each["clientConfig"]["service"]["path"]
            each["clientConfig"] = {"url": url + path, "caBundle": bundle}
        yield one


async def define(client: Client, kind: Resource) -> None:
    """Serve a kind."""
    await definitions.define(client, definition_of(kind.kind))


async def undefine(client: Client, kind: Resource) -> None:
    """Serve a kind no more; with that, all its objects go."""
    await definitions.undefine(client, f"{kind.plural}.{kind.group}")
