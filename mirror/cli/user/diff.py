"""``mirror diff``: how a mirror differs from its source, and what a Job needs that is not sent along with it.

The manager compares, knowing its settings. With ``--worker-context`` both objects are read here and compared by the
same rules (``mirror.kinds``); a file is, too, where no manager can be asked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click
import msgspec

from mirror.batch import views
from mirror.cli.user import mirrors, printing
from mirror.cli.user.cluster import Cluster, management, worker
from mirror.cli.user.failures import Failure, Rejected
from mirror.cli.user.naming import Named, kinds
from mirror.cli.user.options import Where
from mirror.cli.user.printing import Column, Format
from mirror.cli.user.running import progress
from mirror.cli.user.server import Comparison, NoManager, OnWorker, manager
from mirror.kinds.base import BadDraft, Kind, MirrorTransform
from mirror.kinds.report import Caution, Difference
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.failures import file_words
from mirror.model.text import clean

Json = Mapping[str, object]

NOTES = ("each cluster makes its own", "a note of kubectl's own", "a note of jobmirror's own")
"""Reasons of differences that mean nothing to who wrote the Job."""
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `[^`]+`(?: - at `(?P<path>[^`]*)`)?")
UNKNOWN_SETTINGS = "compared with the default settings of the manager, without looking at any worker"


async def diff(where: Where, wanted: Named, form: Format) -> None:
    """Compare a source with its mirror.

    Raises:
        Failure: one of them may not be read, or nobody can be asked.
    """
    async with management(where) as cluster:
        with progress(f"Comparing {wanted.name} …"):
            if where.worker_context:
                source = await cluster.object(wanted.kind.resource, wanted.name, namespace=cluster.namespace)
                shown = await _compared_here(where, wanted.kind, source)
            else:
                async with manager(where, cluster) as asked:
                    shown = await asked.diff(cluster.namespace, wanted)
    _print(shown, form)


async def diff_file(where: Where, file: str, form: Format) -> None:
    """Say what will differ, and what to look after, before any Job of a file is created.

    Raises:
        Failure: the file holds no Job.
    """
    drafts = drafts_of(text_of(file), file)
    try:
        async with management(where) as cluster:
            with progress("Querying the manager …"):
                for draft in drafts:
                    await cluster.check_draft(draft.kind, in_namespace(draft.body, cluster.namespace))
                told = [await _before(where, cluster, draft) for draft in drafts]
    except Rejected as rejected:
        raise Failure(f"-f {_shown(file)}: {rejected.message}") from None
    except Failure as failure:
        if where.server:
            raise
        note = f"{UNKNOWN_SETTINGS} ({failure.message})"
        told = [_before_here(draft, where.namespace, note) for draft in drafts]
    if form in ("json", "yaml"):
        click.echo(printing.listing("Comparison", told, form))
        return
    for draft, shown in zip(drafts, told, strict=True):
        heading = clean(f"{draft.kind.name} {draft.name}, before it is created:")
        printing.say([heading, *lines_of(shown, is_wide=form == "wide")])


async def _before(where: Where, cluster: Cluster, draft: Draft) -> Comparison:
    try:
        async with manager(where, cluster) as asked:
            return await asked.diff_before(draft.kind, in_namespace(draft.body, cluster.namespace))
    except NoManager as missing:
        why = missing.message if missing.is_forbidden else "access is not enabled; use --server URL"
        return _before_here(draft, cluster.namespace, f"{UNKNOWN_SETTINGS} ({why})")


def _before_here(draft: Draft, namespace: str, note: str) -> Comparison:
    return Comparison(
        report=draft.kind.differences_before(
            _decoded(draft.kind, in_namespace(draft.body, namespace)),
            transform=MirrorTransform(origin="…"),
            managed_by=names.DEFAULT_MANAGED_BY,
        ),
        note=note,
    )


async def _compared_here(where: Where, kind: Kind, source: Object) -> Comparison:
    async with worker(where) as there:
        found = await mirrors.find(there, kind, source)
        mirror = await there.object(kind.resource, found.name, namespace=found.namespace)
    labels = mirror.labels
    transform = MirrorTransform(labels.get(names.ORIGIN, ""), management_uid=labels.get(names.MANAGEMENT_UID, ""))
    return Comparison(
        worker=where.worker_context,
        report=kind.differences_between(source, mirror, transform=transform, managed_by=names.DEFAULT_MANAGED_BY),
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """An object of a mirrored kind that need not exist yet."""

    kind: Kind
    body: Json

    @property
    def name(self) -> str:
        """Or what its name begins with; empty if it says neither."""
        metadata = views.mapping(self.body.get("metadata"))
        return views.text(metadata.get("name")) or views.text(metadata.get("generateName"))


def drafts_of(text: str, file: str) -> list[Draft]:
    """The objects of mirrored kinds in a file of YAML or JSON documents, those of a List among them.

    A document may stand for another object: a CronJob for the Job that it makes (``Kind.drafts_in``).

    Raises:
        Failure: there is none, or it cannot be read.
    """
    import yaml

    try:
        documents = list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise Failure(f"-f {_shown(file)}: not YAML{line}") from None
    found = [draft for document in documents for draft in _drafts_in(views.mapping(document))]
    if not found:
        raise Failure(f"-f {_shown(file)}: {_what_instead(documents)}")
    return found


def _shown(file: str) -> str:
    return "stdin" if file == "-" else file


def _what_instead(documents: list[object]) -> str:
    """What a file without any object of a mirrored kind holds."""
    wanted = " or ".join(kind.name for kind in kinds())
    if all(document in (None, {}, []) for document in documents):
        return f"contains no {wanted}: it is empty"
    if first := next((one for one in map(views.mapping, documents) if views.text(one.get("kind"))), None):
        return f"contains no {wanted}, but {_named_type(first)}"
    if any(views.mapping(document) for document in documents):
        kind = kinds().default
        example = f"apiVersion: {kind.resource.api_version} and kind: {kind.name}"
        return f"contains no {wanted}: kind is missing; write {example}"
    return f"contains no {wanted}, but something that is no Kubernetes object"


def _named_type(document: Json) -> str:
    """The kind of an object, and the version that it would need, where that alone is wrong."""
    name, version = views.text(document.get("kind")), views.text(document.get("apiVersion"))
    usable = next((kind.resource.api_version for kind in kinds() if kind.name == name), None)
    if usable is None or usable == version:
        return f"kind {name}"
    return f"kind {name} of apiVersion {version or '(missing)'}; use {usable}"


def _drafts_in(document: Json) -> Iterator[Draft]:
    if document.get("kind") == "List":
        for item in views.items(document.get("items")):
            yield from _drafts_in(views.mapping(item))
        return
    for kind in kinds():
        yield from (Draft(kind, body) for body in kind.drafts_in(document))


def in_namespace(job: Json, namespace: str) -> Json:
    """The Job as it would be created: in this namespace unless its manifest names another one."""
    metadata = views.mapping(job.get("metadata"))
    said = views.text(metadata.get("namespace")) or namespace
    return {**job, "metadata": {**metadata, **({"namespace": said} if said else {})}}


def _decoded(kind: Kind, body: Json) -> Object:
    try:
        return kind.draft(msgspec.json.encode(body))
    except (BadDraft, TypeError) as error:
        raise Failure(f"not a valid {kind.name}: {_plain_words(str(error), kind.name)}") from None


def _plain_words(text: str, kind: str) -> str:
    """A decoder's message in words: ``spec: expected object, got int``."""
    text = text.removeprefix(f"this is no {kind}: ")
    found = _EXPECTED.fullmatch(text)
    return f"{found['path'].lstrip('$.') or 'it'}: expected {found['wanted']}" if found else text.replace("`", "'")


def text_of(file: str) -> str:
    """What stands in a file, or comes from stdin for ``-``.

    Raises:
        Failure: it cannot be read.
    """
    try:
        if file == "-":
            return sys.stdin.read()
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as error:
        why = file_words(error) if isinstance(error, OSError) else "not UTF-8 text"
        raise Failure(f"-f {_shown(file)}: {why}") from None


def _print(shown: Comparison, form: Format) -> None:
    if form in ("json", "yaml"):
        click.echo(printing.listing("Comparison", [shown], form))
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
    yield from _of_objects(shown)
    if shown.obstacles:
        yield ""
        yield from printing.table(_OBSTACLES, sorted(shown.obstacles.items()))
    if shown.note:
        yield ""
        yield clean(f"Note: {shown.note}", longest=1000)


def _of_objects(shown: Comparison) -> Iterator[str]:
    """What the pods name: first as it is here, where it goes along, then on workers."""
    here = [OnWorker(worker=HERE, object=one.object, state=one.state, message=one.message) for one in shown.goes_along]
    left = shown.left_out
    counts = [(left.objects, "object"), (left.workers, "worker")]
    more = [f"{count} more {noun}{'s' if count > 1 else ''}" for count, noun in counts if count > 0]
    if here or shown.on_worker:
        yield ""
        yield from printing.table(_ON_WORKER, [*here, *shown.on_worker])
    if more:
        yield f"(and {' and '.join(more)}, not looked at)"


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
HERE = "(here)"
"""In place of a worker: the management cluster."""
_THERE = {
    "Exists": "yes",
    "Copied": "yes, a copy",
    "Foreign": "yes, not ours",
    "Refused": "yes, not sent",
    "Missing": "no",
    "Unknown": "not known",
}
_ON_WORKER = [
    Column[OnWorker]("WORKER", lambda one: one.worker),
    Column[OnWorker]("OBJECT", lambda one: one.object),
    Column[OnWorker]("THERE", lambda one: _THERE.get(one.state, one.state)),
    Column[OnWorker]("WHY", lambda one: one.message),
]
_OBSTACLES = [
    Column[tuple[str, str]]("WORKER", lambda pair: pair[0] or "(the Job itself)"),
    Column[tuple[str, str]]("NOT PLACED BECAUSE", lambda pair: pair[1]),
]
