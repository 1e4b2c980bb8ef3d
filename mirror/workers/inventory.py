"""The record of workers in the ConfigMap ``jobmirror-workers``: who they are, how they are (D13, D19). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import msgspec

from mirror.kube.kubeconfig_node import KubeconfigRefused
from mirror.kube.objects import JUNK, Object

SECRET_GONE = "its Secret was deleted"
"""Why a worker is lost that nothing declares any more."""
FORMER = "_former."
"""Before the uid of a cluster that is no worker any more: the name of an entry, as no Secret can have it."""
MOST_FORMER = 100
MOST_LABEL_BYTES = 384
"""Of the labels of one declared worker."""
MOST_BYTES = 900 * 1024
"""Of all entries, so that they fit into one ConfigMap; beyond, only what is needed of each is written."""
LONGEST_BRIEF = 80
"""Characters of a text for people, then."""
CUT = "…"
"""Ends the name of an object that was too long, so that it is not taken for another one's."""


class Declared(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What declares a worker that no Secret in the manager's namespace registers, and what it says."""

    by: str = ""
    capacity: int | None = None
    cordoned: bool = False
    draining: bool = False
    misconfigured: bool = False
    token_expires: str = ""
    labels: dict[str, str] = {}
    """Some of the worker's labels; of many the first, by name (``MOST_LABEL_BYTES``)."""
    more_labels: int = 0
    """How many others it has."""
    key: str = ""
    """Of a Secret: where in its data the kubeconfig is. With ``account`` for commands, which know no settings."""
    account: str = ""
    """Of Open Cluster Management, whose Secret a ClusterProfile means; empty: the only one there is."""


class Entry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One worker: its cluster's uid, its state, and since when. Times are RFC 3339."""

    uid: str = ""
    state: str = ""
    since: str = ""
    lost_since: str = ""
    reason: str = ""
    namespace_prefix: str = ""
    version: str = ""
    """Of its Kubernetes, at the last contact."""
    declared: Declared | None = None
    remark: str = ""
    """What people should know of its declaration."""
    fenced_until: str = ""
    """No lease of a mirror there ends later (D14); written before one is sent that may."""
    fence_clock: float | None = None
    """How far the worker's clock was ahead of ours then, in seconds."""
    fence_unsettled_until: str = ""
    """Its clock has moved: who is lost before this time has leases that nobody can count on."""
    gone_by: str = ""
    """The uid of what declared it dead, also when that was removed (``gone_record``); empty: nobody did."""
    refusal: str = ""
    """Why what declares it is at fault, as an event's reason. Written for commands, and for those who only assign."""
    unserved: tuple[str, ...] = ()
    """The kinds that it does not serve, by name."""
    incomplete: dict[str, str] = {}
    """Kinds whose definition there lacks fields that nothing works without, and which those are; written for who leads
    next, too, before whom nobody has read the definitions."""
    run_here: dict[str, str] = {}
    """Kinds that a controller on the management cluster was seen to run although an object placed on this worker names
    us, and until when nothing of them is placed; written for who assigns, and for who leads next (D20)."""

    def with_more(
        self, refusal: str, unserved: Iterable[str], incomplete: Mapping[str, str], run_here: Mapping[str, str]
    ) -> Entry:
        """The same, and what only those need who assign it."""
        kinds = {"incomplete": dict(sorted(incomplete.items())), "run_here": dict(sorted(run_here.items()))}
        return msgspec.structs.replace(self, refusal=refusal, unserved=tuple(sorted(unserved)), **kinds)


NOTHING = Entry()
"""Of a worker of which nothing is known."""


def kept_labels(labels: Iterable[tuple[str, str]]) -> tuple[dict[str, str], int]:
    """As many labels as are written down, by name, and how many are not."""
    kept: dict[str, str] = {}
    room, left_out = MOST_LABEL_BYTES, 0
    for key, value in sorted(labels):
        room -= len(key) + len(value)
        if room >= 0:
            kept[key] = value
        else:
            left_out += 1
    return kept, left_out


class IdentityRejected(ValueError):
    """A kubeconfig leads to a cluster that it must not lead to (D19)."""


DECLARED_WRONG = (KubeconfigRefused.__name__, IdentityRejected.__name__)
"""What has to be mended where a worker is declared: waiting does not help."""


class WorkerInventory:
    """All entries, by worker; what is asked for each worker, or in each heartbeat, goes over none of the others.

    Invariant: ``_by_uid`` has the names of all workers whose entry has the uid of a cluster.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries: dict[str, Entry] = {}
        self._by_uid: dict[str, set[str]] = {}
        for worker, entry in entries.items():
            self.put(worker, entry)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerInventory) and self._entries == other._entries

    @staticmethod
    def of(configmap: Object | None) -> WorkerInventory:
        """Read the ConfigMap; entries that make no sense are left out."""
        texts = configmap.data_dict() if configmap else {}
        return WorkerInventory({name: entry for name, text in texts.items() if (entry := entry_in(text)) is not None})

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self._entries

    def entry(self, worker: str) -> Entry:
        return self._entries.get(worker, NOTHING)

    def put(self, worker: str, entry: Entry) -> None:
        """This is known of a worker from now on."""
        before, self._entries[worker] = self.entry(worker), entry
        if before.uid != entry.uid:
            self._leave(worker, before)
            if entry.uid:
                self._by_uid.setdefault(entry.uid, set()).add(worker)

    def drop(self, worker: str) -> bool:
        """Nothing is known of a worker from now on; return whether anything was."""
        before = self._entries.pop(worker, None)
        if before is not None:
            self._leave(worker, before)
        return before is not None

    def _leave(self, worker: str, entry: Entry) -> None:
        """It is not the cluster of this entry any more."""
        if (same := self._by_uid.get(entry.uid)) is not None:
            same.discard(worker)
            if not same:
                del self._by_uid[entry.uid]

    def prefix_of(self, worker: str) -> str | None:
        """The namespace prefix in use on a worker; None before its first contact."""
        known = self.entry(worker)
        return known.namespace_prefix if known.uid else None

    def registered_as(self, worker: str, uid: str) -> str | None:
        """Another worker that has this cluster; of several, the first by name."""
        return min((other for other in self._by_uid.get(uid, ()) if other != worker), default=None)

    def forget(self, worker: str, *, at: str) -> None:
        """Drop a worker, but for where the mirrors live that may be left on its cluster (D19); ``at``: the time."""
        entry = self.entry(worker)
        self.drop(worker)
        if entry.uid:
            self.put(FORMER + entry.uid, Entry(namespace_prefix=entry.namespace_prefix, since=at))
            former = sorted((name for name in self._entries if name.startswith(FORMER)), key=self._since)
            for oldest in former[:-MOST_FORMER]:
                self.drop(oldest)

    def _since(self, worker: str) -> str:
        return self._entries[worker].since

    def prefix_on(self, worker: str, uid: str) -> str | None:
        """The namespace prefix in use on a cluster, under whatever name it is, or was, registered; None: it never was.

        Args:
            worker: its name now.
            uid: of the cluster; empty before its first contact.
        """
        if (prefix := self.prefix_of(worker)) is not None or not uid:
            return prefix
        name = self.registered_as(worker, uid) or FORMER + uid
        return self.entry(name).namespace_prefix if name in self._entries else None

    def is_orphan(self, worker: str) -> bool:
        """Whether nothing declares it any more: it is remembered for the Jobs that are recorded there."""
        return self.entry(worker).reason.startswith(SECRET_GONE)

    def check_alone(self, worker: str, uid: str, *, former: str | None = None) -> None:
        """Whether a cluster is no other worker; ``former``: the name that it had before and has no more.

        Raises:
            IdentityRejected: it is.
        """
        others = self._by_uid.get(uid, set()) - {worker, former}
        if others:
            other = min(others)
            left = ", whose Secret was deleted while Jobs are recorded there" if self.is_orphan(other) else ""
            raise IdentityRejected(f"this cluster is registered already, as worker {other}{left}")

    def check_identity(
        self, worker: str, uid: str, *, management_uid: str, has_prefix: bool, former: str | None = None
    ) -> None:
        """Whether this worker may be this cluster; ``former``: as of ``check_alone``.

        Raises:
            IdentityRejected: it was another cluster before, another worker is this cluster already, or it is the
                management cluster and has no namespace prefix.
        """
        known = self.entry(worker).uid
        if known and known != uid:
            raise IdentityRejected(f"the kubeconfig leads to another cluster ({uid}) than before ({known})")
        self.check_alone(worker, uid, former=former)
        if uid == management_uid and not has_prefix:
            raise IdentityRejected("this is the management cluster itself: it needs the annotation namespace-prefix")


def entry_in(text: str) -> Entry | None:
    """As one is written; None: it makes no sense."""
    try:
        return msgspec.json.decode(text, type=Entry)
    except (*JUNK, TypeError):
        return None


class EntryTexts:
    """Entries as they are written; each is encoded once, as long as it stays."""

    def __init__(self) -> None:
        self._whole: dict[str, tuple[Entry, str]] = {}
        self._brief: dict[str, tuple[Entry, str]] = {}

    def of(self, entries: Mapping[str, Entry]) -> dict[str, str]:
        """All of them: without what only people read where that is too much for one ConfigMap.

        Who declares workers chooses their names and labels; who they are has to be written all the same (D19).
        """
        self._whole = _encoded(entries, self._whole, encode)
        if sum(len(name) + len(text.encode()) for name, (_, text) in self._whole.items()) <= MOST_BYTES:
            self._brief.clear()
            return {name: text for name, (_, text) in self._whole.items()}
        self._brief = _encoded(entries, self._brief, lambda entry: encode(_brief(entry)))
        return {name: text for name, (_, text) in self._brief.items()}


def _encoded(
    entries: Mapping[str, Entry], before: Mapping[str, tuple[Entry, str]], encode_one: Callable[[Entry], str]
) -> dict[str, tuple[Entry, str]]:
    found = {}
    for name, entry in entries.items():
        known = before.get(name)
        found[name] = known if known is not None and known[0] is entry else (entry, encode_one(entry))
    return found


def encode(entry: Entry) -> str:
    return msgspec.json.encode(entry).decode()


def _brief(entry: Entry) -> Entry:
    said = entry.declared
    if said is not None:
        more = said.more_labels + len(said.labels)
        by = said.by if len(said.by) <= LONGEST_BRIEF else said.by[: LONGEST_BRIEF - 1] + CUT
        key, account = (text if len(text) <= LONGEST_BRIEF else "" for text in (said.key, said.account))
        said = msgspec.structs.replace(said, by=by, labels={}, more_labels=more, key=key, account=account)
    incomplete = {kind: fields[:LONGEST_BRIEF] for kind, fields in entry.incomplete.items()}
    reason = entry.reason[:LONGEST_BRIEF]
    return msgspec.structs.replace(entry, reason=reason, remark="", declared=said, incomplete=incomplete)


def written(moment: datetime | None) -> str:
    """A time as it is recorded; empty for None."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""
