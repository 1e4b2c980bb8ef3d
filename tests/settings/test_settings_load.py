"""Reading settings: what is accepted, and how each mistake is told."""

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mirror.settings.load import SettingsError, load, parse
from mirror.settings.schema import (
    Access,
    Additions,
    Globs,
    Https,
    JobController,
    Limits,
    Logging,
    Page,
    Settings,
    Tracing,
    Webhook,
)


def read(text: str) -> Settings:
    return parse(text.encode(), "mirror.yaml")


def complaints(text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read(text)
    return str(caught.value).splitlines()


def complaint(text: str) -> str:
    """The only problem of a text, without the name of the file."""
    (line,) = complaints(text)
    assert line.startswith("mirror.yaml: ")
    return line.removeprefix("mirror.yaml: ")


@pytest.mark.parametrize(
    "text", ["", "{}", "# nothing\n", "---\n"], ids=["no bytes", "no keys", "a comment", "a start"]
)
def test_what_is_left_out_has_its_default(text: str) -> None:
    """A file that says nothing means the defaults."""
    assert Settings() == read(text)


def test_every_key_can_be_set() -> None:
    """Keys are camelCase in the file; durations become seconds."""
    settings = read(
        """
        managedBy: example.com/mirror
        origin: blue
        namespace: mirrors
        kubeconfig: /etc/mirror/kubeconfig
        namespaces: [team-a, team-b]
        management: {qps: 0, burst: 1}
        workers: {qps: 2.5, burst: 7, lostAfter: 1h30m, createNamespaces: true, allow: {loopback: true, exec: false},
                  renewTokens: false}
        mirrors:
          retention: 0s
          strip: {labels: [example.com/*], annotations: [a, "b?"]}
          set: {labels: {example.com/site: north}, annotations: {note: "any text: at all"}}
        sweep: {interval: 250ms}
        leaderElection: {enabled: false, leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 500ms}
        listen: "[::1]:0"
        https: {listen: "127.0.0.1:0", certFile: /tls/crt, keyFile: /tls/key, names: [jobs.example.com, "::1"]}
        webhook: {enabled: true}
        access: {enabled: true, url: "https://jobs.example.com:8443/"}
        page: {enabled: true, listen: ":0"}
        log: {format: json, level: debug}
        tracing: {enabled: true, endpoint: "http://collector:4318/"}
        jobController:
          enabled: true
          qps: 50
          burst: 60
          leaseNamespace: home
          featureGates: {JobSuccessPolicy: false}
          batchPeriod: 0s
          apiBackoff: 100ms
          apiBackoffMax: 1s
          podFailureBackoff: 250ms
          maxPodFailureBackoff: 2s
          maxUncountedPods: 10
          maxPodCreateDeletePerSync: 20
    """
    )

    assert (settings.managed_by, settings.origin, settings.namespace) == ("example.com/mirror", "blue", "mirrors")
    assert (settings.kubeconfig, settings.namespaces) == ("/etc/mirror/kubeconfig", ("team-a", "team-b"))
    assert Limits(qps=0.0, burst=1) == settings.management
    assert (
        settings.workers.qps,
        settings.workers.burst,
        settings.workers.lost_after_seconds,
        settings.workers.create_namespaces,
    ) == (2.5, 7, 5400.0, True)
    assert settings.workers.allow == {"loopback": True, "exec": False}
    assert settings.mirrors.retention_seconds == 0.0
    assert Globs(labels=("example.com/*",), annotations=("a", "b?")) == settings.mirrors.strip
    assert (
        Additions(labels={"example.com/site": "north"}, annotations={"note": "any text: at all"})
        == settings.mirrors.set
    )
    assert settings.sweep.interval_seconds == 0.25
    assert (
        settings.leader_election.enabled,
        settings.leader_election.lease_duration_seconds,
        settings.leader_election.renew_deadline_seconds,
        settings.leader_election.retry_period_seconds,
    ) == (False, 4.0, 3.0, 0.5)
    assert settings.listen_address == ("::1", 0)
    assert settings.workers.renew_tokens is False
    assert settings.https == Https(
        listen="127.0.0.1:0", cert_file="/tls/crt", key_file="/tls/key", names=("jobs.example.com", "::1")
    )
    assert (settings.webhook, settings.page) == (Webhook(enabled=True), Page(enabled=True, listen=":0"))
    assert settings.access == Access(enabled=True, url="https://jobs.example.com:8443")
    assert (settings.https.listen_address, settings.page.listen_address) == (("127.0.0.1", 0), ("", 0))
    assert Logging(format="json", level="debug") == settings.log
    assert Tracing(enabled=True, endpoint="http://collector:4318") == settings.tracing
    assert settings.job_controller == JobController(
        enabled=True,
        qps=50.0,
        burst=60,
        lease_namespace="home",
        feature_gates={"JobSuccessPolicy": False},
        batch_period_seconds=0.0,
        api_backoff_seconds=0.1,
        api_backoff_max_seconds=1.0,
        pod_failure_backoff_seconds=0.25,
        max_pod_failure_backoff_seconds=2.0,
        max_uncounted_pods=10,
        max_pod_create_delete_per_sync=20,
    )


def test_empty_retention_is_not_zero() -> None:
    """An empty retention keeps a mirror as long as its source; 0s deletes it at once (D8)."""
    assert read('mirrors: {retention: ""}').mirrors.retention_seconds is None
    assert read("mirrors: {retention: 0s}").mirrors.retention_seconds == 0.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # Wrong types and ranges.
        ("workers: {qps: fast}", 'workers.qps: expected a number ≥ 0 (0: unlimited) and ≤ 1000000, got "fast"'),
        ("workers: {qps: -1}", "workers.qps: expected a number ≥ 0 (0: unlimited) and ≤ 1000000, got -1"),
        ("workers: {qps: true}", "workers.qps: expected a number ≥ 0 (0: unlimited) and ≤ 1000000, got true"),
        ("workers: {qps: .nan}", "workers.qps: expected a number ≥ 0 (0: unlimited) and ≤ 1000000, got NaN"),
        ("workers: {qps: .inf}", "workers.qps: expected a number ≥ 0 (0: unlimited) and ≤ 1000000, got Infinity"),
        ("management: {burst: 0}", "management.burst: expected a whole number ≥ 1 and ≤ 1000000, got 0"),
        ("management: {burst: 1.5}", "management.burst: expected a whole number ≥ 1 and ≤ 1000000, got 1.5"),
        ("management: 5", "management: expected a mapping of settings, got 5"),
        ("sweep:", "sweep: expected a mapping of settings, got nothing"),
        ("- a", "expected a mapping of settings, got a list"),
        ("workers: {createNamespaces: 1}", "workers.createNamespaces: expected true or false, got 1"),
        ('leaderElection: {enabled: "true"}', 'leaderElection.enabled: expected true or false, got "true"'),
        ("kubeconfig: [a]", "kubeconfig: expected a path, or empty text, got a list"),
        ('kubeconfig: "\\0"', 'kubeconfig: expected a path, or empty text, got "\\u0000"'),
        # Durations.
        ("workers: {onLoss: Evict}", "workers.onLoss: expected"),
        ("sharding: {slots: 0}", "sharding.slots: expected a whole number from 1 to 1024"),
        ("sharding: {address: manager-1}", "sharding.address: expected an IP address, or empty text"),
        ("workers: {onLoss: Reschedule, onLossAllowed: [Wait]}", "workers.onLoss: Reschedule is not in onLossAllowed"),
        ("placement: {retryAfter: 15}", "placement.retryAfter: expected a duration"),
        ("placement: {retryAfter: 15m}", "placement.retryAfter: needs workers.watchPods: labelled"),
        ("workers: {onLossAllowed: [Evict]}", "workers.onLossAllowed"),
        ("workers: {fenceTTL: 1m}", "workers.fenceTTL: expected a duration of whole seconds from 5m to 24h"),
        ("workers: {losers: keep}", "workers.losers: expected"),
        ("workers: {lostAfter: 15}", "got 15 (a duration needs a unit: 15s)"),
        ("workers: {lostAfter: -15m}", "(a duration has no sign)"),
        ("workers: {lostAfter: soon}", "workers.lostAfter: expected a duration ≥ 0 such as 15m or 0s, got"),
        ('workers: {lostAfter: ""}', "workers.lostAfter: expected a duration"),
        ("mirrors: {retention: 5 minutes}", 'mirrors.retention: expected a duration ≥ 0 such as 15m or 0s, or "", got'),
        ("sweep: {interval: 0s}", 'sweep.interval: expected a duration between 1ms and 24h, such as 10s, got "0s"'),
        ("sweep: {interval: 25h}", "sweep.interval: expected a duration between 1ms and 24h"),
        # Names that Kubernetes must accept.
        ('managedBy: ""', "managedBy: expected DOMAIN/PATH of at most 63 bytes"),
        ("managedBy: mine", 'such as example.com/controller, got "mine"'),
        ("managedBy: /mine", "managedBy: expected DOMAIN/PATH"),
        ("managedBy: mine/", "managedBy: expected DOMAIN/PATH"),
        ("managedBy: Mine.com/a", "managedBy: expected DOMAIN/PATH"),
        ("managedBy: a.com/b c", "managedBy: expected DOMAIN/PATH"),
        ("managedBy: a.com/" + "b" * 58, "managedBy: expected DOMAIN/PATH of at most 63 bytes"),
        ("managedBy: kubernetes.io/job-controller", "(those Jobs belong to the built-in Job controller)"),
        ("origin: a b", "origin: expected a label value"),
        ("origin: " + "a" * 64, "origin: expected a label value"),
        ("namespace: Upper", "namespace: expected the name of a namespace"),
        ('namespace: ""', "namespace: expected the name of a namespace"),
        ("namespaces: [a, b.c]", "namespaces[1]: expected the name of a namespace (at most 63 lower-case"),
        ("namespaces: [a, b, a]", 'namespaces[2]: "a" stands there twice; remove one'),
        ("namespaces: a", 'namespaces: expected a list of namespaces, got "a"'),
        ("mirrors: {strip: {labels: [a b]}}", "mirrors.strip.labels[0]: expected a key such as"),
        ("mirrors: {set: {labels: {a b: c}}}", "mirrors.set.labels.a b: not a key that Kubernetes accepts"),
        ("mirrors: {set: {labels: {a: b c}}}", "mirrors.set.labels.a: expected a label value"),
        ("mirrors: {set: {annotations: {a: 1}}}", "mirrors.set.annotations.a: expected text, got 1"),
        ("mirrors: {set: {labels: {jobmirror.io/origin: x}}}", "keys under jobmirror.io/ are set by us"),
        # Choices.
        ("log: {format: xml}", 'log.format: expected one of text, json, got "xml"'),
        ("log: {level: off}", "log.level: expected one of debug, info, warning, error, got false"),
        ("listen: 8080", "listen: expected HOST:PORT such as 127.0.0.1:8080, [::1]:8080 or :8080, got 8080"),
        ("listen: a:65536", "listen: expected HOST:PORT"),
        ("listen: ::1:80", "listen: expected HOST:PORT"),
        ("workers: {allow: {loopback: 1}}", "workers.allow.loopback: expected true or false, got 1"),
        ("workers: {allow: {htp: true}}", "workers.allow.htp: unknown key (did you mean http?)"),
        ("workers: {allow: [exec]}", "workers.allow: expected a mapping of names to true or false, got a list"),
        ("jobController: {apiBackoff: 2m}", "jobController.apiBackoff: must not be longer than apiBackoffMax (1m)"),
        (
            "jobController: {maxPodFailureBackoff: 9s}",
            "jobController.podFailureBackoff: must not be longer than maxPodFailureBackoff (9s)",
        ),
        ("jobController: {podFailureBackoff: 0s}", "jobController.podFailureBackoff: expected a duration between 1ms"),
        ("jobController: {maxUncountedPods: 0}", "jobController.maxUncountedPods: expected a whole number ≥ 1"),
        ("jobController: {featureGates: {JobManaged: false}}", "featureGates.JobManaged: unknown key (did you mean"),
        ("jobController: {featureGates: {AllAlpha: true}}", "AllAlpha=true is not supported"),
        ("jobController: {featureGates: {JobManagedBy: 0}}", "JobManagedBy: expected true or false, got 0"),
        ("https: {certFile: /a}", "https.keyFile: must be set together with certFile"),
        ("https: {keyFile: /a}", "https.certFile: must be set together with keyFile"),
        ("https: {names: [a_b]}", "https.names[0]: expected a DNS name or an IP address, got"),
        ("access: {url: http://jobs}", "access.url: expected an address such as https://jobs.example.com, or empty"),
        ("access: {url: https://me@jobs}", "access.url: expected an address"),
        ("access: {url: https://jobs:0}", "access.url: expected an address"),
        ("tracing: {enabled: 1}", "tracing.enabled: expected true or false, got 1"),
        (
            'tracing: {endpoint: "collector:4318"}',
            "tracing.endpoint: expected an address such as http://collector:4318, or empty text, got",
        ),
        ("tracing: {endpoint: grpc://collector}", "tracing.endpoint: expected an address"),
        ("tracing: {endpoint: http://me@collector}", "tracing.endpoint: expected an address"),
        ("tracing: {endpoint: http://collector?token=x}", "tracing.endpoint: expected an address"),
        ("tracing: {endpont: http://collector}", "tracing.endpont: unknown key (did you mean endpoint?)"),
        # Unknown keys.
        ("workers: {qsp: 3}", "workers.qsp: unknown key (did you mean qps?)"),
        ("workers: {lost_after: 3}", "workers.lost_after: unknown key (did you mean lostAfter?)"),
        ("Origin: a", "Origin: unknown key (did you mean origin?)"),
        ("sweep: {zzz: 3}", "sweep.zzz: unknown key (known: interval)"),
        # Times of the Lease.
        (
            "leaderElection: {leaseDuration: 10s}",
            "leaseDuration: must be longer than renewDeadline (10s)",
        ),
        ("leaderElection: {retryPeriod: 10s}", "renewDeadline: must be longer than retryPeriod (10s)"),
        ("leaderElection: {leaseDuration: 10.5s}", "leaderElection.leaseDuration: must be whole seconds"),
    ],
)
def test_each_mistake_is_told_with_its_path(text: str, told: str) -> None:
    """One line names the file, the path of the key, what was expected and what was found."""
    assert told in complaint(text)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        pytest.param(b"sweep: {}\nlog: {}\nsweep: {}", "sweep: line 3: the key stands there twice", id="a key twice"),
        pytest.param(b"log: {level: info, level: debug}", "log.level: line 1: the key", id="a key twice, nested"),
        pytest.param(b"a: &x 1\nb: *x", "line 1: anchors and aliases are refused", id="an alias"),
        pytest.param(b"log: &x {}", "line 1: anchors and aliases are refused", id="an anchor that nobody uses"),
        pytest.param(b"log:\n  <<: {level: info}", "log: line 2: merge keys are refused", id="a merge key"),
        pytest.param(b"a: !!python/object:os.system {}", "line 1: tags such as", id="a tag for Python"),
        pytest.param(b"origin: !!str 5", "line 1: tags such as", id="a harmless tag"),
        pytest.param(b"5: a", "line 1: a key must be text", id="a key that is a number"),
        pytest.param(b"? [a]\n: b", "line 1: a key must be text", id="a key that is a list"),
        pytest.param(b"sweep:\n\tinterval: 1m", "not YAML: line 2, column 1:", id="a tab"),
        pytest.param(b"[a", "not YAML: line 2, column 1:", id="a list without end"),
        pytest.param(b"a: 1\n---\nb: 2", "not YAML: line 2, column 1: but found another document", id="two documents"),
        pytest.param(b"\xff\xfe", "the file is not UTF-8", id="another encoding"),
        pytest.param(b"origin: \x00", "not YAML", id="a NUL"),
        pytest.param(b"[" * 50_000, "line 1: nested deeper than 16 levels", id="a tower of lists"),
        pytest.param(b"#" * 1_048_577, "the file is larger than 1024 KiB", id="a huge file"),
    ],
)
def test_yaml_that_could_mislead_is_refused(raw: bytes, told: str) -> None:
    """A file means what it seems to mean, or is refused with the line."""
    with pytest.raises(SettingsError) as caught:
        parse(raw, "mirror.yaml")

    assert told in str(caught.value).removeprefix("mirror.yaml: ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("leaderElection: {enabled: false}", "leaderElection.enabled: must be true"),
        ("placement: {scores: [{name: quota, weight: 1}]}", "placement.scores: cannot be used yet"),
    ],
)
def test_what_several_slots_cannot_do_yet_is_refused_by_its_name(text: str, told: str) -> None:
    """And without slots it is as it was."""
    read(text)
    assert complaint(f"{text}\nsharding: {{slots: 4}}") == f"{told} where sharding.slots is 4"


def test_with_several_slots_jobs_are_moved_as_without() -> None:
    """D14, S2: whatever is wanted of lost workers, and whatever Jobs may ask for."""
    workers = read("workers: {onLoss: Fence, onLossAllowed: [Wait, Fence]}\nsharding: {slots: 4}").workers
    assert (workers.on_loss, workers.on_loss_allowed) == ("Fence", ("Wait", "Fence"))


def test_all_mistakes_are_told_at_once() -> None:
    """Nobody has to correct a file one problem at a time."""
    found = complaints(
        "managedBy: x\nworkers: {qps: fast, qsp: 1, allow: {a: 1, exec: 2}}\nnamespaces: [A, B]\nlisten: x"
    )

    assert [line.split(": ")[1] for line in found] == [
        "managedBy",
        "workers.qps",
        "workers.qsp",
        "workers.allow.a",
        "workers.allow.exec",
        "namespaces[0]",
        "namespaces[1]",
        "listen",
    ]


def test_a_mistake_is_one_printable_line() -> None:
    """Keys and values of a file cannot talk to the terminal that shows the message."""
    (line,) = complaints('"\\e[2J\\n": 1')

    assert line.isprintable()
    assert line.startswith("mirror.yaml: \\x1b[2J\\n: unknown key")


def test_a_number_of_absurd_length_is_refused_like_any_other() -> None:
    """Python refuses to convert thousands of digits; the message stays short."""
    assert complaint(f"management: {{burst: {'9' * 5000}}}").startswith("management.burst: expected a whole number")


def test_more_annotations_than_kubernetes_takes_are_refused() -> None:
    """A mirror that no worker would accept is found before the first Job."""
    told = complaint(f"mirrors: {{set: {{annotations: {{a: {'x' * 262_144}}}}}}}")

    assert told.endswith("(more than 256 KiB, which Kubernetes refuses)")


def test_a_file_that_cannot_be_read_is_a_settings_error(tmp_path: Path) -> None:
    """A wrong path is told like a wrong value."""
    missing = tmp_path / "missing.yaml"

    with pytest.raises(SettingsError, match=r"missing\.yaml: cannot be read: No such file or directory"):
        load(missing)
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_a_file_is_read(tmp_path: Path) -> None:
    """The settings come from the file that was named."""
    file = tmp_path / "mirror.yaml"
    file.write_text("origin: from-file\n")

    assert load(str(file)).origin == "from-file"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        (":0", ("", 0)),
        ("[::]:8080", ("::", 8080)),
        ("localhost:1", ("localhost", 1)),
    ],
)
def test_listen_is_host_and_port(text: str, address: tuple[str, int]) -> None:
    """Brackets belong to the text, not to the host; no host means every interface."""
    assert address == Settings(listen=text).listen_address


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=64) | st.text(alphabet="{}[]:-,&*!|>#?\"' \nab0<.", max_size=40).map(str.encode))
def test_junk_is_settings_or_a_settings_error(raw: bytes) -> None:
    """No bytes whatever raise anything but SettingsError."""
    with suppress(SettingsError):
        parse(raw, "mirror.yaml")


@given(st.dictionaries(st.sampled_from(["workers", "namespaces", "listen", "mirrors", "log", "origin"]), json_values))
def test_values_of_any_shape_are_settings_or_a_settings_error(content: dict[str, object]) -> None:
    """Known keys with unsuitable values never raise anything but SettingsError."""
    with suppress(SettingsError):
        parse(yaml.dump(content, Dumper=yaml.CSafeDumper).encode(), "mirror.yaml")


def test_sources_of_workers_are_read_and_mistakes_named_by_path() -> None:
    """Each item of the list by its number."""
    source = "labelSelector: 'team=a,gpu in (yes, no),!old', namespaces: [clusters]"
    (found,) = read(f"workers: {{secretSources: [{{{source}}}]}}").workers.secret_sources
    assert (found.key, found.name_from_label, found.type) == ("kubeconfig", "", "")
    text = """
        workers:
          secretSources:
          - {labelSelector: "", namespaces: []}
          - {labelSelector: a=b, namespaces: ["*"], keys: x, nameFromLabel: "a b", type: "a b", key: a/b}
          - {}
          - 3
          clusterProfiles: {managedServiceAccount: A B}
        """
    paths = [line.split(": ")[1] for line in complaints(text)]
    assert paths == [
        "workers.secretSources[0].labelSelector",
        "workers.secretSources[0].namespaces",
        "workers.secretSources[1].namespaces[0]",
        "workers.secretSources[1].keys",
        "workers.secretSources[1].nameFromLabel",
        "workers.secretSources[1].type",
        "workers.secretSources[1].key",
        "workers.secretSources[2].labelSelector",
        "workers.secretSources[2].namespaces",
        "workers.secretSources[3]",
        "workers.clusterProfiles.managedServiceAccount",
    ]


def test_cluster_profiles_are_looked_for_where_it_is_said() -> None:
    """So that rights are given there, and nowhere else."""
    told = complaint("workers: {clusterProfiles: {enabled: true}}")
    assert told == "workers.clusterProfiles.namespaces: is missing; list the namespaces of ClusterProfiles"


def test_scores_have_names_and_weights() -> None:
    """Each once; the weight may be left out."""
    found = read("placement: {filters: [], scores: [{name: load}, {name: readiness, weight: 2.5}]}").placement
    assert found.filters == ()
    assert [(one.name, one.weight) for one in found.scores] == [("load", 1.0), ("readiness", 2.5)]


def test_wrong_scores_are_named() -> None:
    """An unknown one, one without a name, one that stands there twice, a weight that is none."""
    assert complaint("placement: {scores: [{name: lode}]}").startswith("placement.scores[0].name: ")
    assert complaint("placement: {scores: [{weight: 2}]}") == "placement.scores[0].name: is missing"
    twice = "placement: {scores: [{name: load}, {name: load, weight: 2}]}"
    assert complaint(twice) == "placement.scores[1]: load stands there twice; remove one"
    assert "from 0 to 10" in complaint("placement: {scores: [{name: load, weight: 11}]}")
    assert complaint("placement: {filters: [selector]}").startswith("placement.filters[0]: ")
