"""What ``deploy/`` installs: kustomize and the chart give the same, a real API server takes it, it fits together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from e2e import manifests
from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.controlplane.plane import KubectlFailed
from e2e.definitions import define
from e2e.manifests import NAMESPACE, OVERLAYS, Key, by_key, charted, key, kustomized, one_of, settings_text
from mirror.model import names
from mirror.settings.load import parse
from mirror.settings.schema import Settings
from mirror.webhook.routes import MUTATE, VALIDATE
from tests.documents.commands import blocks

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]


def behind(listener: str) -> Json:
    return {"enabled": True, "parentRefs": [{"name": "shared", "namespace": "gateways", "sectionName": listener}]}


VALUES: dict[str, Json] = {
    "single": {"replicas": 1},
    "high-availability": {},
    "sharded": {
        "config": {
            "sharding": {"slots": 16},
            "leaderElection": {"leaseDuration": "30s", "renewDeadline": "15s", "retryPeriod": "5s"},
        },
        "flowSchema": {"enabled": True},
        "replicas": 3,
    },
    "webhook": {"config": {"webhook": {"enabled": True}}},
    "cert-manager": {"config": {"webhook": {"enabled": True}}, "certManager": {"enabled": True}},
    "prometheus-operator": {"prometheusOperator": {"enabled": True}, "dashboard": {"enabled": True}},
    "namespaced": {"config": {"namespaces": ["team-a"]}},
    "full": {
        "config": {"webhook": {"enabled": True}, "access": {"enabled": True}},
        "prometheusOperator": {"enabled": True},
        "dashboard": {"enabled": True},
    },
    "gateway": {
        "config": {"access": {"enabled": True}, "page": {"enabled": True, "login": True}},
        "expose": {
            "access": {"host": "access.jobs.example.com", "gateway": behind("tls-passthrough")},
            "page": {"host": "jobs.example.com", "gateway": behind("https")},
        },
    },
    "ingress": {
        "config": {"access": {"enabled": True}, "page": {"enabled": True, "login": True}},
        "expose": {
            "page": {"host": "jobs.example.com", "ingress": {"enabled": True, "tlsSecret": "jobmirror-page-tls"}}
        },
    },
}
"""What the chart is to be told to give the same as an overlay."""

CUSTOM = {
    "cert-manager.io": ("Issuer", "Certificate"),
    "monitoring.coreos.com": ("ServiceMonitor", "PrometheusRule"),
    "gateway.networking.k8s.io": ("TLSRoute", "HTTPRoute"),
}


def settings_of(objects: list[Json]) -> Settings:
    return parse(settings_text(objects).encode(), "mirror.yaml")


def compared(objects: list[Json]) -> dict[Key, Json]:
    """The objects without what Helm and kustomize each do in their own way."""
    found = by_key(objects)
    found.pop(("Namespace", "", NAMESPACE), None)  # helm install --create-namespace
    for (kind, _, name), one in found.items():
        labels = one["metadata"].get("labels", {})
        for label in ("app.kubernetes.io/managed-by", "helm.sh/chart"):
            labels.pop(label, None)
        if kind == "ConfigMap" and name == "jobmirror-config":
            one["metadata"]["name"] = name
            one["data"] = settings_of([one])
        if kind == "PrometheusRule":
            # kustomize writes folded texts with one empty line too many; to PromQL space is space.
            rules = (rule for group in one["spec"]["groups"] for rule in group["rules"])
            for rule in rules:
                rule["expr"] = " ".join(rule["expr"].split())
        if kind == "Deployment":
            template = one["spec"]["template"]
            template["metadata"]["annotations"].pop("checksum/config", None)  # as kustomize's digest in the name
            (container,) = template["spec"]["containers"]
            for named in (container["ports"], container["volumeMounts"], template["spec"]["volumes"]):
                named.sort(key=lambda entry: entry["name"])  # patches put theirs in front
            for volume in template["spec"]["volumes"]:
                if "configMap" in volume:
                    volume["configMap"]["name"] = "jobmirror-config"
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_chart_gives_what_kustomize_gives(overlay: str) -> None:
    """Object by object, for each overlay; settings are compared as read."""
    chart, overlaid = compared(charted(VALUES[overlay])), compared(kustomized(overlay))

    assert chart.keys() == overlaid.keys()
    for name, expected in overlaid.items():
        assert chart[name] == expected, name


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_settings_and_objects_fit_together(overlay: str) -> None:
    """What a setting needs is there, and only then; ports and files are where the settings say."""
    objects = kustomized(overlay)
    settings, found = settings_of(objects), by_key(objects)
    deployment = one_of(objects, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}

    assert settings.namespace == NAMESPACE
    assert settings.listen_address == ("", ports["metrics"])
    assert deployment["spec"]["replicas"] == 1 or settings.leader_election.enabled
    assert (("Role", NAMESPACE, "jobmirror-sharding") in found) == (settings.sharding.slots > 1)
    assert settings.sharding.slots == 1 or settings.sharding.slots >= 2 * deployment["spec"]["replicas"]
    is_https = settings.webhook.enabled or settings.access.enabled
    assert ports.get("https") == (settings.https.listen_address[1] if is_https else None)
    assert (("Service", NAMESPACE, "jobmirror-webhook") in found) == settings.webhook.enabled
    assert ("MutatingWebhookConfiguration" in kinds(objects)) == settings.webhook.enabled
    for hooks, path in (("MutatingWebhookConfiguration", MUTATE), ("ValidatingWebhookConfiguration", VALIDATE)):
        service = {"name": names.WEBHOOK_SERVICE, "namespace": NAMESPACE, "path": path, "port": 443}
        for one in found[hooks, "", names.WEBHOOKS]["webhooks"] if settings.webhook.enabled else ():
            assert one["clientConfig"]["service"] == service
    assert (("Service", NAMESPACE, "jobmirror") in found) == settings.access.enabled
    assert (("Role", NAMESPACE, "jobmirror-https") in found) == (is_https and not settings.https.cert_file)
    assert (("Service", NAMESPACE, "jobmirror-page") in found) == ("page" in ports)
    if "page" in ports:
        assert settings.page.login
        assert (settings.page.enabled, settings.page.listen_address) == (True, ("", ports["page"]))
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert settings.https.cert_file.rpartition("/")[0] in ["", *mounts]
    assert container["args"] == ["run", "--config", "/etc/jobmirror/mirror.yaml"]
    assert not settings.namespaces or "ClusterRole" not in kinds(objects)
    assert {role[1] for role in found if role[0] == "Role" and role[2] == "jobmirror-manager"} == {
        NAMESPACE,
        *settings.namespaces,
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_is_selected_is_there(overlay: str) -> None:
    """Services, policies and budgets select our pod, target ports have a name there, bindings lead somewhere."""
    objects = kustomized(overlay)
    found = by_key(objects)
    pod = one_of(objects, "Deployment")["spec"]["template"]
    ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    for one in objects:
        kind, spec = one["kind"], one.get("spec", {})
        if kind == "Service":
            assert spec["selector"].items() <= pod["metadata"]["labels"].items()
            assert {port["targetPort"] for port in spec["ports"]} <= ports
        if kind in ("NetworkPolicy", "PodDisruptionBudget"):
            selector = spec.get("podSelector") or spec["selector"]
            assert selector["matchLabels"].items() <= pod["metadata"]["labels"].items()
        if kind.endswith("Binding"):
            role = one["roleRef"]
            namespace = one["metadata"].get("namespace", "") if role["kind"] == "Role" else ""
            assert (role["kind"], namespace, role["name"]) in found
            if one["metadata"]["name"] != "jobmirror-access-reader":  # for users
                assert one["subjects"] == [{"kind": "ServiceAccount", "name": "jobmirror", "namespace": NAMESPACE}]
        if kind == "ServiceMonitor":
            services = [other for other in objects if other["kind"] == "Service"]
            selected = [
                s for s in services if spec["selector"]["matchLabels"].items() <= s["metadata"]["labels"].items()
            ]
            assert [service["metadata"]["name"] for service in selected] == ["jobmirror-metrics"]


def test_chosen_namespaces_have_no_rights_on_jobs_elsewhere() -> None:
    """With the webhook, too: what is left for the whole cluster is its own configurations."""
    objects = charted({"config": {"namespaces": ["one", "two"], "webhook": {"enabled": True}}})
    wide = {
        rule for one in objects if one["kind"] == "ClusterRole" for group in one["rules"] for rule in group["resources"]
    }
    patching = [
        one["metadata"] for one in objects if (one["kind"], one["metadata"]["name"]) == ("Role", "jobmirror-webhook")
    ]

    assert wide == {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
    assert [metadata["namespace"] for metadata in patching] == ["one", "two"]


def test_the_chart_passes_settings_on() -> None:
    """Any setting can be given; those of other places are kept; the namespace is the release's, everywhere."""
    values = {"config": {"workers": {"lostAfter": "5m"}, "namespaces": ["one", "two"]}, "replicas": 3}
    objects = charted(values, namespace="elsewhere")
    settings = settings_of(objects)

    assert (settings.workers.lost_after_seconds, settings.namespaces, settings.namespace) == (
        300,
        ("one", "two"),
        "elsewhere",
    )
    assert NAMESPACE not in yaml.safe_dump(objects)
    assert {one["metadata"]["namespace"] for one in objects if one["kind"] == "Role"} == {
        *("one", "two", "elsewhere", "kube-system")
    }
    assert {subject["namespace"] for one in objects for subject in one.get("subjects", ())} == {"elsewhere"}


def test_the_chart_passes_on_what_its_surroundings_need() -> None:
    """An identity of the cloud, a proxy, and the place where operators read the runbook."""
    runbook, proxy = "https://wiki.example.com/jobmirror", {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}
    identity = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/jobmirror"}
    values: Json = {"env": [proxy], "serviceAccount": {"annotations": identity}}
    objects = charted({**values, "prometheusOperator": {"enabled": True, "runbookURL": runbook}})
    rules = one_of(objects, "PrometheusRule")["spec"]["groups"]
    urls = {rule["annotations"]["runbook_url"] for group in rules for rule in group["rules"]}

    assert one_of(objects, "ServiceAccount")["metadata"]["annotations"] == identity
    assert one_of(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"] == [proxy]
    assert f"{runbook}#mirrorworkerlost" in urls
    assert all(url.startswith((f"{runbook}#mirror", f"{runbook}#jobcontroller")) for url in urls)


def test_the_dashboard_is_the_one_that_is_tested() -> None:
    """Grafana's sidecar finds it by its label, and gets what deploy/observability has."""
    found = one_of(charted({"dashboard": {"enabled": True}}), "ConfigMap", "jobmirror-dashboard")
    tested = (manifests.DEPLOY / "observability/dashboard.json").read_text()

    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"] == {"jobmirror.json": tested}


def test_kustomize_links_alerts_to_the_runbook_of_the_operator(tmp_path: Path) -> None:
    """As deploy/README.md has it; the ConfigMap with the address stays out."""
    (kustomization,) = (one for one in blocks("deploy/README.md", "yaml") if "components/runbook" in one)
    (address,) = (one for one in blocks("deploy/README.md", "yaml") if "name: jobmirror-runbook" in one)
    (tmp_path / "kustomization.yaml").write_text(kustomization)
    (tmp_path / "runbook.yaml").write_text(address)
    (tmp_path / "jobmirror").symlink_to(manifests.TOP)
    found, shipped = by_key(kustomized(tmp_path)), by_key(kustomized("prometheus-operator"))
    urls = [rule["annotations"]["runbook_url"] for rule in rules_of(found)]

    assert found.keys() == shipped.keys()
    place = yaml.safe_load(address)["data"]["url"]
    assert urls == [rule["annotations"]["runbook_url"].replace("docs/runbook.md", place) for rule in rules_of(shipped)]
    assert f"{place}#mirrorworkerlost" in urls


def rules_of(found: dict[Key, Json]) -> list[Json]:
    groups = found["PrometheusRule", NAMESPACE, "jobmirror"]["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_rights_on_declarations_of_workers_are_in_the_namespaces_of_the_settings() -> None:
    """Each namespace once; nothing where nothing is asked for."""
    sources = [{"labelSelector": "a", "namespaces": ["one", "two"]}, {"labelSelector": "b", "namespaces": ["two"]}]
    profiles = {"enabled": True, "namespaces": ["fleet"]}
    found = charted({"config": {"workers": {"secretSources": sources, "clusterProfiles": profiles}}})
    roles = sorted((one["metadata"]["name"], one["metadata"]["namespace"]) for one in found if one["kind"] == "Role")
    declared = ("jobmirror-cluster-profiles", "jobmirror-secret-sources")

    assert [role for role in roles if role[0] in declared] == [
        ("jobmirror-cluster-profiles", "fleet"),
        ("jobmirror-cluster-profiles", NAMESPACE),
        ("jobmirror-secret-sources", "one"),
        ("jobmirror-secret-sources", "two"),
    ]
    assert len(settings_of(found).workers.secret_sources) == 2
    switched_off = charted({"config": {"workers": {"clusterProfiles": {**profiles, "enabled": False}}}})
    assert not [one for one in switched_off if one["metadata"]["name"] in declared]


_GANGS = {"GenericWorkload": True, "WorkloadWithJob": True}


@pytest.mark.parametrize(
    ("setting", "plural"),
    [("configMaps", "configmaps"), ("secrets", "secrets"), ("serviceAccounts", "serviceaccounts")],
)
def test_rights_on_what_goes_along_come_kind_by_kind(setting: str, plural: str) -> None:
    """Whoever lets ConfigMaps go along lets nobody read Secrets (D27)."""
    found = [key(one) for one in charted({"config": {"dependencies": {setting: True}}})]
    about = f"jobmirror-manager-copies-{plural}"
    assert [one for one in found if "copies" in one[2]] == [
        ("ClusterRole", "", about),
        ("ClusterRoleBinding", "", about),
    ]


@pytest.mark.parametrize(
    ("controller", "has_rights"),
    [
        ({"enabled": True, "featureGates": _GANGS}, True),
        ({"enabled": True, "featureGates": {**_GANGS, "WorkloadWithJob": False}}, False),
        ({"enabled": True, "featureGates": {}}, False),
        ({"enabled": True}, False),
        ({"enabled": False, "featureGates": _GANGS}, False),
    ],
)
def test_rights_on_workloads_come_with_their_gate(controller: Json, has_rights: bool) -> None:
    """Both the Job controller and the gate are off by default."""
    found = by_key(charted({"config": {"jobController": controller}}))
    name = "jobmirror-job-controller-gang"

    assert (("ClusterRole", "", name) in found) == (("ClusterRoleBinding", "", name) in found) == has_rights


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    """A fresh API server that knows the kinds of cert-manager and the Prometheus operator by name."""
    async with Cluster.start("manifests", BARE) as started, started.client() as client:
        for group, kinds_of_group in CUSTOM.items():
            for kind in kinds_of_group:
                await define(client, definition(group, kind))
        for namespace in (NAMESPACE, "team-a"):
            body: Json = {"metadata": {"name": namespace}}
            await client.create("/api/v1/namespaces", body)
        yield started


@pytest.mark.parametrize("overlay", OVERLAYS)
async def test_a_real_api_server_takes_every_overlay(cluster: Cluster, overlay: str) -> None:
    """Server-side dry run, with strict field validation and without a warning."""
    objects = kustomized(overlay)
    said = await dry_run(cluster, objects)

    assert len(said.splitlines()) == len(objects)
    assert "Warning" not in said


@pytest.mark.parametrize("overlay", ["high-availability", "full"])
async def test_the_pod_obeys_the_strictest_standard(cluster: Cluster, overlay: str) -> None:
    """A pod of the Deployment's template is taken where the restricted pod security standard is enforced."""
    objects = kustomized(overlay)
    template = one_of(objects, "Deployment")["spec"]["template"]
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    assert enforced.items() <= one_of(objects, "Namespace", NAMESPACE)["metadata"]["labels"].items()
    await cluster.kubectl("label", "namespace", NAMESPACE, "--overwrite", *(f"{k}={v}" for k, v in enforced.items()))
    pod: Json = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = {**pod["metadata"], "name": "one", "namespace": NAMESPACE}

    assert await dry_run(cluster, [pod])
    pod["spec"]["securityContext"].pop("runAsNonRoot")
    with pytest.raises(KubectlFailed, match="violates PodSecurity"):
        await dry_run(cluster, [pod])


async def test_it_is_installed_twice_in_a_row_from_nothing(cluster: Cluster) -> None:
    """``kubectl apply --server-side`` of everything, applied again without a change: nothing in it fights defaults."""
    folder = manifests.DEPLOY / "kustomize/overlays/full"
    versions = []
    for _ in range(2):
        await cluster.kubectl("apply", "--server-side", "--kustomize", str(folder))
        async with cluster.client() as client:
            path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/jobmirror"
            versions.append((await client.get(path))["metadata"]["resourceVersion"])

    assert versions[0] == versions[1]


async def dry_run(cluster: Cluster, objects: list[Json]) -> str:
    return await cluster.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename", "-"),
        stdin=yaml.safe_dump_all(objects),
    )


def kinds(objects: list[Json]) -> set[str]:
    return {one["kind"] for one in objects}


def definition(group: str, kind: str) -> Json:
    """A custom resource of this name that may hold anything."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved: a stand-in"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
