"""What is written down of one worker as it is now. Pure; ``registry`` asks at each of its transitions."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator

import msgspec

from mirror.workers.connection import State
from mirror.workers.declarations import Declarations, recorded
from mirror.workers.inventory import FORMER, Entry, written
from mirror.workers.worker import Worker


def entry_of(worker: Worker, before: Entry, declarations: Declarations, *, has_slot: bool) -> Entry:
    """The entry that follows the one of before; the same as that where nothing is to be written.

    Args:
        worker: whose it is.
        before: what was known of it.
        declarations: what declares it, and what is remarkable about that.
        has_slot: another manager may assign it, and knows only what is written (S1).
    """
    connection, holder = worker.connection, declarations.holder(worker.name)
    if connection.state is State.CONNECTING:
        return before
    declared = recorded(
        holder, before.declared, is_misconfigured=bool(worker.problems), token_expires=worker.token.expires
    )
    entry = msgspec.structs.replace(
        before,
        state=connection.state.value,
        lost_since=written(connection.lost_since),
        reason=_reason_of(worker),
        declared=declared,
        remark=declarations.remark(worker.name),
    )
    # Who assigns it for a slot knows only what is written; so do commands.
    unserved = worker.unserved_kinds if has_slot else ()
    entry = entry.with_more(worker.refusal, unserved, worker.incomplete_kinds, worker.kinds_run_here)
    if entry == before:
        return before
    return msgspec.structs.replace(entry, uid=before.uid or worker.uid, since=written(connection.since))


def left_over(entries: Collection[str], workers: Container[str]) -> Iterator[str]:
    """Workers of which only the record knows: each keeps its cluster from another name (D19)."""
    return (name for name in entries if name not in workers and not name.startswith(FORMER))


def _reason_of(worker: Worker) -> str:
    """What is wrong with it: why it is unreachable, what its declaration says, what is left out of its mirrors."""
    problems = "; ".join(map(str, worker.problems))
    return "; ".join(part for part in (worker.connection.because, problems, worker.watches.excess) if part)
