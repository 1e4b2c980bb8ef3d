"""Wrong invocations of every command: what is wrong, with which argument, and what to do, in one or two lines.

Exit code 2 for invalid usage, 1 for what is not there or may not be done; nothing on stdout, no traceback, no name of a
class. Those that need a cluster are played on an embedded one with RBAC.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from user_fleet import NAMESPACE, UserFleet, user_fleet

from mirror.cli.main import main

FILES = {
    "bad.yaml": "a: [",
    "service.yaml": "kind: Service",
    "empty.yaml": "",
    "list.yaml": "[]",
    "text.yaml": "hello",
    "broken.yaml": "{apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: 7}",
    "beta.yaml": "{apiVersion: batch/v1beta1, kind: Job, metadata: {name: train}}",
    "cron.yaml": "{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: train}, spec: {schedule: '* * * * *'}}",
    "unversioned.yaml": "{kind: Job, metadata: {name: train}, spec: {template: {spec: {}}}}",
    "other.yaml": "{apiVersion: apps/v1, kind: Job, metadata: {name: train}}",
    "nokind.yaml": "{apiVersion: batch/v1, metadata: {name: train}}",
    "job.yaml": "{apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: {template: {spec: {}}}}",
    "settings.yaml": "{kubeconfig: nosuch}",
    "unset.yaml": "{}",
    "wrong.yaml": "{manegedBy: x}",
    "no-context.yaml": "{apiVersion: v1, kind: Config}",
    "config": """
apiVersion: v1
kind: Config
current-context: hub
contexts:
- {name: hub, context: {cluster: hub, user: me}}
- {name: dns, context: {cluster: dns, user: me}}
- {name: nobody, context: {cluster: hub, user: nobody}}
- {name: nowhere, context: {cluster: none, user: me}}
clusters:
- {name: hub, cluster: {server: "https://127.0.0.1:9"}}
- {name: dns, cluster: {server: "https://no-such-host.invalid:6443"}}
users:
- {name: me, user: {token: x}}
""",
}
ADD = "worker add east --context hub"

USAGE = {
    # Commands and options.
    "gte": "No such command 'gte'. Did you mean 'get'?",
    "worker": "Missing command: one of add, check",
    "worker lsit": "No such command 'lsit'. Did you mean 'list'?",
    "get --namespcae x": "No such option '--namespcae'.",
    "take-over": "Missing argument 'NAMESPACE'.",
    "take-over Old": "Invalid value for 'NAMESPACE': 'Old' is not a namespace name",
    "take-over jobmirror-system": "NAMESPACE and --namespace are both jobmirror-system",
    "get -x": "No such option '-x'.",
    "get -n": "Option '-n' requires an argument.",
    "get -o jsn": "'jsn' is not one of 'table', 'wide', 'json', 'yaml', 'name'. Did you mean 'json'?",
    "get --sort-by agee": "Did you mean 'age'?",
    "get --color purple": "Invalid value for '--color': 'purple'",
    "explain train -o wide": "'wide' is not one of 'table', 'json', 'yaml'.",
    "worker list -o xml": "'xml' is not one of",
    "completion tcsh": "'tcsh' is not one of 'bash', 'zsh', 'fish'.",
    "completion": "Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish",
    "apiserver --bogus": "No such option '--bogus'.",
    "job-controller --workers x": "No such option '--workers'.",
    "version x": "Got unexpected extra argument (x)",
    "dev x": "Got unexpected extra argument (x)",
    # Arguments that are missing, or too many.
    "explain": "Missing argument 'JOB'.",
    "explain a b": "unknown kind 'a'; known: jobs.batch",
    "explain a b c": "'a b c': write NAME, KIND/NAME or KIND NAME",
    "pods": "Missing argument 'JOB'.",
    "events": "Missing argument 'JOB'.",
    "logs": "specify JOB or -l SELECTOR",
    "diff": "specify JOB or -f FILE",
    "diff train -f job.yaml": "specify either JOB or -f FILE, not both",
    "diff -f job.yaml --worker-context x": "cannot be combined with -f",
    "worker add": "Missing argument 'NAME'.",
    "worker add east": "specify either --context or --from-secret",
    "worker add east --context hub --from-secret a/b": "specify either --context or --from-secret",
    "worker set": "Missing argument 'NAME'.",
    "worker set east": "nothing to set: give --capacity",
    "worker cordon": "Missing argument 'NAME'.",
    "worker forget": "Missing argument 'NAME'.",
    "worker forget east": "specify either --all-dead or --undo",
    "worker forget east --all-dead --undo": "specify either --all-dead or --undo",
    "worker remove": "Missing argument 'NAME'.",
    "worker remove east --clean-up": "--clean-up and --worker-context go together",
    "worker check --all east": "--all cannot be combined with names",
    "run": "Missing option '--config'.",
    "check-config": "Missing argument 'FILE'.",
    # Kinds, names, selectors, states.
    "get jbo/train": "unknown kind 'jbo'; known: jobs.batch. Did you mean 'job'?",
    "get -k jobz": "unknown kind 'jobz'; known: jobs.batch. Did you mean 'job'?",
    "get -A train": "-A cannot be combined with names",
    "get job/": "'job/': write NAME or KIND/NAME",
    "get job/a/b": "'job/a/b': write NAME or KIND/NAME",
    "get Train_1": "'Train_1' is not a valid name: use lower-case letters",
    "get train -l a=b": "-l cannot be combined with names",
    "get -l a=in=(": "--selector 'a=in=('",
    "get --state Runing": "--state 'Runing': expected one of Waiting, Suspended, .* Did you mean 'Running'?",
    "get -n Team_A": "'Team_A' is not a namespace name: use lower-case letters",
    "pods train --server ftp://x": "Invalid value for '--server': 'ftp://x' is not an https:// URL",
    # Numbers, durations, labels.
    "logs train --tail x": "Invalid value for '--tail': 'x' is not a whole number.",
    "logs train --index -1": "-1 is not in the range x>=0.",
    "logs train --since 5": "'5': a duration needs a unit, such as 5s",
    "logs train --since abc": "'abc': expected a duration like 15m",
    f"{ADD} --capacity x": "Invalid value for '--capacity': 'x' is not a whole number.",
    f"{ADD} --weight 0": "Invalid value for '--weight': 0.0 is not in the range x>0.",
    f"{ADD} --weight x": "'x' is not a number.",
    f"{ADD} --labels a": "Invalid value for --labels: a: expected KEY=VALUE",
    f"{ADD} --labels a=b/c": "Invalid value for --labels: a=b/c: a valid label must be",
    f"{ADD} --namespaces Team_A": "Invalid value for --namespaces: expected namespace names or globs",
    f"{ADD} --token-duration 5m": "no token for less than 10m",
    f"{ADD} --token-duration x": "'x': expected a duration like 15m",
    f"{ADD} --allow loopbak": "Invalid value for --allow: loopbak: expected one of .* Did you mean 'loopback'?",
    f"{ADD} --dependencies configmap": "Did you mean 'configmaps'?",
    f"{ADD} --scores quotas": "Invalid value for --scores: quotas: expected some of quota, .* Did you mean .quota.?",
    f"{ADD} --labels name=x": "Invalid value for --labels: name: is set by jobmirror itself",
    f"{ADD} --labels jobmirror.io/x=y": "jobmirror.io/x: is set by jobmirror itself",
    f"{ADD} --labels a=b,a=c": "Invalid value for --labels: a=c: a is b already",
    f"{ADD} --namespace-prefix A_": "Invalid value for --namespace-prefix: expected lower-case letters",
    f"{ADD} --weight nan": "Invalid value for --weight: expected a number above 0, got 'nan'",
    f"{ADD} --capacity 1.5": "Invalid value for '--capacity': '1.5' is not a whole number.",
    f"{ADD} --managed-by x": "Invalid value for '--managed-by': expected DOMAIN/PATH of at most 63 bytes, .*got \"x\"",
    "worker add management --context hub": "'management' means the management cluster everywhere; take another name",
    "worker check --managed-by kubernetes.io/job-controller": "belong to the built-in Job controller",
    "worker check -o table": "'table' is not one of 'text', 'json', 'yaml'.",
    "worker list east": "Got unexpected extra argument (east)",
    "worker list --namespace Team_A": "'Team_A' is not a namespace name",
    "worker drain east west": "Got unexpected extra argument (west)",
    "worker drain east --timeout -1s": "a duration has no sign",
    "worker uncordon East": "invalid worker name 'East'",
    "worker remove east --worker-context east": "--clean-up and --worker-context go together",
    "--verison": "No such option '--verison'. Did you mean '--version'?",
    "logs -l a=b train": "-l cannot be combined with names",
    "logs train --tail -5": "-5 is not in the range x>=-1.",
    "logs train --since -5m": "'-5m': a duration has no sign",
    "logs --all": "No such option '--all'.",
    "explain pod/train": "unknown kind 'pod'; known: jobs.batch",
    "place -f job.yaml": "only --dry-run is supported: create the Job to have it placed",
    "place --dry-run": "Missing option '-f' / '--filename'.",
    "apiserver --listen x": "--listen: expected HOST:PORT",
    "job-controller --listen x": "--listen: expected HOST:PORT",
    "demo --workers 0": "0 is not in the range 1<=x<=8.",
    "run --config .": ".: cannot be read: Is a directory",
    "check-config text.yaml": 'expected a mapping of settings, got "hello"',
    "worker add East_1 --context hub": "invalid worker name 'East_1': lower-case letters",
    "worker add east --from-secret x": "'x': expected NAMESPACE/NAME",
    "worker set east --capacity x": "Invalid value for --capacity: expected a whole number from 0 up, got 'x'",
    "worker set east --weight -1": "Invalid value for --weight: expected a number above 0, got '-1'",
    "worker set east --labels x": "x: expected KEY=VALUE, or KEY- to remove it",
    "worker set east --labels name=y": "name: is set by jobmirror itself",
    "worker drain east --timeout x": "Invalid value for --timeout: expected a duration like",
    "worker drain east --started": "--started belongs to --move",
    "worker check --allow x": "Invalid value for --allow: x: expected one of loopback",
    "demo --workers x": "'x' is not a whole number.",
    "dev --workers 0": "0 is not in the range 1<=x<=32.",
    # Settings.
    "run --config nosuch": "nosuch: cannot be read: No such file",
    "run --config bad.yaml": "bad.yaml: not YAML: line 2",
    "check-config wrong.yaml": "manegedBy: unknown key .* did you mean managedBy|managedBy",
}
"""Invalid usage, and what has to be said of it."""

UNREACHABLE = "the management cluster (https://127.0.0.1:9) is unreachable"
FAILURES = {
    "diff -f nosuch.yaml": "-f nosuch.yaml: no such file or directory",
    "diff -f .": "-f .: is a directory",
    "diff -f bad.yaml": "-f bad.yaml: not YAML (line 2)",
    "diff -f service.yaml": "-f service.yaml: contains no Job, but kind Service",
    "diff -f empty.yaml": "-f empty.yaml: contains no Job: it is empty",
    "diff -f -": "-f stdin: contains no Job: it is empty",
    "diff -f text.yaml": "-f text.yaml: contains no Job, but something that is no Kubernetes object",
    "diff -f nokind.yaml": "contains no Job: kind is missing; write apiVersion: batch/v1 and kind: Job",
    "place --dry-run -f nosuch": "-f nosuch: no such file or directory",
    "diff -f broken.yaml": "not a valid Job: spec: expected object",
    "diff -f beta.yaml": "not a valid Job: apiVersion batch/v1beta1 is not supported; use batch/v1",
    "diff -f cron.yaml": "not a valid Job: apiVersion batch/v1beta1 is not supported; use batch/v1",
    "diff -f unversioned.yaml": "not a valid Job: apiVersion is missing; use batch/v1",
    "diff -f other.yaml": "contains no Job, but kind Job of apiVersion apps/v1; use batch/v1",
    "get --kubeconfig nosuch": "kubeconfig nosuch: no such file; use --kubeconfig, or set KUBECONFIG",
    "get --kubeconfig bad.yaml": "kubeconfig bad.yaml: not YAML",
    "get --kubeconfig list.yaml": "list.yaml: not a kubeconfig",
    "get --kubeconfig no-context.yaml": "no current context: use --context",
    "get --context hubb": "context hubb not found in config; did you mean hub?",
    "get --context nobody": "contexts[2].context.user: names nothing in users",
    "get --context nowhere": "contexts[3].context.cluster: names nothing in clusters",
    "get": f"{UNREACHABLE}: connection refused; nothing listens there: check that the API server runs",
    "get --context dns": "6443) is unreachable: no such host (DNS); check the host name in the kubeconfig, and DNS",
    "explain train": f"{UNREACHABLE}: connection refused; nothing listens there",
    "pods train --server-ca nosuch --server https://127.0.0.1:9": "--server-ca nosuch: no such file",
    "worker list": "the management cluster (https://127.0.0.1:9) is unreachable: connection refused",
    "worker check east": "is unreachable: connection refused",
    "worker add east --context nosuch": "context nosuch not found in config",
    "worker add east --context hub --dry-run": "the manager would reject this kubeconfig: .*loopback",
    "worker drain east": "is unreachable: connection refused",
    "run --config settings.yaml": "setting kubeconfig nosuch: no such file",
    "run --config unset.yaml": "setting kubeconfig is not set, and this is no pod",
    "job-controller --kubeconfig nosuch": "--kubeconfig nosuch: no such file",
}
"""What fails without a cluster, and what has to be said of it."""

ON_CLUSTER = {
    "get nothing": f"jobs.batch nothing not found in namespace {NAMESPACE}",
    "explain nothing": "jobs.batch nothing not found in namespace",
    "pods nothing": 'jobs.batch "nothing" not found in namespace team-a',
    "diff nothing": 'jobs.batch "nothing" not found in namespace team-a',
    "get trian": f"jobs.batch trian not found in namespace {NAMESPACE}; did you mean train?",
    "explain trian": "jobs.batch trian not found in namespace .*; did you mean train?",
    "logs trian": 'jobs.batch "trian" not found in namespace team-a .*; did you mean train?',
    "pods trian": 'jobs.batch "trian" not found in namespace team-a .*; did you mean train?',
    "events trian": 'jobs.batch "trian" not found in namespace team-a .*; did you mean train?',
    "diff trian": 'jobs.batch "trian" not found in namespace team-a .*; did you mean train?',
    "pods train --manager-namespace nowhere": "access endpoint not readable: missing permission: get configmaps",
    "pods train --server https://127.0.0.1:9": "the manager is unreachable: connection refused; .* the manager runs",
    "get -A": "missing permission: list jobs.batch in all namespaces",
    "explain train -n other": "missing permission: get jobs.batch in namespace other",
    "worker list": "missing permission: list secrets in namespace jobmirror-system",
    "worker cordon east": "missing permission: get secrets east in namespace jobmirror-system",
}
"""What ann, who may do everything in her namespace, may not or cannot do on the cluster."""

AS_ADMINISTRATOR = {
    "worker cordon norht": "worker norht not found in namespace jobmirror-system; see: mirror worker list",
    "worker remove nothing": "worker nothing not found in namespace jobmirror-system",
    "worker check nothing": "worker nothing not found",
    "worker cordon eats": "worker eats not found in namespace jobmirror-system; did you mean east?",
    "worker list --namespace nowhere -o json": "namespace nowhere not found",
    "get -n nowhere": "namespace nowhere not found",
}

REJECTED = {
    "paralelism": (
        {"spec": {"paralelism": 3}},
        'would reject Job train: .*strict decoding error: unknown field "spec.paralelism"',
    ),
    "a type": ({"spec": {"parallelism": "three"}}, "would reject Job train: .*parallelism"),
    "a name": ({"metadata": {"name": "Bad_Name"}}, "would reject Job Bad_Name: .*metadata.name: Invalid value"),
    "a namespace": (
        {"metadata": {"name": "train", "namespace": "nowhere"}},
        "namespace nowhere not found on the management cluster",
    ),
    "no name": ({"metadata": {}}, "would reject Job: .*name or generateName is required"),
}
"""What a manifest has that the API server would not take, and what has to be said of it."""

BAD = re.compile(r"Traceback|Error\(|Exception|errno|error: None|: :|:\s*$|<class|object at 0x|\bNone\b", re.IGNORECASE)
CLASS = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Failure)\b")
"""Names of Python's classes, libraries' and ours."""


def play(typed: str, code: int, expected: str, result: Result) -> None:
    """Judge one invocation."""
    assert result.exit_code == code, (result.output, result.exception)
    assert result.stdout == ""
    assert expected in result.stderr or re.search(expected, result.stderr), result.stderr
    lines = result.stderr.splitlines()
    assert 1 <= len(lines) <= 2, result.stderr
    told = [line.removeprefix("Error: ") for line in lines]
    assert all(line.strip() and not BAD.search(line) and not CLASS.search(line) for line in told), result.stderr


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Result]:
    """Run in a directory with files of all kinds, by a kubeconfig that leads nowhere."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    monkeypatch.chdir(tmp_path)
    for name in ("KUBERNETES_SERVICE_HOST", "MIRROR_SERVER", "MIRROR_TOKEN", "MIRROR_MANAGER_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBECONFIG", "config")
    return lambda typed: CliRunner().invoke(main, typed.split(), input="", prog_name="mirror")


@pytest.mark.parametrize(("typed", "expected"), USAGE.items(), ids=USAGE)
def test_invalid_usage_is_two_lines_and_code_two(typed: str, expected: str, offline: Callable[[str], Result]) -> None:
    """The argument and what is expected there; then where the help is."""
    play(typed, 2, expected, offline(typed))


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "expected"), FAILURES.items(), ids=FAILURES)
def test_what_cannot_be_done_is_one_line_and_code_one(
    typed: str, expected: str, offline: Callable[[str], Result]
) -> None:
    """Files, kubeconfigs and servers that are not there or of no use."""
    result = offline(typed)
    play(typed, 1, expected, result)
    assert result.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserFleet]:
    """A cluster with RBAC, and a manager."""
    with user_fleet(tmp_path_factory.mktemp("wrong")) as found:
        found.create("train", "true")
        yield found


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("typed", "expected", "user"),
    [
        *((typed, expected, "ann") for typed, expected in ON_CLUSTER.items()),
        *((typed, expected, "admin") for typed, expected in AS_ADMINISTRATOR.items()),
    ],
    ids=[*ON_CLUSTER, *(f"admin: {typed}" for typed in AS_ADMINISTRATOR)],
)
def test_what_is_not_there_or_not_allowed_is_one_line_and_code_one(
    typed: str, expected: str, user: str, planes: UserFleet
) -> None:
    """The object, the namespace, the permission."""
    environment = {"KUBECONFIG": planes.kubeconfig(user), "MIRROR_SERVER": None, "MIRROR_TOKEN": None}
    result = CliRunner().invoke(main, typed.split(), env=environment, input="", prog_name="mirror")
    play(typed, 1, expected, result)
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", ["diff", "place --dry-run"])
@pytest.mark.parametrize(("change", "expected"), REJECTED.values(), ids=REJECTED)
def test_a_manifest_that_the_server_would_reject_is_told_in_its_words(
    command: str, change: dict[str, dict[str, str]], expected: str, planes: UserFleet
) -> None:
    """Before anything is compared: a field that is misspelt would be left out otherwise."""
    pods = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]}
    spec = {"managedBy": "jobmirror.io/controller", "template": {"spec": pods}} | change.get("spec", {})
    metadata = change.get("metadata", {"name": "train"})
    manifest = json.dumps(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": NAMESPACE, **metadata}, "spec": spec}
    )
    environment = {"KUBECONFIG": planes.kubeconfig("admin"), "MIRROR_SERVER": None, "MIRROR_TOKEN": None}
    result = CliRunner().invoke(main, [*command.split(), "-f", "-"], env=environment, input=manifest)
    play(f"{command} -f -", 1, expected, result)


def test_the_version_is_printed(offline: Callable[[str], Result]) -> None:
    """By option and by command."""
    assert offline("--version").stdout == offline("version").stdout
    assert re.fullmatch(r"mirror \S+\n", offline("--version").stdout)
