"""``mirror logs`` of several Jobs and pods: order, prefixes, colours, what one that fails does to the others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from user_fleet import JOBS, UserFleet, has, user_fleet

from mirror.cli.main import main
from mirror.cli.user.log_output import Output, title_of
from mirror.cli.user.log_targets import Target

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

COMMAND = (sys.executable, "-c", "from mirror.cli.main import main; main()")
TWELVE = "for i in $(seq 12); do echo line $i; done"


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory, required_program: Callable[..., Path]) -> Iterator[UserFleet]:
    """Two finished Jobs of the same label, the first of two pods; one that fails; one that waits for a worker."""
    for program in ("sleep", "seq"):
        required_program(program)
    with user_fleet(tmp_path_factory.mktemp("fleet")) as found:
        labels = {"app": "train"}
        east = {"jobmirror.io/worker-selector": "name=east"}
        indexed = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
        found.create("first", TWELVE, labels=labels, annotations=east, **indexed)
        found.create("second", "echo two", labels=labels, annotations=east)
        found.create("fails", "echo broken; exit 3")
        found.create("waits", "echo", annotations={"jobmirror.io/worker-selector": "region=mars"}, labels={"app": "no"})
        for name in ("first", "second"):
            found.wait(name, has("Complete"))
        found.wait("fails", has("Failed"))
        found.wait("waits", lambda job: "jobmirror.io/waiting-because" in job["metadata"]["annotations"])
        yield found


def mirror(planes: UserFleet, *arguments: str) -> Result:
    """One command, in this process."""
    environment = {"KUBECONFIG": planes.kubeconfig("ann"), "MIRROR_SERVER": None, "MIRROR_TOKEN": None}
    return CliRunner().invoke(main, ["logs", *arguments], env=environment)


def by_pod(text: str) -> dict[str, list[str]]:
    """Lines without their prefix, by the Job in it; pods of one Job together."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        said = re.fullmatch(r"\[pod/(\w+)(?:-\d)?-\w{5}/main\] (.*)", line)
        assert said is not None, line
        found.setdefault(said[1], []).append(said[2])
    return found


@pytest.mark.parametrize("by", [[], ["--worker-context", "east"]], ids=["by the manager", "on the worker"])
def test_labels_choose_all_pods_of_their_jobs(planes: UserFleet, by: list[str]) -> None:
    """The last ten lines of each, as kubectl does, each line with its pod; ``--tail`` says otherwise."""
    last = [f"line {number}" for number in range(3, 13)]
    done = mirror(planes, "-l", "app=train", *by)
    assert (done.exit_code, by_pod(done.stdout)) == (0, {"first": last * 2, "second": ["two"]}), done.stderr
    assert len(by_pod(mirror(planes, "-l", "app=train", "--tail", "-1", *by).stdout)["first"]) == 24
    assert by_pod(mirror(planes, "-l", "app=train", "--index", "1", "--tail", "1").stdout)["first"] == ["line 12"]


def test_several_jobs_are_printed_in_their_order(planes: UserFleet) -> None:
    """One pod of each, unless all are wanted."""
    done = mirror(planes, "second", "first", "--index", "0", "--tail", "1", "--no-prefix")

    assert done.exit_code == 1
    assert done.stdout == "line 12\n"
    assert "Job second: the Job has no pod with index 0" in done.stderr
    assert mirror(planes, "second", "first", "--tail", "1", "--no-prefix").stdout == "two\nline 12\n"


def test_one_job_that_fails_does_not_end_the_others(planes: UserFleet) -> None:
    """What can be read is read; stderr says what is wrong with which, and the exit code that something is."""
    done = mirror(planes, "waits", "nothing", "second")

    assert (done.exit_code, by_pod(done.stdout)) == (1, {"second": ["two"]})
    assert "Job waits: the Job has no worker yet" in done.stderr
    assert 'Job nothing: jobs.batch "nothing" not found' in done.stderr
    assert done.stderr.endswith("Error: 2 of the logs could not be read, see above\n")


def test_one_log_that_fails_does_not_end_the_others(planes: UserFleet) -> None:
    """No container has had an instance before: each says so by itself."""
    done = mirror(planes, "first", "--all-pods", "--previous")

    assert (done.exit_code, done.stdout) == (1, "")
    assert len(re.findall(r"^pod/first-\d-\w{5}/main: .*previous", done.stderr, re.MULTILINE)) == 2
    assert "Error: 2 of the logs" in done.stderr


@pytest.mark.parametrize("by", [[], ["--worker-context", "east"]], ids=["by the manager", "on the worker"])
def test_the_instance_before_has_a_log_of_its_own(planes: UserFleet, tmp_path: Path, by: list[str]) -> None:
    """Of a container that has failed and was started again in its pod."""
    name, ran = f"again{len(by)}", tmp_path / "ran"
    command = f"if [ -e {ran} ]; then echo second; else : > {ran}; echo first; exit 1; fi"
    east = {"jobmirror.io/worker-selector": "name=east"}
    planes.create(name, command, annotations=east, restart_policy="OnFailure", backoffLimit=3)
    planes.wait(name, has("Complete"))

    assert [mirror(planes, name, *more, *by).stdout for more in (("--previous",), ("-p",), ())] == [
        "first\n",
        "first\n",
        "second\n",
    ]


@pytest.mark.parametrize("by", [[], ["--worker-context", "east"]], ids=["by the manager", "on the worker"])
def test_lines_that_are_too_old_are_left_out(planes: UserFleet, by: list[str]) -> None:
    """By the worker's clock: they were written in the last hour, and soon not in the last second."""
    deadline = time.monotonic() + 60
    while mirror(planes, "second", "--since", "1s", *by).stdout and time.monotonic() < deadline:
        pass

    said = [mirror(planes, "second", "--since", since, *by) for since in ("1s", "1h")]
    assert [(one.exit_code, one.stdout) for one in said] == [(0, ""), (0, "two\n")]


def test_labels_of_nothing_are_no_failure(planes: UserFleet) -> None:
    """As for kubectl."""
    done = mirror(planes, "-l", "app=other")

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "No mirrored Jobs found with labels app=other in namespace team-a.\n"


def test_several_jobs_are_followed_together(planes: UserFleet) -> None:
    """Whole lines with their pods; it ends with the last container."""
    for name in ("one", "two"):
        planes.create(f"follow{name}", f"for i in 1 2 3; do echo {name} $i; sleep 0.1; done", labels={"app": "follow"})
    environment = {**os.environ, "KUBECONFIG": planes.kubeconfig("ann")}
    command = [*COMMAND, "logs", "-f", "-l", "app=follow"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    wanted = {f"follow{name}": [f"{name} {number}" for number in (1, 2, 3)] for name in ("one", "two")}
    assert by_pod(done.stdout) == wanted


def test_a_pod_that_has_no_node_is_said_to_have_none(planes: UserFleet) -> None:
    """Its log is empty and ends at once: who follows waits for a node instead, and learns of it once."""
    planes.create("nowhere", "echo", node_selector={"disk": "none"})
    planes.wait("nowhere", lambda job: job["status"].get("active"))
    done = mirror(planes, "nowhere")
    assert (done.exit_code, done.stdout) == (0, "")
    assert re.fullmatch(r"pod nowhere-\w{5} has not started; mirror explain nowhere says why\n", done.stderr)

    environment = {**os.environ, "KUBECONFIG": planes.kubeconfig("ann")}
    command = [*COMMAND, "logs", "-f", "nowhere"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as running:
        try:
            assert running.stderr is not None
            assert "it is not scheduled yet; waiting (Ctrl-C to stop)" in running.stderr.readline()
            planes.do(lambda: planes.fleet.management.plane.api.delete(f"{JOBS}/nowhere"))
            assert running.wait(60) == 1
            assert running.stderr.read().startswith("Error: ")
        finally:
            running.kill()


def test_too_many_to_follow_are_refused_before_anything_is_printed(planes: UserFleet) -> None:
    """The manager gives nobody more."""
    done = mirror(planes, "-f", *(f"job-{number}" for number in range(9)))

    assert (done.exit_code, done.stdout) == (1, "")
    assert "9 Jobs are too many to follow (8 at most)" in done.stderr


def test_more_logs_than_the_manager_gives_at_once_are_all_read(planes: UserFleet) -> None:
    """Few at a time, in order."""
    planes.create("many", "echo $JOB_COMPLETION_INDEX", completions=20, parallelism=20, completionMode="Indexed")
    planes.wait("many", has("Complete"))

    done = mirror(planes, "many", "--all-pods", "--no-prefix")

    assert (done.exit_code, done.stdout.split()) == (0, [str(number) for number in range(20)]), done.stderr


def test_a_terminal_gets_a_colour_for_each_pod(planes: UserFleet) -> None:
    """Of the prefix only; none with NO_COLOR, and none in a pipe."""
    for variable, is_coloured in ((), True), (("NO_COLOR", "1"), False), (("TERM", "dumb"), False):
        ours, theirs = os.openpty()
        environment = {**os.environ, "KUBECONFIG": planes.kubeconfig("ann"), "TERM": "xterm"}
        environment.pop("NO_COLOR", None)
        environment |= dict([variable]) if variable else {}
        command = [*COMMAND, "logs", "first", "--all-pods", "--tail", "1"]
        with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=environment) as running:
            os.close(theirs)
            shown = b""
            while shown.count(b"line 12") < 2:
                shown += os.read(ours, 65_536)
            assert running.wait(30) == 0
        os.close(ours)
        assert len(set(re.findall(rb"\x1b\[(\d+)m\[pod/first", shown))) == (2 if is_coloured else 0), shown
        assert b"line 12" in shown


def test_colours_are_kept_by_pod_and_start_anew_when_all_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers of one pod share theirs; a worker's names are cleaned."""
    monkeypatch.setattr("mirror.cli.user.log_output.wants_colors", lambda **_: True)
    output = Output(with_prefix=True, is_alone=False)
    prefixes = [output._prefix(Target(f"pod-{number}", container)) for number in range(11) for container in "ab"]

    codes = [text.partition("m")[0] for text in prefixes]
    assert codes[0::2] == codes[1::2]
    assert (len(set(codes)), codes[0]) == (10, codes[20])
    assert title_of(Target("a\x1b[2Jb", "")) == "pod/a\\x1b[2Jb"
