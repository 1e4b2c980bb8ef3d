"""The commands for users, over HTTPS, by users with few rights, against embedded clusters and a whole manager."""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from user_fleet import JOBS, NAMESPACE, UserFleet, has, user_fleet

from mirror.cli.main import main

pytestmark = pytest.mark.timeout(300)

# Tests may run where Ctrl-C is ignored, as it is in the background of a shell; a user's terminal does not ignore it.
_LISTENS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
COMMAND = (sys.executable, "-c", f"{_LISTENS}; from mirror.cli.main import main; main()")
LINES = "echo one; echo two; echo three"


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory, required_program: Callable[..., Path]) -> Iterator[UserFleet]:
    """Everything, with a finished Job ``done`` of two pods, one that waits, one that runs until it is deleted."""
    for program in ("sleep", "seq"):
        required_program(program)
    with user_fleet(tmp_path_factory.mktemp("fleet")) as found:
        found.create("done", LINES, completions=2, parallelism=2, completionMode="Indexed")
        found.create("waits", LINES, annotations={"jobmirror.io/worker-selector": "region=mars"})
        found.create("runs", "echo begun; sleep 600", annotations={"jobmirror.io/worker-selector": "name=west"})
        found.wait("done", has("Complete"))
        found.wait("waits", lambda job: "jobmirror.io/waiting-because" in job["metadata"]["annotations"])
        found.wait("runs", lambda job: job["status"].get("ready"))
        yield found


def mirror(planes: UserFleet, *arguments: str, user: str = "ann", text: str | None = None) -> Result:
    """One command, in this process."""
    environment = {"KUBECONFIG": planes.kubeconfig(user), "MIRROR_SERVER": None, "MIRROR_TOKEN": None}
    return CliRunner().invoke(main, arguments, env=environment, input=text)


def told(planes: UserFleet, *arguments: str, user: str = "ann") -> str:
    """What a command prints that goes well."""
    result = mirror(planes, *arguments, user=user)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def refused(planes: UserFleet, *arguments: str, user: str = "ann", code: int = 1) -> str:
    """What a command says that fails."""
    result = mirror(planes, *arguments, user=user)
    assert result.exit_code == code, result.output + repr(result.exception)
    assert result.stdout == ""
    return result.stderr


def rows(text: str) -> dict[str, list[str]]:
    """A table's rows by their first cell."""
    return {line.split()[0]: line.split() for line in text.splitlines()[1:]}


# -- get ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("user", ["ann", "bob"])
def test_get_needs_no_right_but_to_list_jobs(planes: UserFleet, user: str) -> None:
    """Worker, state, completions, and why one waits."""
    found = rows(told(planes, "get", user=user))

    assert found["done"][1:4] in (["east", "Complete", "2/2"], ["west", "Complete", "2/2"])
    assert found["runs"][1:4] == ["west", "Running", "0/1"]
    assert found["waits"][1:4] == ["-", "Waiting", "0/1"]
    assert found["waits"][-3:] == ["(no", "label", "region)"]


@pytest.mark.slow
def test_get_says_which_right_is_missing(planes: UserFleet) -> None:
    """The verb, the resource, the namespace, and where."""
    text = refused(planes, "get", user="eve")

    assert f"missing permission: list jobs.batch in namespace {NAMESPACE} on the management cluster; a Role" in text
    assert "in all namespaces" in refused(planes, "get", "-A", user="bob")


def test_get_gives_machines_what_they_want(planes: UserFleet) -> None:
    """JSON, YAML and names tell the same Jobs."""
    items = json.loads(told(planes, "get", "-o", "json"))["items"]

    assert [item["name"] for item in items] == sorted(planes.names)
    assert yaml.safe_load(told(planes, "get", "-o", "yaml"))["items"] == items
    assert told(planes, "get", "-o", "name").split() == [f"job.batch/{name}" for name in sorted(planes.names)]


def test_get_of_names_tells_those_and_misses_others(planes: UserFleet) -> None:
    """What is there is shown, and the exit code says that something is not."""
    result = mirror(planes, "get", "done", "nothing")

    assert (result.exit_code, list(rows(result.stdout))) == (1, ["done"])
    assert result.stderr == f"Error: jobs.batch nothing not found in namespace {NAMESPACE}\n"


def test_get_knows_how_far_behind_a_job_is_by_the_manager(planes: UserFleet) -> None:
    """Nothing is outstanding; and no manager is no reason to fail."""
    [item] = json.loads(told(planes, "get", "runs", "-o", "json"))["items"]

    assert item["lagSeconds"] is None
    assert "runs" in told(planes, "get", "--server", "https://127.0.0.1:9")


@pytest.mark.slow
def test_get_watches_until_it_is_interrupted(planes: UserFleet) -> None:
    """Lines where there is no terminal: all Jobs first, then each change; Ctrl-C says nothing and ends with 130."""
    environment = {**os.environ, "KUBECONFIG": planes.kubeconfig("bob")}
    command = [*COMMAND, "get", "-w", "-o", "json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as running:
        try:
            assert running.stdout is not None
            first = {json.loads(running.stdout.readline())["name"] for _ in planes.names}
            assert first == set(planes.names)
            planes.create("later", "exit 0")
            states: list[str] = []
            while "Complete" not in states:
                item = json.loads(running.stdout.readline())
                states += [item["state"]] if item["name"] == "later" else []
            assert states[0] == "Waiting"
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=120)
            assert (running.returncode, errors) == (130, "")
        finally:
            running.kill()


@pytest.mark.slow
def test_a_terminal_gets_a_table_that_lives(planes: UserFleet) -> None:
    """It is drawn again by itself, and leaves the terminal as it was."""
    ours, theirs = os.openpty()
    environment = {
        **os.environ,
        "KUBECONFIG": planes.kubeconfig("bob"),
        "TERM": "xterm",
        "COLUMNS": "120",
        "LINES": "30",
    }
    with subprocess.Popen([*COMMAND, "get", "-w"], stdout=theirs, stderr=subprocess.PIPE, env=environment) as running:
        os.close(theirs)
        try:
            shown = b""
            while shown.count(b"waits") < 3:
                shown += os.read(ours, 65_536)
            assert b"\x1b[?25l" in shown
            running.send_signal(signal.SIGINT)
            while b"\x1b[?25h" not in shown:
                shown += os.read(ours, 65_536)
            assert running.stderr is not None
            assert (running.stderr.read(), running.wait(15)) == (b"", 130)
        finally:
            running.kill()
            os.close(ours)


# -- explain -----------------------------------------------------------------------------------------------------------


def test_explain_tells_a_whole_story(planes: UserFleet) -> None:
    """Created, placed, mirrored, finished, in this order, and where."""
    [story] = json.loads(told(planes, "explain", "done", "-o", "json"))["items"]
    kinds = [moment["kind"] for moment in story["timeline"]]

    assert [kind for kind in kinds if kind in ("Created", "Placed", "Mirrored", "Finished")] == [
        "Created",
        "Placed",
        "Mirrored",
        "Finished",
    ]
    assert story["job"]["state"] == "Complete"
    assert story["notes"] == []


def test_explain_says_what_each_worker_lacks(planes: UserFleet) -> None:
    """By the manager, and for who may read nothing but the Job by its annotation."""
    for user in ("ann", "bob"):
        [story] = json.loads(told(planes, "explain", "waits", "-o", "json", user=user))["items"]
        assert set(story["obstacles"]) - {""} == {"east", "west"}, story
        assert story["job"]["state"] == "Waiting"
    assert "WORKER   NOT PLACED BECAUSE\n" in told(planes, "explain", "waits")


def test_explain_without_events_and_without_a_manager_still_tells(planes: UserFleet) -> None:
    """What could not be asked is said at the end."""
    text = told(planes, "explain", "done", "--server", "https://127.0.0.1:9", user="bob")

    assert "Placed" in text
    assert "events are not included: missing permission: list events in namespace team-a on the management" in text
    assert "the manager's data is not included: the manager is unreachable" in text


@pytest.mark.slow
def test_explain_says_what_is_wrong_with_the_pods(planes: UserFleet) -> None:
    """Looked at as the user; who may not list pods is told so, and the rest comes."""
    planes.create("stuck", LINES, node_selector={"disk": "none"})
    planes.wait("stuck", lambda job: job["status"].get("active"))
    planes.create("breaks", "exit 3")
    planes.wait("breaks", has("Failed"))

    def found(name: str) -> list[tuple[str, str]]:
        [story] = json.loads(told(planes, "explain", name, "-o", "json"))["items"]
        assert story["notes"] == []
        return [(one["reason"], one["message"]) for one in story["pods"]]

    assert wait_until(lambda: found("stuck"))[0][0] == "Unschedulable"
    assert found("breaks") == [("PodsFailing", "container main: exit code 3")]
    assert found("done") == found("waits") == found("runs") == []
    assert "POD " in told(planes, "explain", "stuck")
    [story] = json.loads(told(planes, "explain", "stuck", "-o", "json", user="bob"))["items"]
    assert story["pods"] == []
    (note,) = [note for note in story["notes"] if "pods are not included" in note]
    assert "user bob cannot list pods in namespace team-a" in note


def wait_until(look: Callable[[], list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """What a command says once it says something; each takes its time."""
    return next(filter(None, (look() for _ in range(100))), [])


def test_explain_of_nothing_says_so(planes: UserFleet) -> None:
    """A name that does not exist."""
    assert "jobs.batch nothing not found in namespace team-a on the management cluster" in refused(
        planes, "explain", "nothing"
    )


# -- pods, events, logs ------------------------------------------------------------------------------------------------


def way(planes: UserFleet, name: str) -> list[list[str]]:
    """Both ways to a mirror: by the manager, and directly."""
    worker = planes.wait(name, has("jobmirror.io/Placed"))["metadata"]["annotations"]["jobmirror.io/assigned-worker"]
    return [[], ["--worker-context", worker]]


def test_pods_are_those_of_the_mirror(planes: UserFleet) -> None:
    """The same by the manager and by the worker, in the order of their indexes."""
    found = [json.loads(told(planes, "pods", "done", "-o", "json", *by))["items"] for by in way(planes, "done")]

    assert found[0] == found[1]
    assert [(pod["index"], pod["phase"]) for pod in found[0]] == [("0", "Succeeded"), ("1", "Succeeded")]
    assert [line.split()[1] for line in told(planes, "pods", "done").splitlines()] == ["INDEX", "0", "1"]


def test_events_are_the_workers(planes: UserFleet) -> None:
    """Of the mirror and of its pods."""
    for by in way(planes, "done"):
        reasons = {event["reason"] for event in json.loads(told(planes, "events", "done", "-o", "json", *by))["items"]}
        assert {"SuccessfulCreate", "Started", "Completed"} <= reasons


@pytest.mark.slow
def test_logs_are_what_the_container_wrote(planes: UserFleet) -> None:
    """Of one pod unless all are wanted; by index; the last lines; with times and prefixes."""
    for by in way(planes, "done"):
        assert told(planes, "logs", "done", "--index", "0", *by) == "one\ntwo\nthree\n"
        assert told(planes, "logs", "done", "--index", "1", "--tail", "1", *by) == "three\n"
        assert told(planes, "logs", "done", "--all-pods", "--no-prefix", *by) == "one\ntwo\nthree\n" * 2
        stamped = told(planes, "logs", "done", "--index", "0", "--timestamps", "--tail", "1", *by)
        assert stamped.endswith("Z three\n")
        assert stamped.startswith("20")
        prefixed = told(planes, "logs", "done", "--all-pods", "--all-containers", "--since", "1h", *by)
        assert all(line.startswith("[pod/done-") and "/main] " in line for line in prefixed.splitlines())


def test_logs_of_several_pods_say_which_was_taken(planes: UserFleet) -> None:
    """On stderr, so that a pipe gets the log alone."""
    result = mirror(planes, "logs", "done")

    assert (result.exit_code, result.stdout) == (0, "one\ntwo\nthree\n")
    assert result.stderr.startswith("2 pods, showing done-")


def test_logs_need_no_right_to_list_pods(planes: UserFleet) -> None:
    """``get pods/log`` is what kubectl asks for, too."""
    rules = [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ]
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
    api = planes.fleet.management.plane.api
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "logs-only"}
    planes.do(lambda: api.create(f"{path}/roles", {"metadata": {"name": "logs-only"}, "rules": rules}))
    binding = {"metadata": {"name": "logs-only"}, "roleRef": role, "subjects": subjects}
    planes.do(lambda: api.create(f"{path}/rolebindings", binding))
    try:
        assert told(planes, "logs", "done", "--index", "1", user="eve") == "one\ntwo\nthree\n"
        assert "cannot list pods" in refused(planes, "logs", "done", "--all-pods", user="eve")
    finally:
        planes.do(lambda: api.delete(f"{path}/rolebindings/logs-only"))


@pytest.mark.slow
def test_a_log_is_followed_to_the_end_of_the_container(planes: UserFleet) -> None:
    """Also of a Job that has no pod yet."""
    planes.create("talks", "for i in 1 2 3; do echo $i; sleep 0.2; done")
    environment = {**os.environ, "KUBECONFIG": planes.kubeconfig("ann")}
    planes.wait("talks", has("jobmirror.io/Placed"))
    done = subprocess.run(
        [*COMMAND, "logs", "-f", "talks"], capture_output=True, text=True, env=environment, timeout=120, check=False
    )

    assert (done.returncode, done.stdout) == (0, "1\n2\n3\n"), done.stderr


@pytest.mark.slow
def test_who_follows_waits_for_a_worker(planes: UserFleet) -> None:
    """What it waits for is said once, on stderr; then the log comes."""
    planes.create("late", "echo at last", annotations={"jobmirror.io/worker-selector": "region=mars"})
    environment = {**os.environ, "KUBECONFIG": planes.kubeconfig("ann")}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*COMMAND, "logs", "-f", "late"], stdout=pipe, stderr=pipe, text=True, env=environment
    ) as one:
        try:
            assert one.stderr is not None
            assert "the Job has no worker yet" in one.stderr.readline()
            annotation = {"metadata": {"annotations": {"jobmirror.io/worker-selector": "name=east"}}}
            planes.do(lambda: planes.fleet.management.plane.api.merge(f"{JOBS}/late", annotation))
            output, _ = one.communicate(timeout=120)
            assert (one.returncode, output) == (0, "at last\n")
        finally:
            one.kill()


@pytest.mark.slow
def test_following_ends_by_ctrl_c_without_a_word(planes: UserFleet) -> None:
    """Exit code 130, as shells have it."""
    environment = {**os.environ, "KUBECONFIG": planes.kubeconfig("ann")}
    pipe = subprocess.PIPE
    command = [*COMMAND, "logs", "-f", "runs"]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "begun\n"
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=120)
            assert (running.returncode, errors) == (130, "")
        finally:
            running.kill()


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        (["logs", "done"], "get pods/log"),
        (["pods", "done"], "list pods"),
        (["events", "done"], "list events"),
    ],
    ids=lambda found: found[0] if isinstance(found, list) else "",
)
def test_a_missing_right_is_said_plainly(planes: UserFleet, arguments: list[str], right: str) -> None:
    """Bob may read Jobs and nothing of their pods."""
    text = refused(planes, *arguments, user="bob")

    assert f"user bob cannot {right} in namespace team-a of the management cluster" in text


def test_a_job_without_a_worker_has_no_log_and_says_why(planes: UserFleet) -> None:
    """It waits; nothing has run."""
    assert "the Job has no worker yet: " in refused(planes, "logs", "waits")


def test_a_container_that_is_not_there_is_named(planes: UserFleet) -> None:
    """With those that are."""
    assert "has no container sidecar; its containers: main" in refused(planes, "logs", "runs", "-c", "sidecar")
    assert "the Job has no pod with index 7" in refused(planes, "logs", "done", "--index", "7")


def test_the_wrong_worker_is_told_from_the_right_one(planes: UserFleet) -> None:
    """``runs`` is on west."""
    text = refused(planes, "pods", "runs", "--worker-context", "east")

    assert "it is placed on west; check that --worker-context is that worker" in text


# -- who we are --------------------------------------------------------------------------------------------------------


def test_a_token_of_nobody_is_refused_in_words(planes: UserFleet) -> None:
    """It says whose refusal it is."""
    assert "the manager rejected your token (401)" in refused(planes, "pods", "done", "--token", "nobodys")


def test_a_token_is_sent_to_nobody_without_the_right_certificate(planes: UserFleet) -> None:
    """Neither over HTTP, nor to a server that another authority vouches for."""
    other = yaml.safe_load(planes.fleet.workers["east"].kubeconfig)["clusters"][0]["cluster"]
    ca = planes.folder / "other.pem"
    ca.write_bytes(base64.b64decode(other["certificate-authority-data"]))

    text = refused(planes, "pods", "done", "--server", "http://x", code=2)
    assert "is not an https:// URL: the token is not sent" in text
    text = refused(planes, "pods", "done", "--server", planes.url, "--server-ca", str(ca))
    assert "the manager is unreachable" in text
    assert "certificate signed by unknown authority" in text


def test_a_port_forward_to_the_manager_works(planes: UserFleet) -> None:
    """Its certificate is that of the Service, whatever host of this machine is dialled."""
    server = planes.url.replace("127.0.0.1", "localhost")

    assert told(planes, "pods", "done", "-o", "name", "--server", server).startswith("pod/done-0-")


def test_no_manager_is_no_puzzle(planes: UserFleet) -> None:
    """It says what would have to be set, and what else helps."""
    text = refused(planes, "logs", "done", "--manager-namespace", "default")

    assert "access endpoint not readable: missing permission: get configmaps jobmirror-access in namespace d" in text
    assert "not enabled" not in text
    missing = refused(planes, "logs", "done", "--manager-namespace", "default", user="admin")
    assert "access is not enabled: ConfigMap jobmirror-access in namespace default not found" in missing
    for name, notes in ("runs", 1), ("done", 0), ("waits", 0):
        typed = ("explain", name, "-o", "json", "--manager-namespace", "default")
        [story] = json.loads(told(planes, *typed, user="admin"))["items"]
        assert [note[:42] for note in story["notes"]] == ["pods are not included: access is not enabl"] * notes
    assert "--server URL" in text
    assert "--worker-context" in text


# -- diff --------------------------------------------------------------------------------------------------------------

MANIFEST = """
apiVersion: batch/v1
kind: Job
metadata: {name: new, annotations: {jobmirror.io/worker-selector: region=mars}}
spec:
  managedBy: jobmirror.io/controller
  ttlSecondsAfterFinished: 60
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: robot
      containers: [{name: main, image: x, envFrom: [{secretRef: {name: keys}}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
"""


def test_diff_tells_what_differs_and_why(planes: UserFleet) -> None:
    """By the manager and directly: managedBy is stripped, notes are left out of the short table."""
    for by in way(planes, "done"):
        text = told(planes, "diff", "done", *by)
        assert rows(text)["spec.managedBy"][1:4] == ['"jobmirror.io/controller"', "-", "stripped:"]
        assert "controller-uid" not in text
        assert "controller-uid" in told(planes, "diff", "done", "-o", "wide", *by)


@pytest.mark.parametrize("server", [True, False], ids=["by the manager", "by default settings"])
def test_diff_warns_before_a_job_is_created(planes: UserFleet, tmp_path: Path, server: bool) -> None:
    """What it asks for and is not copied; what no worker would take is known to the manager only."""
    file = tmp_path / "job.yaml"
    file.write_text(MANIFEST)
    where = [] if server else ["--manager-namespace", "default"]

    [found] = json.loads(told(planes, "diff", "-f", str(file), "-o", "json", *where))["items"]

    texts = " ".join(caution["text"] for caution in found["report"]["cautions"])
    assert "ServiceAccount robot is not copied" in texts
    assert "Secret keys is not copied" in texts
    assert set(found["obstacles"]) - {""} == ({"east", "west"} if server else set())
    assert bool(found["note"]) is not server


def test_diff_reads_stdin_and_says_where_it_is_wrong(planes: UserFleet) -> None:
    """As kubectl does with ``-f -``."""
    assert "REQUIRED ON WORKER" in mirror(planes, "diff", "-f", "-", text=MANIFEST).stdout
    assert mirror(planes, "diff", "-f", "-", text="a: b: c").stderr == "Error: -f stdin: not YAML (line 1)\n"
    assert (
        mirror(planes, "diff", "-f", "-", text="kind: Pod").stderr == "Error: -f stdin: contains no Job, but kind Pod\n"
    )


def test_place_explains_every_filter_and_score(planes: UserFleet, tmp_path: Path) -> None:
    """For each worker, by the manager's own functions; nothing is created."""
    file = tmp_path / "jobs.yaml"
    file.write_text(MANIFEST + "---\n" + MANIFEST.replace("region=mars", "name=east").replace("new,", "pinned,"))
    text = told(planes, "place", "--dry-run", "-f", str(file))
    nowhere, somewhere = text.split("Job team-a/pinned ")
    assert nowhere.startswith(
        "Job team-a/new would wait (NoMatchingWorker)\nno worker matches worker-selector region=mars"
    )
    assert somewhere.startswith("would be placed on east\n\n")
    table = rows(somewhere.split("\n", 2)[2])
    assert somewhere.splitlines()[2].split() == ["RANK", "WORKER", "LOAD", "TOTAL", "FILTERS"]
    assert table["1"][1] == "east"
    assert " ".join(table["1"][4:]) == "all 9 passed"
    assert "worker-selector: labels do not match worker-selector" in " ".join(table["-"])
    assert "new" not in told(planes, "get", "-o", "name")


def test_place_as_json_says_the_same(planes: UserFleet, tmp_path: Path) -> None:
    """With what the Job asks for."""
    file = tmp_path / "job.yaml"
    asked = "jobmirror.io/worker-order: 'west,e*', jobmirror.io/spread-by: name"
    file.write_text(MANIFEST.replace("jobmirror.io/worker-selector: region=mars", asked))
    [found] = json.loads(told(planes, "place", "--dry-run", "-f", str(file), "-o", "json"))["items"]
    assert (found["kind"], found["namespace"], found["name"]) == ("Job", "team-a", "new")
    choice = found["choice"]
    assert (choice["worker"], choice["order"], choice["spreadBy"]) == ("west", ["west", "e*"], "name")
    assert [(one["worker"], one["rank"], one["order"], one["spread"]) for one in choice["workers"]] == [
        ("west", 1, 1, 0),
        ("east", 2, 2, 0),
    ]
    assert [one["name"] for one in choice["workers"][0]["filters"]] == [
        "worker-selector",
        "namespaces",
        "kinds",
        "kind-fields",
        "configuration",
        "refusals",
        "cordoned",
        "reachable",
        "capacity",
    ]
    assert choice["workers"][0]["scores"][0]["name"] == "load"


def test_place_needs_the_right_to_create(planes: UserFleet) -> None:
    """As ``diff -f`` does; it says what is wrong with an annotation."""
    assert "create" in mirror(planes, "place", "--dry-run", "-f", "-", user="bob", text=MANIFEST).stderr
    bad = MANIFEST.replace("worker-selector: region=mars", "priority: high")
    assert "would wait (InvalidAnnotation)" in mirror(planes, "place", "--dry-run", "-f", "-", text=bad).stdout


# -- all of them -------------------------------------------------------------------------------------------------------

WRONG: list[list[str]] = [
    ["get", "-A", "done"],
    ["get", "-o", "xml"],
    ["logs"],
    ["logs", "done", "--since", "yesterday"],
    ["logs", "done", "--pod", "x", "--index", "1"],
    ["logs", "done", "-c", "a", "--all-containers"],
    ["logs", "done", "-l", "app=a"],
    ["logs", "-l", "app in a"],
    ["logs", "done", "other", "--pod", "x"],
    ["diff"],
    ["diff", "done", "-f", "x"],
    ["place", "-f", "x"],
    ["place", "--dry-run"],
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage_ends_with_two(arguments: list[str]) -> None:
    """Before anybody is asked."""
    assert CliRunner().invoke(main, arguments).exit_code == 2


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_failure(planes: UserFleet) -> None:
    """``| head -1`` ends the command without a word."""
    planes.create("long", "for i in $(seq 20000); do echo a line of some length, number $i; done")
    planes.wait("long", has("Complete"))
    environment = {**os.environ, "KUBECONFIG": planes.kubeconfig("ann")}
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, "logs", "long"], stdout=pipe, stderr=pipe, env=environment) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert isinstance(running.stdout, io.BufferedReader)
        running.stdout.readline()
        running.stdout.close()
        assert (running.stderr.read(), running.wait(20)) == (b"", 0)


@pytest.mark.slow
def test_shells_are_offered_jobs_and_contexts(planes: UserFleet) -> None:
    """``mirror logs d<TAB>``, as kubectl asks for it; who may list nothing is offered nothing."""

    def offered(*arguments: str, user: str = "ann") -> list[str]:
        environment: dict[str, Any] = {**os.environ, "KUBECONFIG": planes.kubeconfig(user)}
        command = [sys.executable, "-c", "from mirror.cli.main import kubectl_complete; kubectl_complete()", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.split("\n")[
            :-1
        ]

    assert offered("logs", "don") == ["done", ":4"]
    assert offered("logs", "don", user="eve") == [":4"]
    assert offered("get", "--context", "e") == ["east", ":4"]
