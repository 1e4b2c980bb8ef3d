"""``mirror worker check``: which workers, and how findings are printed. The checks are in ``operations.checking``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import click
import msgspec

from mirror.cli.user import printing
from mirror.cli.user.failures import Failure
from mirror.cli.user.running import progress
from mirror.cli.user.terminal import PLAIN, Display, Painted, display
from mirror.cli.worker import clusters
from mirror.cli.worker.arguments import allowed
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations.checking.judging import Finding, has_failed, judge_declared
from mirror.cli.worker.operations.checking.probing import Context, examine
from mirror.cli.worker.operations.overview import tally
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.model import names
from mirror.model.text import clean
from mirror.model.tones import tone_of

MARKS = {"ok": "✓", "warn": "!", "fail": "✗"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line."""

    workers: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    managed_by: str = names.DEFAULT_MANAGED_BY
    form: str = "text"
    where: Where = field(default_factory=Where)


class Report(msgspec.Struct, frozen=True):
    """All about one worker."""

    worker: str
    verdict: str
    """The worst of its findings'."""
    findings: list[Finding]


async def check(asked: Asked) -> None:
    """Look, and say what was found.

    Raises:
        Failure: something is in the way.
    """
    async with clusters.home(asked.where) as home:
        with progress("checking workers"):
            found = await reports(home, asked)
            if not found:
                await home.check_namespace()
    if asked.form == "text":
        for report in found:
            printing.say(lines(report.worker, report.findings, display()))
        if not found:
            click.echo(f"no workers in namespace {asked.where.namespace}; see: mirror worker add --help")
    else:
        click.echo(printing.listing("WorkerCheck", found, asked.form))
    bad = [report.worker for report in found if has_failed(report.findings)]
    if bad:
        raise Failure(f"checks failed: {', '.join(bad)}")


async def reports(home: ManagementCluster, asked: Asked) -> list[Report]:
    """One report for each worker, by name, or as they were said."""
    opted_in = allowed(asked.allow)
    if asked.workers:
        secrets = [await home.worker_secret(name) for name in asked.workers]
    else:
        secrets = await home.worker_secrets()
    own = home.namespace
    context = Context(
        namespace=own,
        management_uid=await home.site.uid(),
        inventory=await home.inventory(),
        sources=await _sources(home, asked.managed_by),
        accepts=lambda spec, namespace: clusters.accepts(spec, namespace, own=own),
        allow=opted_in,
        kinds=await home.kinds(),
    )
    found = []
    for secret in secrets:
        findings = await examine(secret, context)
        found.append(Report(secret.metadata.name, _worst(findings), findings))
    for name, entry in sorted(context.inventory.entries.items()) if not asked.workers else ():
        if entry.declared is not None:
            findings = [judge_declared(entry.declared.by, "config/rbac/worker.yaml")]
            found.append(Report(name, _worst(findings), findings))
    return found


async def _sources(home: ManagementCluster, managed_by: str) -> Mapping[str, Collection[str]]:
    """Namespaces with Jobs of ours, and the kinds of those there."""
    try:
        return (await tally(home, managed_by)).namespaces
    except ClusterError:
        return {}  # who may not see the Jobs learns of all the rest


def _worst(findings: Iterable[Finding]) -> str:
    verdicts = {one.verdict for one in findings}
    return next((verdict for verdict in ("fail", "warn") if verdict in verdicts), "ok")


def lines(worker: str, findings: Iterable[Finding], on: Display = PLAIN) -> Iterable[str]:
    """For people: what was looked at of a worker, and how to mend what is not fine."""
    return finding_lines(f"worker {worker}", findings, on)


def finding_lines(heading: str, findings: Iterable[Finding], on: Display = PLAIN) -> Iterable[str]:
    """A heading, and below it each finding."""
    yield heading
    for one in findings:
        mark, text = on.paint(MARKS[one.verdict], tone_of(one.verdict)), f"{one.what}: {one.text}"
        line = f"  {mark} {clean(text, longest=1000)}"
        yield Painted(line) if isinstance(mark, Painted) else line
        if one.verdict != "ok" and one.fix:
            yield f"      → {clean(one.fix, longest=1000)}"
