"""How much ``access`` serves at once, at most and for how long. Not settings: the values suit every installation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Every bound; tests have smaller ones."""

    streams: int = 64
    """Logs that are read at once."""
    streams_of_one: int = 8
    """By one person."""
    streams_of_namespace: int = 16
    """Of Jobs in one namespace: whoever may read logs there may have any number of accounts."""
    calls_of_worker: int = 8
    """Other requests to one worker at once."""
    answer_seconds: float = 10.0
    """How long a worker may take to answer."""
    peer_seconds: float = 15.0
    """How long another manager may take to answer, or to begin with a log."""
    peer_decide_seconds: float = 12.0
    """How long it may take for that until it says itself what did not answer."""
    peer_job_seconds: float = 5.0
    """How long it may take for a Job itself, of which something is known here."""
    peer_bytes: int = 16 * 2**20
    """Of its answer, but for logs."""
    requests_of_peer: int = 32
    """To one other manager at once, but for logs; about one worker they are as many as ``calls_of_worker``."""
    requests_of_one: int = 4
    """Of those, by one person."""
    decide_seconds: float = 25.0
    """How long it may take until a request is answered, or its log begins."""
    follow_seconds: float = 3_600.0
    read_seconds: float = 600.0
    """How long a log may be followed, and read without following."""
    silent_seconds: float = 60.0
    """How long a log that is not followed may be silent."""
    write_seconds: float = 60.0
    """How long the reader of a log may not read."""
    log_bytes: int = 256 * 2**20
    tail_lines: int = 100_000
    items: int = 500
    """Pods and events in one list."""
    jobs: int = 1_000
    """Jobs in one list."""
    draft_bytes: int = 1_500_000
    """A Job that does not exist yet; a stored one is not longer."""
    list_bytes: int = 16 * 2**20
    pods_asked_singly: int = 8
    event_pages: int = 4
