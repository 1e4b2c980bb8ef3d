"""Pods of a mirror as values for people, and ``mirror pods``. Everything about a pod is its worker's word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from mirror.kinds.base import Kind
from mirror.workers.pod_why import container_statuses, why_of

Json = Mapping[str, object]

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """One pod; also how it looks as JSON."""

    name: str
    phase: str
    why: str = ""
    """Why it does not run: reason and text of what is in trouble, else of a container that waits or has failed."""
    index: str = ""
    role: str = ""
    """Which part of the object it is, where its kind has parts."""
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
            found = [pod_of(one, wanted.kind) for one in await mirror.pods()]
    found.sort(key=order_of(wanted.kind))
    if form in ("json", "yaml"):
        click.echo(printing.listing("MirrorPod", found, form))
    elif form == "name":
        printing.say(f"pod/{pod.name}" for pod in found)
    elif found:
        printing.say(
            printing.table(
                columns(datetime.now(UTC), has_roles=bool(wanted.kind.pod_roles)),
                found,
                wide=form == "wide",
                on=display(abridged=form != "wide"),
            )
        )
    else:
        printing.remark(f"{no_pods_of(wanted)}.")


def no_pods_of(wanted: Named, why: str = "") -> str:
    """What is said where none are found; ``why``: there may be none, where it is known which would be its."""
    if wanted.kind.knows_pods:
        return f"{wanted} has no pods on its worker{f': {why}' if why else ''}"
    setting = f"kinds: {wanted.kind.name} sets no field pods (the labels of its pods)"
    return f"the pods of {wanted} cannot be found: {setting}"


def pod_of(pod: Json, kind: Kind | None = None) -> Pod:
    """What a pod's JSON says; ``kind`` is that of its mirror, and says where index and role are."""
    metadata, spec, status = (views.mapping(pod.get(part)) for part in ("metadata", "spec", "status"))
    annotations, labels = views.mapping(metadata.get("annotations")), views.mapping(metadata.get("labels"))
    index = kind.pod_index if kind is not None else ""
    init, main = (_names(spec, part) for part in ("initContainers", "containers"))
    own = [views.mapping(one) for one in views.items(status.get("containerStatuses"))]
    ready = sum(one.get("ready") is True for one in own)
    phase = views.text(status.get("phase")) or "Unknown"
    default = views.text(annotations.get(DEFAULT_CONTAINER))
    return Pod(
        name=views.text(metadata.get("name")),
        phase="Terminating" if metadata.get("deletionTimestamp") else phase,
        why=why_of(pod),
        index=views.text(annotations.get(index)) or views.text(labels.get(index)),
        role=kind.pod_roles.of(labels) if kind is not None else "",
        ready=f"{ready}/{len(main)}",
        restarts=sum(views.number(one.get("restartCount")) for one in container_statuses(status)),
        node=views.text(spec.get("nodeName")),
        created=views.text(metadata.get("creationTimestamp")),
        containers=(*init, *main),
        main=default if default in main else next(iter(main), ""),
    )


def order_of(kind: Kind) -> Callable[[Pod], tuple[int, str, int, str, str]]:
    """By role, then by index, then by age."""

    def order(pod: Pod) -> tuple[int, str, int, str, str]:
        index = int(pod.index) if pod.index.isascii() and pod.index.isdecimal() else -1
        return kind.pod_roles.rank(pod.role), pod.role, index, pod.created, pod.name

    return order


def columns(now: datetime, *, has_roles: bool = False) -> Sequence[Column[Pod]]:
    """The table's, at this time."""
    return (
        Column("NAME", lambda pod: pod.name, least=8),
        *([Column[Pod]("ROLE", lambda pod: pod.role)] if has_roles else []),
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
