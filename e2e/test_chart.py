"""What the chart refuses, what it says after an install, and how it exposes access and the page; rendered by Helm.

That it gives what kustomize gives is in ``test_manifests``.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from e2e.controlplane.assets import find_binaries
from e2e.controlplane.client import Json
from e2e.manifests import DEPLOY, NAMESPACE, by_key, charted, one_of, settings_text
from mirror.settings.load import parse
from mirror.settings.schema import Settings

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]

ACCESS: Json = {"access": {"enabled": True}}
PAGE: Json = {"page": {"enabled": True, "login": True}}
LISTENER: Json = {"name": "shared", "sectionName": "tls"}
ROUTED: Json = {"enabled": True, "parentRefs": [LISTENER]}
INGRESS: Json = {"enabled": True, "annotations": {"example.com/tls": "passthrough"}}
LEASES: Json = {"leaseDuration": "30s", "renewDeadline": "15s", "retryPeriod": "5s"}


def rendered(values: Json, chart: Path = DEPLOY / "helm/jobmirror") -> subprocess.CompletedProcess[str]:
    program = find_binaries("helm-template")["helm-template"]
    command: list[str | Path] = [program, chart, NAMESPACE]
    return subprocess.run(
        command, input=yaml.safe_dump(values), capture_output=True, text=True, timeout=600, check=False
    )


def settings_of(objects: list[Json]) -> Settings:
    return parse(settings_text(objects).encode(), "mirror.yaml")


@pytest.mark.parametrize(
    ("values", "field", "what"),
    [
        ({"replica": 2}, "", "'replica' not allowed"),
        ({"config": {"workers": {"qsp": 5}}}, "/config/workers", "'qsp' not allowed"),
        ({"config": {"log": {"level": "loud"}}}, "/config/log/level", "one of 'debug', 'info', 'warning', 'error'"),
        ({"config": {"workers": {"lostAfter": 900}}}, "/config/workers/lostAfter", "got number, want string"),
        ({"config": {"workers": {"allow": {"execs": True}}}}, "/config/workers/allow", "'execs' not allowed"),
        ({"config": {"namespace": "other"}}, "/config", "'namespace' not allowed"),
        ({"config": {"namespaces": "team-a"}}, "/config/namespaces", "got string, want array"),
        ({"replicas": -1}, "/replicas", "minimum: got -1, want 0"),
        ({"image": {"name": "x"}}, "/image", "'name' not allowed"),
        ({"expose": {"access": {"hostname": "a"}}}, "/expose/access", "'hostname' not allowed"),
        (
            {"expose": {"page": {"gateway": {"parentRefs": [{"name": "shared"}]}}}},
            "/expose/page/gateway/parentRefs/0",
            "missing property 'sectionName'",
        ),
    ],
)
def test_a_value_that_the_chart_does_not_have_is_refused_by_name(values: Json, field: str, what: str) -> None:
    """By Helm, with the schema, before anything is installed."""
    done = rendered(values)

    assert done.returncode != 0
    assert f"at '{field}'" in done.stderr
    assert what in done.stderr


def test_every_setting_of_the_manager_is_taken() -> None:
    """config/mirror.yaml has them all, and what the chart passes on is what it says."""
    every = yaml.safe_load((DEPLOY.parent / "config/mirror.yaml").read_text())
    namespace = every.pop("namespace")
    assert namespace == NAMESPACE

    assert settings_of(charted({"config": every})) == parse(yaml.safe_dump(every).encode(), "mirror.yaml")


@pytest.mark.parametrize(
    ("config", "expose", "problem"),
    [
        ({}, {"access": {"host": "a.example.com", "gateway": ROUTED}}, "set config.access.enabled=true"),
        (ACCESS, {"access": {"gateway": ROUTED}}, "expose.access.host: is missing"),
        (ACCESS, {"access": {"host": "a.example.com", "gateway": {"enabled": True}}}, "access.gateway.parentRefs"),
        (ACCESS, {"access": {"host": "a.example.com", "ingress": {"enabled": True}}}, "annotation for TLS passthrough"),
        ({}, {"page": {"host": "j.example.com", "gateway": ROUTED}}, "set config.page.enabled=true"),
        (
            {"page": {"enabled": True}},
            {"page": {"host": "j.example.com", "gateway": ROUTED}},
            "set config.page.login=true",
        ),
        (PAGE, {"page": {"gateway": ROUTED}}, "expose.page.host: is missing"),
        (PAGE, {"page": {"host": "j.example.com", "ingress": {"enabled": True}}}, "expose.page.ingress.tlsSecret"),
    ],
)
def test_what_would_show_tokens_to_others_is_refused(config: Json, expose: Json, problem: str) -> None:
    """So is what would lead nowhere; the message says what to set."""
    done = rendered({"config": config, "expose": expose})

    assert done.returncode != 0
    assert problem in done.stderr


def test_requests_about_leases_have_their_own_way_only_where_that_is_wanted() -> None:
    """Those of the release's account in the release's namespace; how a server sorts them is in ``test_flow_schema``."""
    kinds = {one["kind"] for one in charted({"config": {"sharding": {"slots": 16}, "leaderElection": LEASES}})}
    objects = charted({"flowSchema": {"enabled": True}}, namespace="elsewhere")
    (rule,) = one_of(objects, "FlowSchema", "jobmirror-leases")["spec"]["rules"]

    assert "FlowSchema" not in kinds
    assert [one["serviceAccount"] for one in rule["subjects"]] == [{"name": "jobmirror", "namespace": "elsewhere"}]
    assert [one["namespaces"] for one in rule["resourceRules"]] == [["elsewhere"]]


def test_access_is_passed_through_and_known_by_its_name() -> None:
    """No certificate but the manager's is in the way, and that is for the name that users' commands use."""
    host = "access.example.com"
    values: Json = {"config": ACCESS, "expose": {"access": {"host": host, "gateway": ROUTED, "ingress": INGRESS}}}
    objects = charted(values)
    route, ingress, settings = one_of(objects, "TLSRoute"), one_of(objects, "Ingress"), settings_of(objects)

    assert (route["spec"]["hostnames"], route["spec"]["parentRefs"]) == ([host], [LISTENER])
    assert route["spec"]["rules"] == [{"backendRefs": [{"name": "jobmirror", "port": 443}]}]
    assert ingress["spec"]["tls"] == [{"hosts": [host]}]
    assert ingress["metadata"]["annotations"] == INGRESS["annotations"]
    assert (settings.access.url, settings.https.names) == (f"https://{host}", (host,))
    assert not {"HTTPRoute", "BackendTLSPolicy"} & {one["kind"] for one in objects}


def test_a_certificate_of_cert_manager_is_for_that_name_as_well() -> None:
    """An address of the operator's own, with another port, is kept."""
    config: Json = {"access": {"enabled": True, "url": "https://access.example.com:8443"}}
    expose: Json = {"access": {"host": "access.example.com", "gateway": ROUTED}}
    objects = charted({"config": config, "certManager": {"enabled": True}, "expose": expose})

    assert "access.example.com" in one_of(objects, "Certificate")["spec"]["dnsNames"]
    assert settings_of(objects).access.url == "https://access.example.com:8443"


def test_the_page_is_reached_by_the_proxy_alone_and_with_tls_before_it() -> None:
    """Its settings follow; the NetworkPolicy lets in namespaces that are labelled."""
    ingress: Json = {"enabled": True, "className": "public", "tlsSecret": "page-tls"}
    config: Json = {"page": {**PAGE["page"], "hosts": ["localhost.example.com"]}}
    objects = charted({"config": config, "expose": {"page": {"host": "jobs.example.com", "ingress": ingress}}})
    found, settings = one_of(objects, "Ingress", "jobmirror-page"), settings_of(objects)
    policy = one_of(objects, "NetworkPolicy", "jobmirror-page")["spec"]["ingress"]

    assert found["spec"]["tls"] == [{"hosts": ["jobs.example.com"], "secretName": "page-tls"}]
    assert found["spec"]["ingressClassName"] == "public"
    assert (settings.page.listen, settings.page.hosts) == (":8081", ("localhost.example.com", "jobs.example.com"))
    assert policy[0]["from"] == [{"namespaceSelector": {"matchLabels": {"jobmirror.io/page": "true"}}}]
    assert ("ClusterRole", "", "jobmirror-access") in by_key(objects)


NOTES: list[tuple[Json, tuple[str, ...], tuple[str, ...]]] = [
    ({}, ("mirror worker add east --context EAST", "mirror worker check east"), ("Access", "The page", "WARNING")),
    ({"config": ACCESS}, ("Set expose.access.host or config.access.url",), ("https://",)),
    (
        {"config": ACCESS, "expose": {"access": {"host": "a.example.com", "gateway": ROUTED}}},
        ("for users): https://a.example.com\n", "--logs"),
        ("Set expose",),
    ),
    ({"config": {"page": {"enabled": True}}}, ("port-forward deployment/jobmirror 8081",), ("jobmirror.io/page",)),
    (
        {"config": PAGE, "expose": {"page": {"host": "jobs.example.com", "gateway": ROUTED}}},
        ("The page: https://jobs.example.com\n", "jobmirror.io/page=true"),
        ("port-forward",),
    ),
    ({"config": {"leaderElection": {"enabled": False}}}, ("WARNING: replicas is 2",), ()),
    ({"config": {"managedBy": "example.com/jobs"}}, ("spec.managedBy is example.com/jobs",), ()),
    ({"config": {"sharding": {"slots": 16}, "leaderElection": LEASES}, "replicas": 3}, (), ("WARNING",)),
    ({"config": {"sharding": {"slots": 4}}, "replicas": 4}, (), ("WARNING",)),
    (
        {"config": {"sharding": {"slots": 2}}, "replicas": 3},
        ("WARNING: replicas is 3 and config.sharding.slots is 2:",),
        ("renewed",),
    ),
    (
        {"config": {"sharding": {"slots": 16}}, "replicas": 3},
        ("WARNING: config.sharding.slots is 16, and each", "config.leaderElection.leaseDuration=30s"),
        ("WARNING: replicas",),
    ),
]


@pytest.mark.parametrize(("values", "said", "unsaid"), NOTES)
def test_helm_says_what_to_do_next(
    values: Json, said: tuple[str, ...], unsaid: tuple[str, ...], tmp_path: Path
) -> None:
    """The first worker, the check, the addresses of access and the page."""
    notes = notes_of(values, tmp_path)

    assert [text for text in said if text not in notes] == []
    assert [text for text in unsaid if text in notes] == []
    assert "{{" not in notes


def notes_of(values: Json, folder: Path) -> str:
    """NOTES.txt, which the renderer leaves out under its own name."""
    chart = folder / "jobmirror"
    shutil.copytree(DEPLOY / "helm/jobmirror", chart, ignore=lambda _, names: [n for n in names if n.endswith(".yaml")])
    for name in ("Chart.yaml", "values.yaml"):
        shutil.copy(DEPLOY / "helm/jobmirror" / name, chart)
    (chart / "templates/NOTES.txt").rename(chart / "templates/notes.yaml")
    done = rendered(values, chart)
    assert done.returncode == 0, done.stderr
    return done.stdout
