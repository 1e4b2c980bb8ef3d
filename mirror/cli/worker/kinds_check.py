"""``mirror kinds --check``: every kind on every cluster. What is asked of one is in ``operations.checking.kinds``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import click
import msgspec

from mirror.cli.user import printing
from mirror.cli.user.failures import Failure
from mirror.cli.user.running import progress
from mirror.cli.user.terminal import display
from mirror.cli.worker import clusters
from mirror.cli.worker.arguments import allowed
from mirror.cli.worker.check import finding_lines
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations import worker_objects
from mirror.cli.worker.operations.checking.judging import Finding, fail, has_failed, judge_unread
from mirror.cli.worker.operations.checking.kinds import examine_management, examine_worker
from mirror.cli.worker.operations.checking.probing import LOOPBACK, connected
from mirror.cli.worker.operations.enrolment import describe_refusal
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.cli.worker.operations.worker_objects import Gone, Unusable, WorkerObject
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.registry import Kinds
from mirror.kube.connect import MANAGEMENT
from mirror.kube.kubeconfig import KubeconfigRefused, check_kubeconfig
from mirror.kube.resources import SECRETS
from mirror.model.text import clean
from mirror.settings.schema import Settings
from mirror.workers.connection import State
from mirror.workers.inventory import Declared, WorkerInventory
from mirror.workers.spec import WorkerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line."""

    settings: Settings | None = None
    """Of the manager; None: as it has recorded its kinds."""
    allow: tuple[str, ...] = ()
    form: str = "text"
    where: Where = field(default_factory=Where)


class Report(msgspec.Struct, frozen=True):
    """All kinds on one cluster."""

    cluster: str
    """``management``, or the worker's name."""
    findings: list[Finding]


async def check(asked: Asked) -> None:
    """Look, and print what was found.

    Raises:
        Failure: a permission is missing, or a worker cannot be asked.
    """
    async with clusters.home(asked.where) as home:
        with progress("checking kinds"):
            found = await reports(home, asked)
    if asked.form == "text":
        for report in found:
            heading = "the management cluster" if report.cluster == MANAGEMENT else f"worker {report.cluster}"
            printing.say(finding_lines(heading, report.findings, display()))
        if not any(report.findings for report in found):
            click.echo(_NOTHING)
    else:
        click.echo(printing.listing("KindCheck", found, asked.form))
    bad = [report.cluster for report in found if has_failed(report.findings)]
    if bad:
        raise Failure(f"checks failed: {', '.join(bad)}")


_NOTHING = (
    "the manager mirrors Jobs alone, which every cluster serves; with --config FILE other kinds are checked before "
    "they are enabled"
)


async def reports(home: ManagementCluster, asked: Asked) -> list[Report]:
    """The management cluster, then each worker by name."""
    settings = asked.settings
    kinds = kinds_of(settings.kinds) if settings is not None else await home.kinds()
    allow = {**(settings.workers.allow if settings is not None else {}), **allowed(asked.allow)}
    namespaces = settings.namespaces if settings is not None else ()
    found = [Report(MANAGEMENT, await examine_management(home, kinds, namespaces))]
    inventory = await home.inventory()
    secrets = worker_objects.own_secrets(await home.worker_secrets(), inventory)
    asking = _Asking(home, kinds, allow, namespaces, inventory)
    for name, secret in secrets.items():
        found.append(Report(name, await _on_worker(WorkerObject(name, SECRETS, secret), asking)))
    if any(kind.can_vanish for kind in kinds):
        others = ((name, entry.declared) for name, entry in sorted(inventory.entries.items()) if name not in secrets)
        found += [Report(name, await _on_declared(name, one, asking)) for name, one in others if one is not None]
    return found


@dataclass(frozen=True, slots=True)
class _Asking:
    """What every worker is asked for."""

    home: ManagementCluster
    kinds: Kinds
    allow: Mapping[str, bool]
    namespaces: Sequence[str]
    inventory: WorkerInventory


async def _on_declared(name: str, declared: Declared, asking: _Asking) -> list[Finding]:
    try:
        return await _on_worker(await worker_objects.find_declared(asking.home, name, declared), asking)
    except Gone as gone:
        return [fail("declaration", str(gone), f"mirror worker check {name}")]
    except ClusterError as trouble:
        return [judge_unread(clean(declared.by, longest=400), str(trouble))]


async def _on_worker(worker: WorkerObject, asking: _Asking) -> list[Finding]:
    """Each kind on one worker.

    Raises:
        ClusterError: what its declaration names may not be read.
    """
    name, kinds = worker.worker, asking.kinds
    see = f"mirror worker check {name}"
    # As in the check of a worker: a manager that is connected through a loopback address has opted in to it.
    is_connected = asking.inventory.entry(name).state == State.CONNECTED.value
    allow = {**LOOPBACK, **asking.allow} if is_connected else asking.allow
    try:
        spec = await worker_objects.read_connection(asking.home, worker)
        kubeconfig = check_kubeconfig(spec.kubeconfig, allow)
        async with connected(name, kubeconfig, allow) as (client, _):
            return await examine_worker(client, name, kinds, _there(spec, asking.namespaces), by=worker.by)
    except Unusable as error:
        return [fail("declaration" if worker.by else "secret", str(error), see)]
    except KubeconfigRefused as error:
        return [fail("kubeconfig", f"refused: {describe_refusal(error)}", error.fix or see)]


def _there(spec: WorkerSpec, namespaces: Sequence[str]) -> list[str]:
    """Where permissions are needed: in the chosen namespaces, or the ones it accepts by name; none: everywhere."""
    by_name = () if any(set(one) & set("*?[]!") for one in spec.namespaces) else spec.namespaces
    return [spec.namespace_prefix + one for one in namespaces or by_name]
