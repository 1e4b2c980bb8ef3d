"""``mirror run`` as a real process: signals, exit codes, and what stands on stderr.

The manager itself is replaced by a few lines, since only the process around it is looked at here.
"""

import asyncio
import logging
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from mirror.cli.process import on_loop_error
from tests.kube.certificates import Authority

HARNESS = """
import asyncio, os, sys, time, types
from mirror.model.endings import CannotStart, MustEnd
from mirror.runtime.leadership import LeadershipLost

async def run(settings, *, metrics, stop):
    print("running", settings.origin, flush=True)
{body}

app = types.ModuleType("mirror.app")
app.run = run
sys.modules["mirror.app"] = app
import mirror
mirror.app = app

import mirror.cli.process
mirror.cli.process.SHUTDOWN_SECONDS = {shutdown_seconds}
{before}
from mirror.cli.main import main
main(["run", "--config", {config!r}])
"""


@contextmanager
def process(
    tmp_path: Path, body: str, *, shutdown_seconds: float = 10.0, before: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """``mirror run`` with this body as the manager; ends with the block."""
    config = tmp_path / "mirror.yaml"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    config.write_text(f"origin: test\nkubeconfig: {kubeconfig}\n")
    indented = "\n".join(f"    {line}" for line in body.strip().splitlines())
    source = HARNESS.format(body=indented, shutdown_seconds=shutdown_seconds, config=str(config), before=before)
    with subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def started(running: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """The same process, once its manager runs."""
    assert running.stdout is not None
    assert running.stdout.readline() == "running test\n"
    return running


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_signal_stops_the_manager_and_is_a_success(tmp_path: Path, number: signal.Signals) -> None:
    """The manager is told to stop, finishes what it does on stopping, and the process exits with 0."""
    with process(tmp_path, 'await stop.wait()\nprint("cleaned up")') as running:
        started(running).send_signal(number)
        out, err = running.communicate()

    assert (running.returncode, out) == (0, "cleaned up\n")
    assert f"stopping signal={number.name}" in err
    assert "Traceback" not in err


def test_the_loop_is_the_fast_one_when_installed(tmp_path: Path) -> None:
    """uvloop runs the process where it is there."""
    with process(tmp_path, "await stop.wait()\nprint(type(asyncio.get_running_loop()).__base__)") as running:
        started(running).send_signal(signal.SIGTERM)
        out, err = running.communicate()

    assert (running.returncode, out) == (0, "<class 'uvloop.Loop'>\n")
    assert " event_loop=uvloop " in err


@pytest.mark.slow
def test_without_the_fast_loop_the_standard_one_serves(tmp_path: Path) -> None:
    """uvloop is an extra: its absence changes nothing but speed."""
    with process(tmp_path, "await stop.wait()", before='sys.modules["uvloop"] = None') as running:
        started(running).send_signal(signal.SIGTERM)
        _, err = running.communicate()

    assert running.returncode == 0
    assert " event_loop=asyncio " in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "hang",
    [
        pytest.param("await stop.wait()\nawait asyncio.Event().wait()", id="a coroutine that never ends"),
        pytest.param("await stop.wait()\ntime.sleep(60)", id="a blocked event loop"),
        pytest.param(
            "await stop.wait()\nasyncio.get_running_loop().run_in_executor(None, time.sleep, 60)", id="a thread"
        ),
    ],
)
def test_a_shutdown_that_hangs_is_cut_short(tmp_path: Path, hang: str) -> None:
    """After the time for shutting down the process ends with 1 whatever hangs."""
    with process(tmp_path, hang, shutdown_seconds=0.2) as running:
        started(running).send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=120)

    assert running.returncode == 1
    assert err.endswith("mirror: shutdown timed out; exiting now\n")


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    """Who presses Ctrl-C twice does not wait for a shutdown that hangs."""
    with process(tmp_path, 'await stop.wait()\nprint("told", flush=True)\nawait asyncio.Event().wait()') as running:
        started(running).send_signal(signal.SIGINT)
        assert running.stdout is not None
        assert running.stdout.readline() == "told\n"
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=120)

    assert running.returncode == 1
    assert err.endswith("mirror: second signal (SIGINT); exiting now\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "told"),
    [
        pytest.param('raise LeadershipLost("the lease is lost")', "mirror: the lease is lost\n", id="a lost lease"),
        pytest.param('raise CannotStart("no rights")', "mirror: no rights\n", id="a failed start"),
        pytest.param(
            'raise ExceptionGroup("x", [ExceptionGroup("y", [MustEnd("one")]), MustEnd("two")])',
            "mirror: one\nmirror: two\n",
            id="several from nested task groups",
        ),
    ],
)
def test_an_understood_failure_is_one_line_and_code_one(tmp_path: Path, failure: str, told: str) -> None:
    """What an operator can act on has no traceback."""
    with process(tmp_path, failure) as running:
        _, err = started(running).communicate()

    assert running.returncode == 1
    assert err.endswith(told)
    assert "Traceback" not in err


def test_a_defect_keeps_its_traceback(tmp_path: Path) -> None:
    """What nobody foresaw is shown whole, also beside a failure that is understood."""
    body = 'raise ExceptionGroup("x", [MustEnd("one"), ZeroDivisionError("oops")])'
    with process(tmp_path, body) as running:
        _, err = started(running).communicate()

    assert running.returncode == 1
    assert "Traceback" in err
    assert "ZeroDivisionError: oops" in err


def answer_one_hello(listener: socket.socket, context: ssl.SSLContext, answered: threading.Event) -> None:
    """A TLS server's half of one handshake, as far as it goes without the client's second word."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(received, sent, server_side=True)
    connection, _ = listener.accept()
    with connection:
        received.write(connection.recv(1 << 16))
        with pytest.raises(ssl.SSLWantReadError):
            session.do_handshake()
        connection.sendall(sent.read())
        answered.set()
        while connection.recv(1 << 16):
            pass


async def cancelled_while_answered(listener: socket.socket, client: ssl.SSLContext, answered: threading.Event) -> None:
    """Connecting is cancelled in the turn of the loop in which the server's answer is read."""
    connection = socket.create_connection(listener.getsockname())
    connection.setblocking(False)
    connecting = asyncio.ensure_future(
        asyncio.get_running_loop().create_connection(
            asyncio.Protocol, sock=connection, ssl=client, server_hostname="127.0.0.1"
        )
    )
    for _ in range(2):
        await asyncio.sleep(0)
    assert answered.wait(timeout=30)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    for _ in range(3):
        await asyncio.sleep(0)


def test_connecting_that_is_cancelled_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """uvloop reports as a fatal error, with a traceback, that it has closed the connection by then."""
    authority, answered = Authority(), threading.Event()
    server = authority.server_context(authority.issue("server", "127.0.0.1"), tmp_path)
    client = ssl.create_default_context(cadata=authority.pem.decode())
    reported: list[dict[str, Any]] = []

    def on_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        reported.append(context)
        on_loop_error(loop, context)

    async def cancel_it(listener: socket.socket) -> None:
        asyncio.get_running_loop().set_exception_handler(on_error)
        await cancelled_while_answered(listener, client, answered)

    with socket.create_server(("127.0.0.1", 0)) as listener, caplog.at_level(logging.INFO):
        serving = threading.Thread(target=answer_one_hello, args=(listener, server, answered))
        serving.start()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(cancel_it(listener))
        serving.join(timeout=30)

    assert [context["message"] for context in reported] == ["Fatal error on SSL protocol"]
    assert not caplog.records


@pytest.mark.parametrize("error", [RuntimeError("dictionary changed size during iteration"), ZeroDivisionError("oops")])
def test_other_errors_that_nobody_awaits_are_logged(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever else reaches the event loop is a defect, and is logged with its traceback."""
    with asyncio.Runner() as runner:
        on_loop_error(runner.get_loop(), {"message": "a callback failed", "exception": error})

    assert [(record.levelname, record.exc_info is not None) for record in caplog.records] == [("ERROR", True)]


REPORTED = """
loop = asyncio.get_running_loop()
loop.call_exception_handler({{"message": "Fatal error on SSL protocol", "exception": RuntimeError({error!r})}})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("error", "is_logged"), [("…; the handler is closed", False), ("oops", True)])
def test_the_process_asks_what_is_an_error(tmp_path: Path, error: str, is_logged: bool) -> None:
    with process(tmp_path, REPORTED.format(error=error)) as running:
        _, errors = running.communicate(timeout=60)
    assert ("Fatal error on SSL protocol" in errors) == is_logged
    assert running.returncode == 0
