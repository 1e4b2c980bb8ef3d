"""``mirror worker add``: options into values, steps as lines. What is done is ``operations.registration``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import click
import tenacity

from mirror.cli.user import printing
from mirror.cli.user.failures import Failure
from mirror.cli.user.running import progress
from mirror.cli.worker import check, clusters
from mirror.cli.worker.arguments import allowed, check_annotations, check_label, granted_kinds
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations import registration
from mirror.cli.worker.operations.checking.judging import Finding, has_failed
from mirror.cli.worker.operations.enrolment import Enrolment
from mirror.cli.worker.operations.registration import Added
from mirror.cli.worker.operations.roles import DEPENDENCIES, SCORES, Grant
from mirror.cli.worker.operations.sites import ManagementCluster
from mirror.kube.kubeconfig import Cluster
from mirror.model import names
from mirror.model.text import clean, nearest

MOST_CHECKS, RETRY_SECONDS = 4, 1.0
"""Of the check at the end: roles take a moment to become effective, and the manager to connect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line."""

    name: str
    context: str = ""
    from_secret: str = ""
    """NAMESPACE/NAME of a Secret with an administrator's kubeconfig of the worker, in place of a context."""
    key: str = "value"
    labels: tuple[str, ...] = ()
    capacity: int | None = None
    weight: float | None = None
    namespaces: str = ""
    namespace_prefix: str = ""
    logs: bool = False
    watch_pods: bool = False
    read_workloads: bool = False
    seed_progress: bool = False
    dependencies: str = ""
    scores: str = ""
    pod_requests: bool = False
    create_namespaces: bool = False
    no_renewal: bool = False
    kinds: str = ""
    token_duration: int = 24 * 3600
    server: str = ""
    allow: tuple[str, ...] = ()
    managed_by: str = names.DEFAULT_MANAGED_BY
    dry_run: bool = False
    no_check: bool = False
    form: str = "text"
    where: Where = field(default_factory=Where)

    def enrolment(self) -> Enrolment:
        """Put together what is wanted of the new worker.

        Raises:
            UsageError: an option cannot be understood.
        """
        namespaces = _parts([self.namespaces])
        said = {
            "capacity": "" if self.capacity is None else str(self.capacity),
            "weight": "" if self.weight is None else f"{self.weight:g}",
            "namespaces": ",".join(namespaces),
            "namespace-prefix": self.namespace_prefix,
        }
        annotations = {key: value for key, value in said.items() if value}
        check_annotations(annotations)
        grant = Grant(
            namespace=self.where.namespace,
            namespaces=tuple(self.namespace_prefix + one for one in namespaces),
            create_namespaces=self.create_namespaces,
            logs=self.logs,
            watch_pods=self.watch_pods,
            read_workloads=self.read_workloads,
            seed_progress=self.seed_progress,
            dependencies=_chosen("--dependencies", self.dependencies, DEPENDENCIES),
            scores=_chosen("--scores", self.scores, SCORES),
            pod_requests=self.pod_requests,
            renewal=not self.no_renewal,
            kinds=granted_kinds(self.kinds),
        )
        return Enrolment(
            self.name,
            grant,
            self.where.namespace,
            labels=_pairs(self.labels),
            annotations=annotations,
            allow=allowed(self.allow),
            token_seconds=self.token_duration,
        )


async def add(asked: Asked) -> None:
    """Do it, and say each step.

    Raises:
        Failure: the worker is registered, but something is wrong with it.
    """
    wanted = asked.enrolment()
    async with AsyncExitStack() as connections:
        if asked.from_secret:
            home = await connections.enter_async_context(clusters.home(asked.where))
            by_secret = clusters.worker_by_secret(home.site, asked.from_secret, asked.key, wanted.allow)
            worker = await connections.enter_async_context(by_secret)
        else:
            worker = await connections.enter_async_context(clusters.worker(asked.where, asked.context))
        reached_at = _reached_at(worker.cluster, asked.server)
        if asked.dry_run:
            _print_plan(wanted, reached_at, asked.form)
            return
        if not asked.from_secret:
            home = await connections.enter_async_context(clusters.home(asked.where))
        # Its steps are its progress.
        added = await registration.add(home, worker, wanted, reached_at, lambda step: _say_step(asked.form, step))
        findings: list[Finding] = []
        if not asked.no_check:
            with progress(f"checking worker {asked.name}"):
                findings = await _look(home, asked)
    _print_result(asked.form, added, findings)
    if has_failed(findings):
        raise Failure(f"worker {asked.name} is registered, but checks failed: {asked.name}")


async def _look(home: ManagementCluster, asked: Asked) -> list[Finding]:
    question = check.Asked(workers=(asked.name,), allow=asked.allow, managed_by=asked.managed_by, where=asked.where)
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_not_result(_is_settled),
        wait=tenacity.wait_fixed(RETRY_SECONDS),
        stop=tenacity.stop_after_attempt(MOST_CHECKS),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
    )
    reports: list[check.Report] = await retrying(check.reports, home, question)
    return reports[0].findings


def _is_settled(reports: list[check.Report]) -> bool:
    """Whether the roles are effective, and the manager has connected."""
    findings = (one for report in reports for one in report.findings)
    return not any(
        one.verdict == "fail" if one.what.startswith("kind ") else one.verdict != "ok"
        for one in findings
        if one.what in ("permissions", "manager") or one.what.startswith("kind ")
    )


def _reached_at(cluster: Cluster, server: str) -> Cluster:
    return replace(cluster, server=server.rstrip("/")) if server else cluster


def _print_plan(wanted: Enrolment, reached_at: Cluster, form: str) -> None:
    there, here = registration.plan(wanted, reached_at)
    if form == "name":
        printing.say(f"{body['kind'].lower()}/{body['metadata']['name']}" for body in (*there, here))
    elif form != "text":
        planned = [
            *({"cluster": "worker", "object": body} for body in there),
            {"cluster": "management", "object": here},
        ]
        click.echo(printing.listing("RegistrationStep", planned, form))
    else:
        click.echo("# On the worker:")
        click.echo("\n---\n".join(printing.document(body, "yaml") for body in there))
        click.echo("---\n# On the management cluster, with a token in place of TOKEN:")
        click.echo(printing.document(_plainly(here), "yaml"))


def _plainly(secret: dict[str, Any]) -> dict[str, Any]:
    """The Secret with its kubeconfig as text, for people."""
    import base64

    data = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    return {**{key: value for key, value in secret.items() if key != "data"}, "stringData": data}


def _say_step(form: str, step: str) -> None:
    click.echo(f"✓ {clean(step, longest=1000)}", err=form != "text")


def _print_result(form: str, added: Added, findings: list[Finding]) -> None:
    if form == "name":
        click.echo(f"secret/{added.name}")
    elif form != "text":
        click.echo(printing.listing("Registration", [{"added": added, "findings": findings}], form))
    elif findings:
        click.echo()
        printing.say(check.lines(added.name, findings))


def _chosen(option: str, said: str, known: Collection[str]) -> tuple[str, ...]:
    """What an option lists of what there is; raises BadParameter."""
    found = tuple(dict.fromkeys(_parts([said])))
    for one in found:
        if one not in known:
            meant = nearest(one, known)
            hint = f". Did you mean '{meant}'?" if meant else ""
            text = f"{one}: expected some of {', '.join(known)}{hint}"
            raise click.BadParameter(text, param_hint=option)
    return found


def _parts(said: Iterable[str]) -> list[str]:
    return [part.strip() for text in said for part in text.split(",") if part.strip()]


def _pairs(said: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in _parts(said):
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{part}: expected KEY=VALUE", param_hint="--labels")
        check_label(key, value)
        if found.setdefault(key, value) != value:
            raise click.BadParameter(f"{part}: {key} is {found[key]} already", param_hint="--labels")
    return found
