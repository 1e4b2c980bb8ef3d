"""Where workers are shared out by slots, records say in which term they were made (S6, S7). Pure."""

from __future__ import annotations

from mirror.decide.plan import Plan
from mirror.decide.snapshot import Snapshot
from mirror.decide.writing import source_write
from mirror.kinds.stored_source import Status
from mirror.model.terms import term_of, with_term


def in_term(seen: Snapshot, status: Status) -> Status:
    """A status that records a worker, with the term in which its slot is held."""
    return with_term(status, seen.term) if seen.term else status


def touch_record(seen: Snapshot) -> Plan | None:
    """Nothing is created for a record of another term: it is made one of ours first.

    What the one before us has under way to take the record away meets another version then, and what a worker refuses
    is not the first create that was ever sent.
    """
    status = seen.source.stored.status
    if not seen.term or term_of(status) == seen.term:
        return None
    write, _ = source_write(seen, status=with_term(status, seen.term))
    return Plan("recorded in another term", write, 0.0)
