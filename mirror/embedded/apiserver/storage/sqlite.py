"""Storage that outlives the process: every write is in a SQLite file before anybody sees it.

What is safe: everything that was acknowledged when the *process* dies, however it dies. Nothing is synced to the disk,
for the event loop would wait for it: a machine that loses power may lose the last writes and leave a file that cannot
be read. The file has the objects and the version counter; the history of events begins anew.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

from mirror.embedded.apiserver.storage.records import Record, Unusable, Unwritable

__all__ = ["SqliteJournal", "Unusable"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    stored_as TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, raw BLOB NOT NULL,
    PRIMARY KEY (stored_as, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 0), version INTEGER NOT NULL);
INSERT OR IGNORE INTO counter VALUES (0, 1);
"""
_LAYOUT = 1
_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite adds to the name of the file for those beside it. It gives them the mode of the file."""


class SqliteJournal:
    """A ``storage.Journal`` in one file, which no other process may have open at the same time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            _make_private(path)
            self._database = sqlite3.connect(path, isolation_level=None, timeout=0.0)
        except OSError as error:
            raise Unusable(f"{path}: {(error.strerror or str(error)).lower()}") from error
        except sqlite3.Error as error:
            raise Unusable(f"{path}: {error}") from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._database.close()
            raise Unusable(f"{path}: {error}") from error

    def load(self) -> tuple[int, Iterator[tuple[str, Record]]]:
        """The version of the last write, and every object."""
        try:
            versions = self._database.execute("SELECT version FROM counter").fetchall()
            rows = self._database.execute("SELECT stored_as, namespace, name, version, raw FROM objects").fetchall()
        except sqlite3.Error as error:
            raise Unusable(f"{self._path}: {error}") from error
        version = max((int(one[0]) for one in versions), default=1)
        return version, ((row[0], Record(row[1], row[2], "", row[3], row[4], {})) for row in rows)

    def put(self, stored_as: str, record: Record) -> None:
        """One transaction: the object and the counter. Raises: Unwritable."""
        run = self._database.execute
        try:
            run("BEGIN IMMEDIATE")
            run(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)",
                (stored_as, record.namespace, record.name, record.version, record.raw),
            )
            run("UPDATE counter SET version = ?", (record.version,))
            run("COMMIT")
        except sqlite3.Error as error:
            raise self._undone(error) from error

    def drop(self, stored_as: str, record: Record) -> None:
        """One transaction: the object's end and the counter. Raises: Unwritable."""
        run = self._database.execute
        try:
            run("BEGIN IMMEDIATE")
            key = (stored_as, record.namespace, record.name)
            run("DELETE FROM objects WHERE stored_as = ? AND namespace = ? AND name = ?", key)
            run("UPDATE counter SET version = ?", (record.version,))
            run("COMMIT")
        except sqlite3.Error as error:
            raise self._undone(error) from error

    def close(self) -> None:
        """Fold the log into the file and let go of it."""
        self._database.close()

    def _prepare(self) -> None:
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        # The kernel keeps what was written when the process dies: nothing needs to be synced for that.
        run("PRAGMA synchronous = OFF")
        (layout,) = run("PRAGMA user_version").fetchone()
        (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        if layout == 0 and tables:
            raise sqlite3.DatabaseError("a database of something else")
        if layout not in (0, _LAYOUT):
            raise sqlite3.DatabaseError(f"written by another version (layout {layout})")
        self._database.executescript(_SCHEMA)
        run(f"PRAGMA user_version = {_LAYOUT}")

    def _undone(self, error: sqlite3.Error) -> Unwritable:
        """The file is as before; what is to be told."""
        with contextlib.suppress(sqlite3.Error):
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
        return Unwritable(f"{self._path} cannot be written: {error}")


def _make_private(path: Path) -> None:
    """Secrets are in it, and in the files that SQLite keeps beside it: none of them is for others to read.

    Raises:
        OSError: it cannot be opened.
        Unusable: others may read it, and it is not ours to change.
    """
    _close_to_others(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for suffix in _BESIDE:
        beside = path.with_name(path.name + suffix)
        with contextlib.suppress(FileNotFoundError):
            _close_to_others(beside, os.open(beside, os.O_RDONLY | os.O_CLOEXEC))


def _close_to_others(path: Path, file: int) -> None:
    try:
        mode = stat.S_IMODE(os.fstat(file).st_mode)
        if mode & 0o077:
            os.fchmod(file, 0o600)
    except PermissionError as error:
        told = f"mode {mode:04o} lets others read it, and it has another owner; run chmod 600 as its owner"
        raise Unusable(f"{path}: {told}") from error
    finally:
        os.close(file)
