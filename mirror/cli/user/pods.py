"""Pods of a mirror as values for people, and ``mirror pods``. Everything about a pod is its worker's word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import click
import msgspec

from mirror.batch import views
from mirror.cli.user import printing
from mirror.cli.user.mirrors import inside
from mirror.cli.user.naming import Named
from mirror.cli.user.options import Where
from mirror.cli.user.printing import Column, Format
from mirror.cli.user.running import progress
from mirror.cli.user.terminal import display

Json = Mapping[str, object]

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_STATUSES = ("initContainerStatuses", "containerStatuses")


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """One pod; also how it looks as JSON."""

    name: str
    phase: str
    why: str = ""
    """The reason of a container that waits or has failed."""
    index: str = ""
    ready: str = ""
    restarts: int = 0
    node: str = ""
    created: str = ""
    containers: tuple[str, ...] = ()
    """Init containers first."""
    main: str = ""
    """The container that is meant where none is named."""


async def pods(where: Where, wanted: Named, form: Format) -> None:
    """Print the pods of a Job's mirror.

    Raises:
        Failure: they may not be read, or nobody can be asked.
    """
    async with inside(where, wanted) as mirror:
        with progress(f"Listing the pods of {wanted.name} …"):
            found = [pod_of(one, wanted.kind.pod_index) for one in await mirror.pods()]
    found.sort(key=order)
    if form in ("json", "yaml"):
        click.echo(printing.listing("MirrorPod", found, form))
    elif form == "name":
        printing.say(f"pod/{pod.name}" for pod in found)
    elif found:
        printing.say(
            printing.table(columns(datetime.now(UTC)), found, wide=form == "wide", on=display(abridged=form != "wide"))
        )
    else:
        printing.remark(f"{wanted} has no pods on its worker.")


def pod_of(pod: Json, index: str = "") -> Pod:
    """What a pod's JSON says; ``index`` is the annotation that holds its index (``Kind.pod_index``)."""
    metadata, spec, status = (views.mapping(pod.get(part)) for part in ("metadata", "spec", "status"))
    annotations = views.mapping(metadata.get("annotations"))
    init, main = (_names(spec, part) for part in ("initContainers", "containers"))
    statuses = [views.mapping(one) for part in _STATUSES for one in views.items(status.get(part))]
    own = [views.mapping(one) for one in views.items(status.get("containerStatuses"))]
    ready = sum(one.get("ready") is True for one in own)
    phase = views.text(status.get("phase")) or "Unknown"
    default = views.text(annotations.get(DEFAULT_CONTAINER))
    return Pod(
        name=views.text(metadata.get("name")),
        phase="Terminating" if metadata.get("deletionTimestamp") else phase,
        why=next(filter(None, map(_why, statuses)), "") or views.text(status.get("reason")),
        index=views.text(annotations.get(index)),
        ready=f"{ready}/{len(main)}",
        restarts=sum(views.number(one.get("restartCount")) for one in statuses),
        node=views.text(spec.get("nodeName")),
        created=views.text(metadata.get("creationTimestamp")),
        containers=(*init, *main),
        main=default if default in main else next(iter(main), ""),
    )


def order(pod: Pod) -> tuple[int, str, str]:
    """By index, then by age."""
    return (int(pod.index) if pod.index.isascii() and pod.index.isdecimal() else -1, pod.created, pod.name)


def columns(now: datetime) -> Sequence[Column[Pod]]:
    """The table's, at this time."""
    return (
        Column("NAME", lambda pod: pod.name, least=8),
        Column("INDEX", lambda pod: pod.index),
        Column("READY", lambda pod: pod.ready),
        Column("STATUS", lambda pod: pod.phase, is_state=True),
        Column("RESTARTS", lambda pod: str(pod.restarts), rank=1),
        Column("AGE", lambda pod: printing.lasted(pod.created, "", now)),
        Column("NODE", lambda pod: pod.node, is_wide=True),
        Column("CONTAINERS", lambda pod: ",".join(pod.containers), is_wide=True),
        Column("WHY", lambda pod: pod.why, least=8),
    )


def _names(spec: Json, part: str) -> tuple[str, ...]:
    return tuple(views.text(views.mapping(one).get("name")) for one in views.items(spec.get(part)))


def _why(status: Json) -> str:
    state = views.mapping(status.get("state"))
    waiting, ended = views.mapping(state.get("waiting")), views.mapping(state.get("terminated"))
    reason = views.text(waiting.get("reason"))
    if reason:
        return reason
    code = views.number(ended.get("exitCode"))
    return f"{views.text(ended.get('reason')) or 'Error'} (exit code {code})" if code else ""
