"""``mirror worker set``: capacity, weight, labels and namespaces of a worker, whatever registers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import click
from msgspec.structs import replace

from mirror.cli.worker import clusters
from mirror.cli.worker.arguments import check_annotations, check_label
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations import worker_objects
from mirror.cli.worker.operations.sites import ClusterError
from mirror.kube.objects import Object
from mirror.model import names
from mirror.workers.spec import spec_of

NONE = "none"
"""The value that takes a setting away."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be other than before; None takes it away."""

    annotations: Mapping[str, str | None]
    labels: Mapping[str, str | None]


def changes_of(capacity: str, weight: str, namespaces: str, labels: Iterable[str]) -> Changes:
    """Read the options.

    Raises:
        UsageError: there is none, the manager could not read it, or a label is neither KEY=VALUE nor KEY-.
    """
    said = {names.CAPACITY: capacity, names.WEIGHT: weight, names.NAMESPACES: namespaces}
    annotations = {key: None if value == NONE else value for key, value in said.items() if value}
    wanted: dict[str, str | None] = {}
    for part in (part.strip() for text in labels for part in text.split(",")):
        key, equals, value = part.partition("=")
        if not equals and part.endswith("-"):
            key, value = part[:-1], ""
        elif not equals or not key:
            raise click.BadParameter(f"{part}: expected KEY=VALUE, or KEY- to remove it", param_hint="--labels")
        check_label(key, value)
        wanted[key] = value if equals else None
    if not annotations and not wanted:
        raise click.UsageError("nothing to set: give --capacity, --weight, --namespaces or --labels")
    check_annotations(
        {key.removeprefix(names.PREFIX): value for key, value in annotations.items() if value is not None}
    )
    return Changes(annotations, wanted)


async def change(where: Where, name: str, changes: Changes) -> None:
    """Change what registers a worker; what the manager could not read is refused before.

    Raises:
        ClusterError: there is no such worker, a value is of no use, or the object may not be changed.
    """
    async with clusters.home(where) as home:
        worker = await worker_objects.find(home, name)
        check(worker.found, changes)
        await worker_objects.annotate(home, worker, changes.annotations, labels=changes.labels)
    said = [f"{key.removeprefix(names.PREFIX)} {value or 'removed'}" for key, value in changes.annotations.items()]
    said += [f"label {key}{'=' + value if value is not None else ' removed'}" for key, value in changes.labels.items()]
    click.echo(f"✓ worker {name}: {', '.join(said)}")


def check(found: Object, changes: Changes) -> None:
    """Whether the manager will understand it.

    Raises:
        ClusterError: it names the annotation and what is expected there.
    """
    annotations = {**found.annotations, **changes.annotations}
    kept = {key: value for key, value in annotations.items() if value is not None}
    metadata = replace(found.metadata, annotations=kept)
    spec = spec_of(replace(found, metadata=metadata), name=metadata.name, kubeconfig=b"", labels=found.labels)
    wrong = [str(one) for one in spec.problems if any(f"[{key}]" in one.field for key in changes.annotations)]
    if wrong:
        raise ClusterError("; ".join(wrong))
