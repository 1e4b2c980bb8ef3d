"""``mirror worker list``: workers as the management cluster knows them, without asking any of them. Rows are pure.

From their Secrets, from what the manager has recorded (``inventory``), and from the workers recorded on Jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from mirror.cli.worker.operations.sites import ManagementCluster
from mirror.cli.worker.operations.worker_objects import own_secrets
from mirror.kinds import registry
from mirror.kinds.asking import is_ours
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.text import clean
from mirror.workers.gone_record import is_declared_dead
from mirror.workers.inventory import DECLARED_WRONG, Declared, Entry, WorkerInventory
from mirror.workers.spec import BadSecret, WorkerSpec, read_spec
from mirror.workers.tokens import token_of

UNKNOWN = "Unknown"
MOST_NAMED = 5


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """One worker."""

    name: str
    state: str
    """Connected, Lost, or Unknown while the manager has not said anything."""
    since: str
    version: str
    jobs: int
    """Sources that are recorded there and not finished."""
    capacity: int | None
    cordoned: bool
    draining: bool
    dead: bool
    """Declared dead (D14): its Jobs start again elsewhere."""
    misconfigured: bool
    """Something is wrong with the annotations of its Secret: it gets no new Jobs."""
    token_expires: str
    reason: str
    uid: str
    labels: Mapping[str, str] = {}
    more_labels: int = 0
    """How many labels a declared worker has beside these: the manager records some only."""


@dataclass
class Tally:
    """The Jobs of the management cluster, counted as they come by: nothing of them is kept but a few names."""

    managed_by: str = names.DEFAULT_MANAGED_BY
    unfinished: dict[str, int] = field(default_factory=dict)
    """By the worker that is recorded on them."""
    leaving: dict[str, int] = field(default_factory=dict)
    """Those of them that have stopped there, because it is drained, and go elsewhere."""
    examples: dict[str, list[str]] = field(default_factory=dict)
    namespaces: dict[str, set[str]] = field(default_factory=dict)
    """Where Jobs of ours are, placed or not, and the names of their kinds there."""

    def count(self, kind: Kind, found: Object) -> None:
        """Take one Job of this kind into account."""
        summary, meta = kind.summary(found), found.metadata
        if not summary.placed and not is_ours(kind, found, self.managed_by):
            return
        self.namespaces.setdefault(meta.namespace, set()).add(kind.name)
        if not summary.placed or summary.is_finished:
            return
        self.unfinished[summary.placed] = self.unfinished.get(summary.placed, 0) + 1
        if kind.can_move and kind.stored(found).is_leaving:
            self.leaving[summary.placed] = self.leaving.get(summary.placed, 0) + 1
        named = self.examples.setdefault(summary.placed, [])
        if len(named) < MOST_NAMED:
            what = "" if kind is registry.BUILT_IN.default else f"{kind.name} "
            named.append(f"{what}{meta.namespace}/{meta.name}")

    def on(self, worker: str) -> int:
        """How many unfinished Jobs are recorded on a worker."""
        return self.unfinished.get(worker, 0)

    def leaving_on(self, worker: str) -> int:
        """How many of them are on their way elsewhere."""
        return self.leaving.get(worker, 0)

    def some_on(self, worker: str) -> str:
        """Name a few of the unfinished Jobs on a worker, for people."""
        named = ", ".join(self.examples.get(worker, ()))
        return named + (", …" if self.on(worker) > MOST_NAMED else "")


async def tally(home: ManagementCluster, managed_by: str = names.DEFAULT_MANAGED_BY) -> Tally:
    """Count all Jobs of all kinds once.

    Raises:
        ClusterError: they may not be listed.
    """
    counted = Tally(managed_by)
    async for kind, found in home.jobs():
        counted.count(kind, found)
    return counted


async def overview(home: ManagementCluster) -> list[Row]:
    """Read all workers, by name.

    Raises:
        ClusterError: Secrets, the record or Jobs may not be read.
    """
    secrets, inventory, counted = await home.worker_secrets(), await home.inventory(), await tally(home)
    return rows(secrets, inventory, counted)


def rows(secrets: Iterable[Object], inventory: WorkerInventory, counted: Tally) -> list[Row]:
    """Those with a Secret, those that something else declares, and those that are lost with Jobs recorded there (D15).

    What declares them the command does not look for: the manager has recorded what it says.
    """
    registered = own_secrets(secrets, inventory)
    declared = {name for name, entry in inventory.entries.items() if entry.declared is not None}
    everybody = sorted({*registered, *counted.unfinished, *declared})
    return [_row(name, registered.get(name), inventory.entry(name), counted.on(name)) for name in everybody]


def _row(name: str, secret: Object | None, entry: Entry, jobs: int) -> Row:
    declared = entry.declared if secret is None else None
    spec, problem = _read(secret) if declared is None else (None, f"declared by {declared.by}")
    expires = token_of(spec.kubeconfig).expires if spec is not None else None
    reasons = [entry.reason, entry.remark, problem if problem not in entry.reason else ""]
    said = spec or declared or Declared()
    prefix_differs = spec is not None and bool(entry.uid) and entry.namespace_prefix != spec.namespace_prefix
    # Of a Secret that cannot be read, and of a kubeconfig that the manager refuses, no Job goes there either.
    is_unread = secret is not None and spec is None
    problems = bool(spec.problems) if spec is not None else bool(declared and declared.misconfigured)
    problems = problems or is_unread or entry.refusal in DECLARED_WRONG
    return Row(
        name=name,
        state=clean(entry.state) or UNKNOWN,
        since=clean(entry.since),
        version=clean(entry.version),
        jobs=jobs,
        capacity=said.capacity,
        cordoned=said.cordoned,
        draining=said.draining,
        dead=is_declared_dead(entry, secret),
        misconfigured=problems or prefix_differs,
        token_expires=f"{expires:%Y-%m-%dT%H:%M:%SZ}" if expires else clean(declared.token_expires if declared else ""),
        reason=clean("; ".join(filter(None, reasons))),
        uid=clean(entry.uid),
        labels=dict(spec.labels) if spec else _cleaned(declared.labels) if declared else {},
        more_labels=declared.more_labels if declared else 0,
    )


def _cleaned(labels: Mapping[str, str]) -> dict[str, str]:
    return {clean(key): clean(value) for key, value in labels.items()}


def _read(secret: Object | None) -> tuple[WorkerSpec | None, str]:
    if secret is None:
        return None, "no Secret registers it"
    try:
        spec = read_spec(secret)
    except BadSecret as error:
        return None, str(error)
    return spec, "; ".join(map(str, spec.problems))
