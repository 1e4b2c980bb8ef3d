"""Storage: one version counter, reads in the past, compaction, cursors; and the journal that outlives the process."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Event, Gone, Record, StorageConflict
from mirror.embedded.apiserver.storage.sqlite import SqliteJournal, Unusable
from tests.embedded.apiserver.asking import MAPS, Asking


def write(storage: Storage, name: str, text: str = "", namespace: str = "n", kind: str = "maps") -> Record:
    """Put an object there, whatever is there."""

    def build(version: int) -> bytes:
        return json.dumps({"metadata": {"uid": f"u-{name}"}, "version": version, "text": text}).encode()

    before = storage.get(kind, namespace, name)
    return storage.write(kind, namespace, name, build, replacing=before, labels={"l": text})


def drop(storage: Storage, name: str, namespace: str = "n", kind: str = "maps") -> Record:
    """Delete an object."""
    record = storage.get(kind, namespace, name)
    assert record is not None
    return storage.remove(kind, record, lambda version: record.raw)


def names(storage: Storage, version: int | None = None, namespace: str | None = None, after: str = "") -> list[str]:
    """Keys with texts."""
    found = storage.records("maps", namespace, version=version, after=after)
    return [f"{one.key}={json.loads(one.raw)['text']}" for one in found]


def test_every_write_has_the_next_version() -> None:
    """One counter for all collections; what is made knows its version."""
    storage = Storage()
    first, second = write(storage, "a"), write(storage, "a", kind="jobs")
    assert (first.version, second.version, storage.version) == (2, 3, 3)
    assert json.loads(second.raw)["version"] == 3
    assert (storage.changed("maps"), storage.changed("jobs"), storage.changed("none")) == (2, 3, 0)


def test_a_write_of_what_moved_is_refused() -> None:
    """Nobody overwrites what they have not seen."""
    storage = Storage()
    old = write(storage, "a")
    new = write(storage, "a", "x")
    for replacing in (None, old):
        with pytest.raises(StorageConflict):
            storage.write("maps", "n", "a", lambda version: b"{}", replacing=replacing, labels={})
    with pytest.raises(StorageConflict):
        storage.remove("maps", old, lambda version: b"{}")
    assert storage.get("maps", "n", "a") is new
    assert storage.version == new.version


def test_a_list_is_sorted_by_namespace_and_name() -> None:
    """As bytes of ``namespace/name``, so that a dash comes before the slash."""
    storage = Storage()
    for namespace, name in (("b", "a"), ("a", "z"), ("a-b", "m"), ("a", "b")):
        write(storage, name, namespace=namespace)
    assert names(storage) == ["a-b/m=", "a/b=", "a/z=", "b/a="]
    assert names(storage, namespace="a") == ["a/b=", "a/z="]
    assert names(storage, after="a/b") == ["a/z=", "b/a="]
    assert storage.count("maps", "a") == 2


def test_the_past_is_read_until_it_is_compacted() -> None:
    """Changes are undone; deleted objects are there again."""
    storage = Storage()
    write(storage, "a", "1")
    write(storage, "b", "1")
    then = storage.version
    write(storage, "a", "2")
    drop(storage, "b")
    write(storage, "c", "1")
    assert names(storage, then) == ["n/a=1", "n/b=1"]
    assert names(storage, then, after="n/a") == ["n/b=1"]
    assert names(storage) == ["n/a=2", "n/c=1"]
    storage.compact(storage.version)
    with pytest.raises(Gone):
        names(storage, then)
    with pytest.raises(Gone):
        storage.watch("maps", then)
    assert names(storage, storage.version) == ["n/a=2", "n/c=1"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=60), st.integers(2, 20))
def test_every_version_is_as_it_was(steps: list[tuple[str, bool]], history: int) -> None:
    """Whatever is written: a version that can be read shows exactly what was there."""
    storage, seen = Storage(history=history), {1: []}
    for name, is_removal in steps:
        if is_removal and storage.get("maps", "n", name):
            drop(storage, name)
        else:
            write(storage, name, str(storage.version))
        seen[storage.version] = names(storage)
    for version, expected in seen.items():
        try:
            assert names(storage, version) == expected
        except Gone:
            assert version < storage.version - 1


def test_a_cursor_sees_every_event_once() -> None:
    """It may be behind; it holds nothing but a version."""
    storage = Storage()
    write(storage, "a")
    cursor = storage.watch("maps", storage.version)
    write(storage, "a", "x")
    drop(storage, "a")
    write(storage, "b", kind="others")
    events = cursor.take()
    assert [(one.version, one.is_deletion) for one in events] == [(3, False), (4, True)]
    assert cursor.take() == []
    assert cursor.progress() == 5


def test_a_cursor_survives_compaction_but_not_loss() -> None:
    """Who has read everything goes on; whom events are missing is told."""
    storage = Storage(history=8)
    write(storage, "a")
    current = storage.watch("maps", storage.version)
    storage.compact(storage.version)
    assert current.take() == []
    for number in range(40):
        write(storage, "a", str(number))
    with pytest.raises(Gone):
        current.take()


@pytest.mark.parametrize(("text", "most"), [("", 256), ("x" * 2**18, 5)], ids=["many", "large"])
def test_a_cursor_that_is_far_behind_takes_a_little_at_a_time(text: str, most: int) -> None:
    """Others are served in between; nothing is left out, and who comes behind shares the work."""
    storage, made = Storage(), []

    def make(events: list[Event]) -> list[bytes]:
        made.append(len(events))
        return [b"%d" % one.version for one in events]

    cursors = [storage.watch("maps", storage.version) for _ in range(3)]
    for number in range(600 if not text else 12):
        write(storage, f"m{number}", text)
    versions = [b"%d" % one.version for one in storage.watch("maps", 0).take()]
    taken: list[list[bytes]] = [[], []]
    while cursors[0].is_behind:
        for place in (0, 1):
            taken[place] += cursors[place].take_as("form", make)
    assert taken == [versions, versions]
    assert max(made) <= most
    assert sum(made) == len(versions)
    one_by_one = []
    while cursors[2].is_behind:
        one_by_one += cursors[2].take_some()
    assert len(one_by_one) == len(versions)


def test_readers_with_the_same_wish_share_the_work() -> None:
    """Who is at the same place gets what was made for another."""
    storage, made = Storage(), []

    def make(events: list[Event]) -> list[bytes]:
        made.append(len(events))
        return [one.record.raw for one in events]

    cursors = [storage.watch("maps", storage.version) for _ in range(3)]
    write(storage, "a")
    assert cursors[0].is_behind
    assert cursors[0].take_as("form", make) is cursors[1].take_as("form", make)
    write(storage, "b")
    assert len(cursors[2].take_as("form", make)) == 2
    assert made == [1, 2]
    assert not cursors[2].is_behind


def test_who_listens_hears_of_every_write() -> None:
    """At once, when it can be read."""
    storage, heard = Storage(), []
    stop = storage.listen("maps", lambda: heard.append(storage.count("maps", "n")))
    write(storage, "a")
    write(storage, "b", kind="others")
    drop(storage, "a")
    assert heard == [1, 0]
    stop()
    write(storage, "a")
    assert heard == [1, 0]


def test_what_was_encoded_is_forgotten_with_time() -> None:
    """Old events keep no copies for watchers."""
    storage = Storage()
    cursor = storage.watch("maps", storage.version)
    write(storage, "a")
    event = cursor.take()[0]
    event.encoded = {"form": b"line"}
    for _ in range(1100):
        write(storage, "b")
    assert event.encoded is None


def test_the_journal_keeps_everything(tmp_path: Path) -> None:
    """Objects and the counter are there again, even if nobody closed the file; the history begins anew."""
    (tmp_path / "alive").mkdir()
    storage = Storage(SqliteJournal(tmp_path / "alive" / "data"))
    write(storage, "a", "1")
    write(storage, "b", "1")
    write(storage, "a", "2")
    drop(storage, "b")
    last = storage.version
    shutil.copytree(tmp_path / "alive", tmp_path / "killed")  # what a process leaves that dies now
    storage.close()
    again = Storage(SqliteJournal(tmp_path / "killed" / "data"))
    assert again.version == last
    assert names(again) == ["n/a=2"]
    found = again.get("maps", "n", "a")
    assert found is not None
    assert (found.uid, found.version) == ("u-a", 4)
    assert again.changed("maps") > 0
    with pytest.raises(Gone):
        again.watch("maps", last - 1)
    assert write(again, "c").version == last + 1
    again.close()


def test_a_file_has_one_user(tmp_path: Path) -> None:
    """A second server on the same data would ruin both."""
    storage = Storage(SqliteJournal(tmp_path / "data"))
    write(storage, "a")
    with pytest.raises(Unusable):
        SqliteJournal(tmp_path / "data")
    storage.close()


@pytest.mark.looptime
async def test_a_full_disk_is_told_and_nothing_is_half_done(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """500 with the reason, one line in the log; what was there stays, and writes go on when there is room again."""
    journal = SqliteJournal(tmp_path / "data")
    asking = Asking(Storage(journal))
    await asking.ok("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    (pages,) = journal._database.execute("PRAGMA page_count").fetchone()
    journal._database.execute(f"PRAGMA max_page_count = {pages}")
    large = {"metadata": {"name": "b"}, "data": {"k": "v" * 100_000}}
    why = f"{tmp_path / 'data'} cannot be written: database or disk is full"
    assert await asking.refused("POST", MAPS, large) == (500, "InternalError", f"Internal error occurred: {why}")
    assert [(one.levelname, one.exc_info) for one in caplog.records] == [("ERROR", None)]
    assert (await asking.ok("GET", f"{MAPS}/a"))["data"] == {"k": "v"}
    assert (await asking.refused("GET", f"{MAPS}/b"))[0] == 404
    journal._database.execute("PRAGMA max_page_count = 100000")
    await asking.ok("POST", MAPS, large)
    asking.server.storage.close()
    again = Storage(SqliteJournal(tmp_path / "data"))
    assert again.count("configmaps", "default") == 2
    again.close()


def test_a_file_of_others_is_refused(tmp_path: Path) -> None:
    """It is not overwritten."""
    (tmp_path / "data").write_bytes(b"no database" * 100)
    with pytest.raises(Unusable):
        SqliteJournal(tmp_path / "data")
    with closing(sqlite3.connect(tmp_path / "other")) as database:
        database.execute("CREATE TABLE theirs (value TEXT)")
        database.commit()
    with pytest.raises(Unusable):
        SqliteJournal(tmp_path / "other")


def test_an_existing_file_is_closed_to_others(tmp_path: Path) -> None:
    """Its Secrets are nobody else's, whatever mode it came with; the same of what SQLite left beside it."""
    names = ("data", "data-wal", "data-shm", "data-journal")
    for name in names:
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    storage = Storage(SqliteJournal(tmp_path / "data"))
    write(storage, "a")
    assert {0o600} == {one.stat().st_mode & 0o777 for one in tmp_path.iterdir()}
    storage.close()


def test_a_file_that_cannot_be_closed_to_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not own it is told what to do."""

    def refuse(file: int, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / "data").touch()
    (tmp_path / "data").chmod(0o644)
    monkeypatch.setattr("os.fchmod", refuse)
    with pytest.raises(Unusable, match=r"mode 0644 lets others read it, .* run chmod 600"):
        SqliteJournal(tmp_path / "data")


def test_damaged_data_is_refused(tmp_path: Path) -> None:
    """An object that cannot be read is told; a counter that is behind catches up; nothing stays locked."""
    storage = Storage(SqliteJournal(tmp_path / "data"))
    write(storage, "a")
    write(storage, "b")
    storage.close()
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(tmp_path / "data")) as database:
        database.execute("DELETE FROM counter")
        database.commit()
    again = Storage(SqliteJournal(tmp_path / "data"))
    assert again.version == 3
    again.close()
    with closing(sqlite3.connect(tmp_path / "data")) as database:
        database.execute("UPDATE objects SET raw = x'00' WHERE name = 'a'")
        database.commit()
    for _ in range(2):
        with pytest.raises(Unusable, match="maps n/a"):
            Storage(SqliteJournal(tmp_path / "data"))


_WRITER = """
import sys
from contextlib import closing
from pathlib import Path
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.sqlite import SqliteJournal
storage = Storage(SqliteJournal(Path(sys.argv[1])))
for number in range(100_000):
    made = b'{"metadata":{"uid":"u"},"text":"%d"}' % number
    before = storage.get("maps", "n", f"a{number % 50}")
    storage.write("maps", "n", f"a{number % 50}", lambda version: made, replacing=before, labels={})
    print(number, storage.version, flush=True)
"""


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """Everything of which it told the outside is there; and there is a next version."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path / "data")], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    told = [writer.stdout.readline() for _ in range(200)]
    writer.kill()
    told += writer.stdout.readlines()
    writer.stdout.close()
    writer.wait()
    number, version = map(int, [line for line in told if line.endswith(b"\n")][-1].split())
    storage = Storage(SqliteJournal(tmp_path / "data"))
    assert storage.version >= version
    for one in range(max(0, number - 49), number + 1):
        record = storage.get("maps", "n", f"a{one % 50}")
        assert record is not None
        assert int(json.loads(record.raw)["text"]) >= one
    storage.close()
