"""Logs of containers: what is kept, and what a reader gets of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mirror.embedded.podlogs import LONGEST_LINE, ContainerLog, NoLog, Options, PodLogs, container_id_of

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
TIME = "2026-03-01T12:00:00.000000000Z"


async def text_of(log: ContainerLog, **options: Any) -> str:
    return b"".join([piece async for piece in log.read(Options(**options))]).decode()


def log_of(*lines: str) -> ContainerLog:
    log = ContainerLog()
    for second, line in enumerate(lines):
        log.write(line.encode(), NOON + timedelta(seconds=second))
    return log


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, "a\nb\nc\n", id="everything"),
        pytest.param({"tail": 2}, "b\nc\n", id="the last two"),
        pytest.param({"tail": 0}, "", id="none of them"),
        pytest.param({"tail": 9}, "a\nb\nc\n", id="more than there are"),
        pytest.param({"limit_bytes": 3}, "a\nb", id="three bytes"),
        pytest.param({"since": NOON + timedelta(seconds=1)}, "b\nc\n", id="from a time on"),
        pytest.param({"since": NOON + timedelta(seconds=1), "tail": 1}, "c\n", id="both"),
        pytest.param({"tail": 1, "timestamps": True}, "2026-03-01T12:00:02.000000000Z c\n", id="with times"),
    ],
)
async def test_a_reader_gets_what_is_asked_for(options: dict[str, Any], expected: str) -> None:
    """As ``kubectl logs`` with its flags."""
    assert await text_of(log_of("a\n", "b\n", "c\n"), **options) == expected


async def test_a_line_without_an_end_is_kept_when_the_container_ends() -> None:
    """Nothing is added to it."""
    log = log_of("a\nb")
    assert await text_of(log) == "a\n"
    log.end(NOON)
    assert await text_of(log) == "a\nb"


async def test_a_long_line_is_kept_in_parts_and_read_as_one() -> None:
    """It has one time, and counts as one line."""
    line = "x" * (2 * LONGEST_LINE + 5)
    log = log_of("a\n", line + "\n")
    assert await text_of(log, tail=1) == line + "\n"
    assert (await text_of(log, timestamps=True)).count("Z ") == 2


async def test_carriage_returns_are_text() -> None:
    """A progress bar is one line."""
    assert await text_of(log_of("1%\r2%\r\n")) == "1%\r2%\r\n"


async def test_of_a_log_that_is_too_long_the_older_half_is_forgotten(tmp_path: Path) -> None:
    """In memory as in a file; a line is never cut."""
    for log in (ContainerLog(most_bytes=2000), ContainerLog(tmp_path / "log", most_bytes=2000)):
        for number in range(500):
            log.write(f"{number}\n".encode(), NOON)
        lines = (await text_of(log)).split()
        assert lines == [str(number) for number in range(500 - len(lines), 500)]
        assert 20 < len(lines) < 60
        log.remove()
    assert not (tmp_path / "log").exists()


async def test_following_goes_on_until_the_container_ends() -> None:
    """An empty piece says: that is all for now."""
    log = log_of("a\n")
    pieces: list[bytes] = []

    async def follow() -> None:
        pieces.extend([piece async for piece in log.read(Options(follow=True))])

    async with asyncio.TaskGroup() as scope:
        scope.create_task(follow(), name="follow")
        await asyncio.sleep(0)
        log.write(b"b\n", NOON)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        log.end(NOON)
    assert pieces == [b"a\n", b"", b"b\n", b""]


async def test_logs_are_found_by_container_until_they_are_removed() -> None:
    """Whoever follows one that is removed is told that it is over."""
    logs, log = PodLogs(), log_of("a\n")
    logs.add("jobmirror://1", log)
    assert logs.find("jobmirror://1") is log
    logs.remove("jobmirror://1")
    logs.remove("jobmirror://1")
    assert (logs.find("jobmirror://1"), len(logs)) == (None, 0)
    assert await text_of(log, follow=True) == ""


def pod(**status: object) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "status": {"containerStatuses": [{"name": "c", **status}]}}


RAN = {"terminated": {"exitCode": 0, "containerID": "jobmirror://1"}}


@pytest.mark.parametrize(
    ("body", "previous", "expected"),
    [
        pytest.param(pod(state={"running": {}}, containerID="jobmirror://2"), False, "jobmirror://2", id="it runs"),
        pytest.param(pod(state=RAN), False, "jobmirror://1", id="it has ended"),
        pytest.param(
            pod(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=RAN), False, "jobmirror://1", id="it waits"
        ),
        pytest.param(pod(state={"running": {}}, lastState=RAN), True, "jobmirror://1", id="its last run"),
    ],
)
def test_a_status_names_the_log(body: dict[str, Any], previous: bool, expected: str) -> None:
    """As a kubelet looks for it."""
    assert container_id_of(body, "c", previous=previous) == expected


@pytest.mark.parametrize(
    ("body", "previous", "expected"),
    [
        pytest.param(
            pod(state={"waiting": {"reason": "ContainerCreating"}}),
            False,
            'container "c" in pod "p" is waiting to start: ContainerCreating',
            id="not begun",
        ),
        pytest.param(
            pod(state={"running": {}}), True, 'previous terminated container "c" in pod "p" not found', id="first run"
        ),
        pytest.param({"metadata": {"name": "p"}}, False, 'container "c" in pod "p" is not available', id="unknown"),
        pytest.param(
            pod(state={"terminated": {"exitCode": 1}}), False, 'container "c" in pod "p" is terminated', id="never ran"
        ),
    ],
)
def test_where_no_log_is_a_kubelets_words_say_why(body: dict[str, Any], previous: bool, expected: str) -> None:
    """They are answered as a 400."""
    with pytest.raises(NoLog, match=f"^{expected}$"):
        container_id_of(body, "c", previous=previous)
