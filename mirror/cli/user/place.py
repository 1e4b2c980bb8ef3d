"""``mirror place --dry-run``: where Jobs would be placed, with every filter and every score of every worker.

The manager answers, by the functions that it places Jobs with; nothing is created, recorded or reserved.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from mirror.batch import views
from mirror.cli.user import printing
from mirror.cli.user.cluster import management
from mirror.cli.user.diff import Draft, drafts_of, in_namespace, text_of
from mirror.cli.user.options import Where
from mirror.cli.user.printing import Column, Format
from mirror.cli.user.running import progress
from mirror.cli.user.server import manager
from mirror.model import names
from mirror.model.text import clean
from mirror.placement.explaining import Choice, WorkerChoice


class Placed(msgspec.Struct, frozen=True, rename="camel"):
    """The choice for one Job, as JSON."""

    kind: str
    namespace: str
    name: str
    choice: Choice
    note: str = ""
    """Why it would not be mirrored at all, as it is written."""


async def place(where: Where, file: str, form: Format) -> None:
    """Explain the choice for each Job of a file.

    Raises:
        Failure: the file holds no Job, or the manager cannot be asked.
    """
    drafts = drafts_of(text_of(file), file)
    found: list[Placed] = []
    async with management(where) as cluster, manager(where, cluster) as asked:
        with progress("Querying the manager …"):
            for draft in drafts:
                body = in_namespace(draft.body, cluster.namespace)
                await cluster.check_draft(draft.kind, body)
                choice = await asked.choice(draft.kind, body)
                namespace = views.text(views.mapping(body.get("metadata")).get("namespace"))
                found.append(Placed(draft.kind.name, namespace, draft.name, choice, _note(draft)))
    if form in ("json", "yaml"):
        click.echo(printing.listing("Placement", found, form))
        return
    for number, one in enumerate(found):
        printing.say([*([""] if number else []), *lines_of(one)])


def lines_of(placed: Placed) -> Iterator[str]:
    """One choice as text."""
    choice = placed.choice
    result = f"would be placed on {choice.worker}" if choice.worker else f"would wait ({choice.reason})"
    yield clean(f"{placed.kind} {placed.namespace}/{placed.name} {result}")
    if choice.because:
        yield clean(choice.because, longest=1000)
    if choice.workers:
        yield ""
        yield from printing.table(_columns(choice), choice.workers)
    if placed.note:
        yield ""
        yield clean(f"Note: {placed.note}", longest=1000)


def _note(draft: Draft) -> str:
    """A manifest that names nobody, or the built-in controller, is mirrored only where a webhook sets it."""
    kind = draft.kind
    value = kind.managed_by(kind.draft(msgspec.json.encode(draft.body)))
    if value not in (None, "", names.BUILT_IN_MANAGED_BY):
        return ""
    what = f"is {value}" if value else "is not set"
    value = kind.managed_by_value or names.DEFAULT_MANAGED_BY
    return f"{kind.managed_by_field} {what}: it is mirrored only with {value}, set by you or by the webhook"


def _columns(choice: Choice) -> list[Column[WorkerChoice]]:
    """Rank, what the Job asks for, the scores with their weights, and the filters that do not let a worker pass."""

    def filters(one: WorkerChoice) -> str:
        failed = [f"{found.name}: {found.because}" for found in one.filters if not found.passed]
        return "; ".join(failed) if failed else f"all {len(one.filters)} passed"

    columns = [
        Column[WorkerChoice]("RANK", lambda one: "-" if one.rank is None else str(one.rank)),
        Column[WorkerChoice]("WORKER", lambda one: one.worker),
    ]
    if choice.order:
        columns.append(Column("ORDER", lambda one: "-" if one.order is None else str(one.order)))
    if choice.spread_by:
        columns.append(Column("SPREAD", lambda one: "-" if one.spread is None else str(one.spread)))
    columns += [_score_column(at, choice) for at in range(len(choice.workers[0].scores))]
    columns.append(Column("TOTAL", lambda one: f"{one.total:.4g}"))
    columns.append(Column("FILTERS", filters))
    return columns


def _score_column(at: int, choice: Choice) -> Column[WorkerChoice]:
    score = choice.workers[0].scores[at]
    weight = "" if score.weight == 1 else f"^{score.weight:g}"
    return Column(
        clean(f"{score.name}{weight}".upper()),
        lambda one: f"{one.scores[at].share:.4g}" if one.scores[at].is_known else "?",
    )
