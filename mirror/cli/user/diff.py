"""``mirror diff``: how a mirror differs from its source, and what a Job needs that is not sent along with it.

The manager compares, knowing its settings. With ``--worker-context`` both objects are read here and compared by the
same rules (``mirror.kinds``); a file is, too, where no manager can be asked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import click
import msgspec

from mirror.batch import views
from mirror.cli.user import mirrors, printing
from mirror.cli.user.cluster import Cluster, management, worker
from mirror.cli.user.failures import Failure
from mirror.cli.user.options import Where
from mirror.cli.user.printing import Column, Format
from mirror.cli.user.running import progress
from mirror.cli.user.server import Comparison, NoManager, manager
from mirror.kinds.base import BadDraft, MirrorTransform
from mirror.kinds.registry import JOB
from mirror.kinds.report import Caution, Difference
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.text import clean

Json = Mapping[str, object]

NOTES = ("each cluster makes its own", "a note of kubectl's own", "a note of jobmirror's own")
"""Reasons of differences that mean nothing to who wrote the Job."""
UNKNOWN_SETTINGS = "compared with the default settings of the manager, without looking at any worker"


async def diff(where: Where, name: str, form: Format) -> None:
    """Compare a source with its mirror.

    Raises:
        Failure: one of them may not be read, or nobody can be asked.
    """
    async with management(where) as cluster:
        with progress(f"Comparing {name} …"):
            if where.worker_context:
                source = await cluster.job(name, namespace=cluster.namespace)
                shown = await _compared_here(where, source)
            else:
                async with manager(where, cluster) as asked:
                    shown = await asked.diff(cluster.namespace, name)
    _print(shown, form)


async def diff_file(where: Where, file: str, form: Format) -> None:
    """Say what will differ, and what to look after, before any Job of a file is created.

    Raises:
        Failure: the file holds no Job.
    """
    jobs = jobs_of(_text(file), file)
    try:
        async with management(where) as cluster:
            with progress("Querying the manager …"):
                told = [await _before(where, cluster, job) for job in jobs]
    except Failure as failure:
        if where.server:
            raise
        told = [_before_here(job, where.namespace, f"{UNKNOWN_SETTINGS} ({failure.message})") for job in jobs]
    if form in ("json", "yaml"):
        click.echo(printing.document(told[0] if len(told) == 1 else {"items": told}, form))
        return
    for job, shown in zip(jobs, told, strict=True):
        metadata = views.mapping(job.get("metadata"))
        name = views.text(metadata.get("name")) or views.text(metadata.get("generateName"))
        printing.say([clean(f"Job {name}, before it is created:"), *lines_of(shown, is_wide=form == "wide")])


async def _before(where: Where, cluster: Cluster, job: Json) -> Comparison:
    try:
        async with manager(where, cluster) as asked:
            return await asked.diff_before(in_namespace(job, cluster.namespace))
    except NoManager as missing:
        why = missing.message if missing.is_forbidden else "access endpoint not found; use --server URL"
        return _before_here(job, cluster.namespace, f"{UNKNOWN_SETTINGS} ({why})")


def _before_here(job: Json, namespace: str, note: str) -> Comparison:
    return Comparison(
        report=JOB.differences_before(
            _draft(in_namespace(job, namespace)),
            transform=MirrorTransform(origin="…"),
            managed_by=names.DEFAULT_MANAGED_BY,
        ),
        note=note,
    )


async def _compared_here(where: Where, source: Object) -> Comparison:
    async with worker(where) as there:
        found = await mirrors.find(there, source)
        mirror = await there.job(found.name, namespace=found.namespace)
    transform = MirrorTransform(origin=mirror.labels.get(names.ORIGIN, ""))
    return Comparison(
        worker=where.worker_context,
        report=JOB.differences_between(source, mirror, transform=transform, managed_by=names.DEFAULT_MANAGED_BY),
    )


def jobs_of(text: str, file: str) -> list[Json]:
    """The Jobs of a file of YAML or JSON documents, a List or a CronJob's template among them.

    Raises:
        Failure: there is none, or it cannot be read.
    """
    import yaml

    try:
        documents = list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise Failure(f"{file}: not YAML{line}") from None
    found = [job for document in documents for job in _jobs_in(views.mapping(document))]
    if not found:
        raise Failure(f"{file}: contains no Job")
    return found


def _jobs_in(document: Json) -> Iterator[Json]:
    match document.get("kind"):
        case "Job":
            yield document
        case "CronJob":
            template = views.mapping(views.mapping(document.get("spec")).get("jobTemplate"))
            metadata = {**views.mapping(document.get("metadata")), **views.mapping(template.get("metadata"))}
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template.get("spec")}
        case "List":
            for item in views.items(document.get("items")):
                yield from _jobs_in(views.mapping(item))


def in_namespace(job: Json, namespace: str) -> Json:
    """The Job as it would be created: in this namespace unless it says another one."""
    metadata = views.mapping(job.get("metadata"))
    said = views.text(metadata.get("namespace")) or namespace
    return {**job, "metadata": {**metadata, **({"namespace": said} if said else {})}}


def _draft(job: Json) -> Object:
    try:
        return JOB.draft(msgspec.json.encode(job))
    except (BadDraft, TypeError) as error:
        raise Failure(f"not a valid Job: {error}") from None


def _text(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read()
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Failure(f"{file}: {why}") from None


def _print(shown: Comparison, form: Format) -> None:
    if form in ("json", "yaml"):
        click.echo(printing.document(shown, form))
    else:
        printing.say(lines_of(shown, is_wide=form == "wide"))


def lines_of(shown: Comparison, *, is_wide: bool) -> Iterator[str]:
    """The report as text. What is never of interest to users, the clusters' and our own notes, is only counted."""
    report = shown.report
    listed = [one for one in report.differences if is_wide or one.because not in NOTES]
    if listed:
        yield from printing.table(_columns(60 if is_wide else 32), listed)
    else:
        yield "No differences."
    left_out = len(report.differences) - len(listed)
    if report.is_cut or left_out:
        hidden = f"{left_out} system-generated differences hidden; -o wide shows them" if left_out else ""
        yield f"({'; '.join(filter(None, ('list truncated' if report.is_cut else '', hidden)))})"
    if report.cautions:
        yield ""
        yield from printing.table(_CAUTIONS, report.cautions)
    if shown.obstacles:
        yield ""
        yield from printing.table(_OBSTACLES, sorted(shown.obstacles.items()))
    if shown.note:
        yield ""
        yield clean(f"Note: {shown.note}", longest=1000)


def _columns(longest: int) -> list[Column[Difference]]:
    def value(found: str | None) -> str:
        return "" if found is None else clean(found, longest=longest)

    return [
        Column[Difference]("FIELD", lambda one: one.path),
        Column[Difference]("SOURCE", lambda one: value(one.source)),
        Column[Difference]("MIRROR", lambda one: value(one.mirror)),
        Column[Difference]("WHY", lambda one: f"{one.kind}: {one.because}"),
    ]


_CAUTIONS = [
    Column[Caution]("REQUIRED ON WORKER", lambda caution: caution.path),
    Column[Caution]("WHY", lambda caution: caution.text),
]
_OBSTACLES = [
    Column[tuple[str, str]]("WORKER", lambda pair: pair[0] or "(the Job itself)"),
    Column[tuple[str, str]]("NOT PLACED BECAUSE", lambda pair: pair[1]),
]
