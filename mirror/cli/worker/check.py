"""``mirror worker check``: which workers, and how findings are printed. The checks are in ``operations.checking``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import click
import msgspec

from mirror.cli.user import printing
from mirror.cli.user.failures import Failure
from mirror.cli.user.running import progress
from mirror.cli.user.terminal import PLAIN, Display, Painted, display
from mirror.cli.worker import clusters
from mirror.cli.worker.arguments import allowed
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations import worker_objects
from mirror.cli.worker.operations.checking import judging
from mirror.cli.worker.operations.checking.judging import Finding, has_failed
from mirror.cli.worker.operations.checking.probing import Context, examine
from mirror.cli.worker.operations.managers import no_leader
from mirror.cli.worker.operations.overview import tally
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.cli.worker.operations.worker_objects import Gone, Unusable, WorkerObject
from mirror.kube.objects import Object
from mirror.kube.resources import SECRETS
from mirror.model import names
from mirror.model.text import clean
from mirror.model.tones import tone_of
from mirror.workers.gone_record import is_declared_dead
from mirror.workers.inventory import Entry

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
            note = await no_leader(home, datetime.now(UTC))
    if note:
        click.echo(f"Note: {note}", err=True)
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
    if asked.workers:
        return [await _report(home, name, context) for name in asked.workers]
    secrets = worker_objects.own_secrets(await home.worker_secrets(), context.inventory)
    found = [await _examined(home, WorkerObject(name, SECRETS, secret), context) for name, secret in secrets.items()]
    declared = sorted(name for name, entry in context.inventory.entries.items() if entry.declared is not None)
    return [*found, *[await _report(home, name, context) for name in declared if name not in secrets]]


async def _report(home: ManagementCluster, name: str, context: Context) -> Report:
    """A worker that is known by its name alone.

    Raises:
        ClusterError: there is no such worker, or its own Secret may not be read.
    """
    entry = context.inventory.entry(name)
    try:
        return await _examined(home, await worker_objects.find(home, name), context)
    except Gone as gone:
        finding = judging.fail("declaration", str(gone), "the worker is lost until something declares it again")
    except ClusterError as trouble:
        if entry.declared is not None:
            finding = judging.judge_unread(clean(entry.declared.by, longest=400), str(trouble))
        elif is_declared_dead(entry, None):
            finding = judging.fail("secret", str(trouble), "Jobs are recorded there: see mirror worker list")
        else:
            raise
    return _of(name, [*_word(name, entry), finding, judging.judge_entry(name, entry)])


def _word(name: str, entry: Entry, declared: Object | None = None) -> list[Finding]:
    """Whether somebody has declared it dead, as what declares it says or the manager remembers."""
    return [judging.judge_dead(name)] if is_declared_dead(entry, declared) else []


async def _examined(home: ManagementCluster, worker: WorkerObject, context: Context) -> Report:
    """A worker whose object was read.

    Raises:
        ClusterError: what its declaration names may not be read.
    """
    name, by = worker.worker, worker.by
    entry = context.inventory.entry(name)
    word = _word(name, entry, worker.found)
    try:
        spec = await worker_objects.read_connection(home, worker)
    except Unusable as error:
        if by:
            useless = judging.judge_useless(by, str(error))
            return _of(name, [*word, useless, judging.judge_entry(name, entry)])
        fix = f"mirror worker add {name} --context CONTEXT writes it anew"
        return _of(name, [*word, judging.fail("secret", str(error), fix)])
    return _of(name, [*word, *await examine(spec, context, by=by)])


def _of(worker: str, findings: list[Finding]) -> Report:
    return Report(worker, _worst(findings), findings)


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
