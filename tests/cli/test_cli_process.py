"""``mirror run`` as a real process: signals, exit codes, and what stands on stderr.

The manager itself is replaced by a few lines, since only the process around it is looked at here.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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
    pytest.importorskip("uvloop")
    with process(tmp_path, "await stop.wait()\nprint(type(asyncio.get_running_loop()).__module__)") as running:
        started(running).send_signal(signal.SIGTERM)
        out, err = running.communicate()

    assert (running.returncode, out) == (0, "uvloop\n")
    assert " event_loop=uvloop " in err


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


LATE_BYTES = """
class Closed:
    def is_closing(self):
        return {closed}

loop = asyncio.get_running_loop()
error = RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")
context = {{"message": "Fatal error on SSL protocol", "exception": error, "transport": Closed(), "protocol": None}}
loop.call_exception_handler(context)
"""


@pytest.mark.slow
@pytest.mark.parametrize("closed", [True, False])
def test_bytes_for_a_connection_that_is_closed_are_no_error(tmp_path: Path, closed: bool) -> None:
    """uvloop reports them as a fatal error with a traceback; what fails on an open connection is one."""
    with process(tmp_path, LATE_BYTES.format(closed=closed)) as running:
        _, errors = running.communicate(timeout=60)
    assert ("Fatal error on SSL protocol" in errors) == (not closed)
    assert running.returncode == 0
