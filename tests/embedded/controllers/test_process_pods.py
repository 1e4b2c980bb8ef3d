"""Pods whose containers are processes: they really run, are held to their limits, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from embedded_world import CONFIGMAPS, PODS, Json, World, world

from mirror.embedded.controllers.kubelet import keeper
from mirror.embedded.controllers.kubelet.environment import expanded
from mirror.embedded.controllers.kubelet.processes import MARKER
from mirror.embedded.podlogs import Options
from mirror.runtime.clock import SystemClock

SECRETS = "/api/v1/namespaces/default/secrets"


@pytest.fixture(autouse=True)
def programs(required_program: Callable[..., Path]) -> None:
    """What the containers run."""
    for program in ("sleep", "setsid"):
        required_program(program)


@asynccontextmanager
async def machine(folder: Path) -> AsyncIterator[World]:
    async with world("scheduler", "kubelet", clock=SystemClock(), pods="process", folder=folder) as here:
        yield here
    assert os.listdir(folder) == []


def pod(name: str, *command: str, spec: Json | None = None, **container: Any) -> Json:
    body = {"name": "c", "image": "i", "command": list(command), **container}
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [body]} | (spec or {})}


def script(name: str, text: str, **rest: Any) -> Json:
    return pod(name, "sh", "-c", textwrap.dedent(text), **rest)


def ended(found: Json | None) -> bool:
    return found is not None and found.get("status", {}).get("phase") in ("Succeeded", "Failed")


def has_phase(phase: str) -> Callable[[Json | None], bool]:
    return lambda found: found is not None and found.get("status", {}).get("phase") == phase


def state(found: Json) -> Json:
    stopped: Json = found["status"]["containerStatuses"][0]["state"]["terminated"]
    return stopped


async def run(here: World, body: Json) -> Json:
    await here.api.create(PODS, body)
    return await here.until(f"{PODS}/{body['metadata']['name']}", ended, seconds=60)


async def log_of(here: World, found: Json) -> str:
    log = here.logs.find(found["status"]["containerStatuses"][0]["containerID"])
    assert log is not None
    return b"".join([piece async for piece in log.read(Options())]).decode()


async def until_logged(here: World, found: Json, text: bytes) -> None:
    log = here.logs.find(found["status"]["containerStatuses"][0]["containerID"])
    assert log is not None
    async with asyncio.timeout(60), aclosing(log.read(Options(follow=True))) as pieces:
        async for piece in pieces:
            if text in piece:
                return


def processes() -> list[int]:
    """All processes of containers that are left, whoever has started them from here."""
    return keeper.marked(f"{MARKER}={os.getpid()}-".encode())


async def none_is_left() -> None:
    """Until the last one is gone: what has been killed takes its time to end where there are many to run."""
    for _ in range(1000):
        if not processes():
            return
        await asyncio.sleep(0.01)
    assert processes() == []


async def test_a_command_runs_and_its_output_is_the_log(tmp_path: Path) -> None:
    """Standard output and error, in their order; the exit code decides."""
    async with machine(tmp_path) as here:
        found = await run(here, script("p", "echo one; echo two >&2; echo three; exit 3"))
        assert (found["status"]["phase"], state(found)["exitCode"], state(found)["reason"]) == ("Failed", 3, "Error")
        assert await log_of(here, found) == "one\ntwo\nthree\n"
        told = await here.told("p")
        text = 'Image "i" is ignored: the command runs as a process of this machine'
        assert ("ImageIgnored", text) in told


async def test_python_runs(tmp_path: Path) -> None:
    """``python -c`` finds the interpreter that runs us, if no other comes first."""
    async with machine(tmp_path) as here:
        found = await run(here, pod("p", "python", "-c", "print(6 * 7)"))
        assert (found["status"]["phase"], await log_of(here, found)) == ("Succeeded", "42\n")


async def test_variables_come_from_everywhere(tmp_path: Path) -> None:
    """Written out, from the pod, from ConfigMaps and Secrets; arguments name them; ours are not among them."""
    os.environ["OURS"] = "secret"
    async with machine(tmp_path) as here:
        await here.api.create(CONFIGMAPS, {"metadata": {"name": "m"}, "data": {"k": "from map", "l": "whole"}})
        await here.api.create(SECRETS, {"metadata": {"name": "s"}, "data": {"k": "ZnJvbSBzZWNyZXQ="}})
        variables = [
            {"name": "A", "value": "a"},
            {"name": "B", "value": "$(A)$(X_l)$$(A)$(NOT)"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "NOTE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['note']"}}},
            {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "x", "optional": True}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        ]
        body = pod(
            "p",
            "sh",
            "-c",
            'echo "$B|$NAME|$NOTE|$MAP|$SECRET|${NONE-unset}|$CPU|${OURS-unset}|$HOSTNAME|$0"',
            args=["$(A)b"],
            env=variables,
            envFrom=[{"prefix": "X_", "configMapRef": {"name": "m"}}],
            resources={"limits": {"cpu": "1500m"}},
        )
        body["metadata"]["labels"] = {"note": "n"}
        found = await run(here, body)
        expected = "awhole$(A)$(NOT)|p|n|from map|from secret|unset|1500|unset|p|ab\n"
        assert await log_of(here, found) == expected
    del os.environ["OURS"]


async def test_what_a_container_needs_is_waited_for(tmp_path: Path) -> None:
    """A Secret that is not there yet is no end."""
    async with machine(tmp_path) as here:
        variable = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
        await here.api.create(PODS, script("p", "exit 0", env=[variable]))
        found = await here.until(f"{PODS}/p", lambda one: one and one["status"].get("containerStatuses"), seconds=60)
        waiting = found["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting == {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}
        assert found["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(
            pod("p", "no-such-program"), 'exec: "no-such-program": executable file not found in $PATH', id="no program"
        ),
        pytest.param(pod("p"), 'container "c" has no command: what an image would run is not known', id="no command"),
        pytest.param(pod("p", "true", workingDir="/no/such/place"), 'chdir to cwd ("/no/such/place")', id="no folder"),
        pytest.param(pod("p", "/etc/passwd"), 'exec: "/etc/passwd": permission denied', id="no program either"),
    ],
)
async def test_what_cannot_start_ends_with_a_reason(tmp_path: Path, body: Json, text: str) -> None:
    """Exit code 128, as of container runtimes."""
    async with machine(tmp_path) as here:
        found = await run(here, body)
        assert (found["status"]["phase"], state(found)["exitCode"]) == ("Failed", 128)
        assert state(found)["reason"] == "StartError"
        assert text in state(found)["message"]


async def test_a_container_that_fails_is_restarted(tmp_path: Path) -> None:
    """``OnFailure``, with the files of the run before; the log is the new run's."""
    async with machine(tmp_path) as here:
        text = "if [ -e again ]; then echo second; else touch again; echo first; exit 1; fi"
        found = await run(here, script("p", text, spec={"restartPolicy": "OnFailure"}))
        assert found["status"]["phase"] == "Succeeded"
        assert found["status"]["containerStatuses"][0]["restartCount"] == 1
        assert await log_of(here, found) == "second\n"


async def test_a_deleted_pod_may_tidy_up(tmp_path: Path) -> None:
    """SIGTERM goes to all of its processes; with an exit code of its own it is gone."""
    async with machine(tmp_path) as here:
        body = script("p", "trap 'echo bye; exit 5' TERM; echo ready; sleep 60 & wait")
        body["metadata"]["finalizers"] = ["test.io/hold"]
        await here.api.create(PODS, body)
        running = await here.until(f"{PODS}/p", has_phase("Running"), seconds=60)
        await until_logged(here, running, b"ready\n")
        await here.api.delete(f"{PODS}/p")
        found = await here.until(f"{PODS}/p", ended, seconds=60)
        assert (state(found)["exitCode"], await log_of(here, found)) == (5, "ready\nbye\n")
        await none_is_left()


@pytest.mark.slow
async def test_a_pod_that_does_not_listen_is_killed_after_its_grace(tmp_path: Path) -> None:
    """Exit code 137; what it has started, even in sessions of their own, goes with it."""
    async with machine(tmp_path) as here:
        text = "trap '' TERM; setsid sleep 60 & (sleep 60) & echo ready; while :; do sleep 1; done"
        body = script("p", text)
        body["metadata"]["finalizers"] = ["test.io/hold"]
        await here.api.create(PODS, body)
        running = await here.until(f"{PODS}/p", has_phase("Running"), seconds=60)
        await until_logged(here, running, b"ready\n")
        assert len(processes()) >= 3
        await here.api.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 1})
        found = await here.until(f"{PODS}/p", ended, seconds=60)
        assert state(found)["exitCode"] == 137
        await none_is_left()


async def test_a_process_is_held_to_its_limits(tmp_path: Path) -> None:
    """Its memory, and the length of its files."""
    async with machine(tmp_path) as here:
        limits = {"limits": {"memory": "100Mi", "ephemeral-storage": "1Mi"}}
        text = "x = bytearray(300 << 20)"
        found = await run(here, pod("p", sys.executable, "-c", text, resources=limits))
        assert state(found)["exitCode"] == 1
        assert "MemoryError" in await log_of(here, found)
        text = "open('f', 'wb').write(bytes(2 << 20))"
        found = await run(here, pod("q", sys.executable, "-c", text, resources=limits))
        assert "File too large" in await log_of(here, found)


@pytest.mark.slow
async def test_a_deadline_ends_it(tmp_path: Path) -> None:
    """``activeDeadlineSeconds`` counts in whole seconds from the start."""
    async with machine(tmp_path) as here:
        found = await run(here, script("p", "sleep 60", spec={"activeDeadlineSeconds": 1}))
        assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "DeadlineExceeded")
        await none_is_left()


async def test_the_end_of_a_log_may_be_the_message(tmp_path: Path) -> None:
    """``FallbackToLogsOnError``."""
    async with machine(tmp_path) as here:
        body = script("p", "echo why; exit 1", terminationMessagePolicy="FallbackToLogsOnError")
        assert state(await run(here, body))["message"] == "why\n"


async def test_nothing_is_left_when_the_kubelet_ends(tmp_path: Path) -> None:
    """Nor when the pod's processes would not end by themselves; ``machine`` looks at the folder."""
    async with machine(tmp_path) as here:
        await here.api.create(PODS, script("p", "trap '' TERM; setsid sleep 60 & while :; do sleep 1; done"))
        await here.until(f"{PODS}/p", has_phase("Running"), seconds=60)
        assert processes() != []
    await none_is_left()


def look_until_gone(process: int) -> None:
    for _ in range(500):
        if not os.path.exists(f"/proc/{process}"):
            return
        time.sleep(0.01)
    raise AssertionError(f"{process} is left")


@pytest.mark.slow
async def test_what_hides_from_its_session_and_its_mark_is_found_by_its_parent(tmp_path: Path) -> None:
    """A process in a session of its own, with an empty environment, ends with its container."""
    async with machine(tmp_path) as here:
        await here.api.create(PODS, script("p", "setsid env -i sh -c 'echo $$$$; sleep 60' & sleep 60"))
        found = await here.until(f"{PODS}/p", has_phase("Running"), seconds=60)
        await until_logged(here, found, b"\n")
        hidden = int(await log_of(here, found))
        assert hidden not in processes()
    look_until_gone(hidden)


KILLED = """
import asyncio, os, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_process_pods import machine, script, has_phase, PODS

async def main():
    async with machine(Path({folder!r})) as here:
        await here.api.create(PODS, script("p", "setsid sleep 60 & (sleep 60 & wait) & sleep 60"))
        await here.until(f"{{PODS}}/p", has_phase("Running"), seconds=60)
        await asyncio.sleep(0.1)
        print("ready", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.slow
def test_nothing_is_left_when_the_manager_is_killed(tmp_path: Path) -> None:
    """By SIGKILL: the keeper does what it could not."""
    code = KILLED.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as manager:
        assert manager.stdout is not None
        assert manager.stdout.readline() == "ready\n"
        mark = f"{MARKER}={manager.pid}-".encode()
        assert len(keeper.marked(mark)) >= 3
        manager.send_signal(signal.SIGKILL)
        manager.wait(5)
    for _ in range(500):
        if not keeper.marked(mark) and not list(tmp_path.iterdir()):
            return
        time.sleep(0.01)
    raise AssertionError(f"left: {keeper.marked(mark)} {list(tmp_path.iterdir())}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "a"),
        ("x$(A)y$(A)", "xaya"),
        ("$(NOT)", "$(NOT)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$A $", "$A $"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("100%", "100%"),
    ],
)
def test_variables_in_texts(text: str, expected: str) -> None:
    """As Kubernetes expands them."""
    assert expanded(text, {"A": "a"}) == expected
