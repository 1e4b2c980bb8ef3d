"""``mirror apiserver``: what it refuses before it does anything, and that it serves and ends."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from mirror.cli.main import main
from mirror.serving.x509 import KeyPair, client_context

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MIRROR = Path(sys.executable).parent / "mirror"


def invoke(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["apiserver", *arguments], env=environment)


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (["--listen=8080"], {}, "--listen: expected HOST:PORT"),
        (["--listen=127.0.0.1:99999"], {}, "--listen: expected HOST:PORT"),
        (["--controllers=jobs"], {}, "--controllers: there is no controller 'jobs'; there are job, "),
        (["--feature-gates=Fly=true"], {}, "--feature-gates: unknown gate 'Fly' (known: GenericWorkload, "),
        (["--data="], {}, "--data: expected a file; leave the option out to keep data in memory"),
        ([], {"JOB_FEATURE_GATES": "Fly=true"}, "JOB_FEATURE_GATES: unknown gate 'Fly'"),
        (
            ["--feature-gates=WorkloadWithJob=true"],
            {},
            "feature gates: WorkloadWithJob is on and needs GenericWorkload",
        ),
        ([], {"JOB_MAX_UNCOUNTED_PODS": "many"}, "JOB_MAX_UNCOUNTED_PODS: expected a whole number"),
    ],
)
def test_what_cannot_be_used_ends_with_two(arguments: list[str], environment: dict[str, str], told: str) -> None:
    """One line on stderr, which names the option or the variable; nothing is started."""
    result = invoke(*arguments, **environment)

    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"mirror apiserver: {told}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--kubeconfig-out={path}/none/kubeconfig", "--kubeconfig-out"),
        ("--data={path}/none/data", "--data: {path}/none/data: no such file or directory"),
        ("--listen=192.0.2.1:1", "cannot listen on 192.0.2.1:1"),
    ],
)
def test_what_turns_out_to_be_impossible_ends_with_one(option: str, told: str, tmp_path: Path) -> None:
    """One line that says what."""
    command = [str(MIRROR), "apiserver", "--listen=127.0.0.1:0", "--controllers=none", "--log-level=error"]
    done = subprocess.run([*command, option.format(path=tmp_path)], capture_output=True, text=True, timeout=120)

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"mirror: {told.format(path=tmp_path)}")


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """The kubeconfig is on its output unless a file is named; SIGTERM ends it with 0."""
    command = [str(MIRROR), "apiserver", "--listen=127.0.0.1:0", f"--data={tmp_path / 'data'}", "--log-level=error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = list(iter(process.stdout.readline, "current-context: embedded\n"))
        process.terminate()
        code = process.wait(timeout=120)

    assert lines[:2] == ["apiVersion: v1\n", "kind: Config\n"]
    assert code == 0


@pytest.mark.slow
def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    """With its data: every object, and the kubeconfig, which still names the same authority and the same user."""
    kubeconfig, data = tmp_path / "kubeconfig", tmp_path / "data"
    command = [str(MIRROR), "apiserver", "--controllers=none", f"--data={data}", "--log-level=error"]
    with running([*command, "--listen=127.0.0.1:0", f"--kubeconfig-out={kubeconfig}"], kubeconfig) as process:
        connection, address = connected(kubeconfig)
        with closing(connection):
            acknowledged = created_until_killed(connection, process)
    again = tmp_path / "again"
    with running([*command, f"--listen={address}", f"--kubeconfig-out={again}"], again):
        connection, _ = connected(kubeconfig)
        with closing(connection):
            connection.request("GET", CONFIG_MAPS)
            items = json.loads(connection.getresponse().read())["items"]

    assert len(acknowledged) >= 50
    assert set(acknowledged) <= {item["metadata"]["name"] for item in items}


def created_until_killed(connection: HTTPSConnection, process: subprocess.Popen[bytes]) -> list[str]:
    """The names of ConfigMaps that were created one after another, until the server was no more."""
    acknowledged: list[str] = []
    killer = threading.Timer(0.02, process.kill)
    with suppress(OSError, HTTPException):
        while True:
            name = f"c-{len(acknowledged)}"
            connection.request("POST", CONFIG_MAPS, json.dumps({"metadata": {"name": name}}))
            answer = connection.getresponse()
            assert answer.status == 201, answer.read()
            answer.read()
            acknowledged.append(name)
            if len(acknowledged) == 50:
                killer.start()
    killer.join()
    return acknowledged


@contextmanager
def running(command: list[str], kubeconfig: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready; killed at the end."""
    with subprocess.Popen(command) as process:
        try:
            deadline = time.monotonic() + 120
            while not kubeconfig.exists():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


def connected(kubeconfig: Path) -> tuple[HTTPSConnection, str]:
    """A connection of a kubeconfig's user, and the server's address."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]

    def decoded(holder: dict[str, str], name: str) -> bytes:
        return base64.b64decode(holder[f"{name}-data"])

    pair = KeyPair(decoded(user, "client-certificate"), decoded(user, "client-key"))
    tls = client_context(decoded(cluster, "certificate-authority"), pair)
    address = cluster["server"].removeprefix("https://")
    return HTTPSConnection(address, context=tls, timeout=120), address
