"""``mirror kinds --check`` and ``mirror worker check`` of kinds: whole clusters over HTTPS, with RBAC."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from doubles.multikueue import clusters_definition
from msgspec import structs
from test_cli_worker import HOME, RBAC, Clusters, clusters
from test_cli_worker_drain import registered

from mirror.cli.main import main
from mirror.cli.user.failures import Failure
from mirror.cli.worker import add, drain, kinds_check
from mirror.cli.worker.operations.checking.kinds import KindFacts, judge_on_management
from mirror.cli.worker.operations.sites import ClusterError
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.declared.recorded import text_of
from mirror.kinds.registry import JOB, Kinds
from mirror.kube.permissions import Permission
from mirror.model import names
from mirror.planes.api import Api
from mirror.settings.kinds import KindEntry, ManagedByField
from mirror.settings.load import parse

__all__ = ["clusters"]

FILES = Path(__file__).parents[2] / "config" / "rbac" / "kinds"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOB_SETS = "jobsets.jobset.x-k8s.io"
RECORD = f"/api/v1/namespaces/{HOME}/configmaps/{names.WORKERS_CONFIGMAP}"
GRANTED = ("ok", "served as v1alpha2, all required permissions granted")


def job_set_kinds() -> Kinds:
    return kinds_of([KindEntry(kind="JobSet")])


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def define(
    api: Api, version: str = "v1alpha2", *, has_status: bool = True, schema: dict[str, Any] | None = None
) -> None:
    """JobSets are served, by default whatever they hold."""
    schema = ANYTHING if schema is None else schema
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec: dict[str, Any] = {
        "group": "jobset.x-k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "jobsets", "kind": "JobSet"},
        "versions": [served | ({"subresources": {"status": {}}} if has_status else {})],
    }
    await api.create(DEFINITIONS, {"metadata": {"name": JOB_SETS}, "spec": spec})


async def grant(api: Api, file: str) -> None:
    """What ``kubectl apply -f`` would."""
    for body in yaml.safe_load_all((FILES / file).read_text()):
        await api.create(f"{RBAC}/{body['kind'].lower()}s", body)


async def record(clusters: Clusters, text: str) -> None:
    """The manager's word for the kinds that it mirrors."""
    await clusters.management.api.merge(RECORD, {"metadata": {"annotations": {names.KINDS: text}}})


async def seen(clusters: Clusters, **asked: Any) -> dict[str, tuple[str, str]]:
    """Verdict and text of the only kind, by cluster."""
    question = kinds_check.Asked(allow=("loopback",), where=clusters.where, **asked)
    async with kinds_check.clusters.home(clusters.where) as home:
        found = await kinds_check.reports(home, question)
    return {report.cluster: (one.verdict, one.text) for report in found for one in report.findings}


@pytest.mark.slow
async def test_a_definition_without_a_status_is_a_failure_where_sources_are(clusters: Clusters) -> None:
    """CR2: on a worker the kind's own controller writes it as it likes."""
    await registered(clusters)
    await record(clusters, text_of(job_set_kinds()))
    for plane, side in ((clusters.management, "management"), (clusters.east, "worker")):
        await define(plane.api, has_status=False)
        await grant(plane.api, f"{side}-jobset.yaml")
    found = await seen(clusters)
    text = "served as v1alpha2, without a status subresource: nothing can be mirrored"
    assert found == {"management": ("fail", text), "east": GRANTED}


@pytest.mark.slow
async def test_each_cluster_is_asked_for_each_kind(clusters: Clusters) -> None:
    """Its definition, then its permissions, then nothing is left to do; each with the manager's account."""
    await registered(clusters)
    await record(clusters, text_of(job_set_kinds()))
    verbs = ("get", "list", "watch", "create", "patch", "delete")
    missing = "missing permissions: " + ", ".join(f"{verb} jobsets" for verb in verbs)
    found = await seen(clusters)
    absent = f"not served: CustomResourceDefinition {JOB_SETS} is missing"
    assert found["east"] == ("warn", f"{absent}; this worker gets no JobSet; {missing}")
    assert found["management"][0] == "warn"
    assert found["management"][1].startswith(f"{absent}; nobody can create any; missing permissions: get jobsets, ")

    for plane in (clusters.management, clusters.east):
        await define(plane.api)
    found = await seen(clusters)
    assert found["east"] == ("fail", f"served as v1alpha2; {missing}")
    assert found["management"][1].endswith("patch jobsets, delete jobsets, patch jobsets/status")

    await grant(clusters.management.api, "management-jobset.yaml")
    await add.add(clusters.asked(no_check=True, kinds="jobset"))
    assert await seen(clusters) == {"management": GRANTED, "east": GRANTED}
    assert (await clusters.check())["kind JobSet"] == GRANTED


@pytest.mark.slow
async def test_a_worker_whose_definition_lacks_what_mirrors_need_gets_none(clusters: Clusters) -> None:
    """Here that is a failure, there a reason to choose another one; who runs it is said here alone."""
    await registered(clusters)
    for plane, side in ((clusters.management, "management"), (clusters.east, "worker")):
        schema = {"type": "object", "properties": {"spec": {"type": "object"}, "status": ANYTHING}}
        await define(plane.api, schema=schema)
        await grant(plane.api, f"{side}-jobset.yaml")
    await record(clusters, text_of(job_set_kinds()))
    found = await seen(clusters)
    lacking = "managedBy.path: spec.managedBy is no field of JobSet; suspend.path: spec.suspend is no field of JobSet"
    assert found["management"] == ("fail", f"served as v1alpha2; none is placed: {lacking}")
    assert found["east"] == ("warn", f"served as v1alpha2; {lacking}; this worker gets no JobSet")

    older = {"type": "object", "properties": {"suspend": {"type": "boolean"}}}
    schema = {"type": "object", "properties": {"spec": older, "status": ANYTHING}}
    stored = await clusters.east.api.get(f"{DEFINITIONS}/{JOB_SETS}")
    stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    await clusters.east.api.replace(f"{DEFINITIONS}/{JOB_SETS}", stored)
    found = await seen(clusters)
    assert found["east"] == ("warn", "served as v1alpha2; managedBy.path: spec.managedBy is no field of JobSet")


@pytest.mark.slow
async def test_a_kind_that_a_multikueue_may_run_is_a_failure(clusters: Clusters) -> None:
    """D25: with what to do; a worker's Kueue is no matter, nor what the operator has answered for."""
    shared = KindEntry(kind="JobSet", managed_by=ManagedByField(value=names.MULTIKUEUE_MANAGED_BY))
    await registered(clusters)
    for plane, side in ((clusters.management, "management"), (clusters.east, "worker")):
        await define(plane.api)
        await grant(plane.api, f"{side}-jobset.yaml")
        await plane.api.create(DEFINITIONS, clusters_definition())
    await record(clusters, text_of(kinds_of([shared])))
    found = await seen(clusters)
    assert found["east"] == GRANTED
    verdict, text = found["management"]
    assert verdict == "fail"
    assert text.startswith("served as v1alpha2; none is placed: a Kueue on the management cluster serves multikueueclu")
    await record(clusters, text_of(kinds_of([structs.replace(shared, beside_kueue=True)])))
    assert await seen(clusters) == {"management": GRANTED, "east": GRANTED}


async def test_a_worker_that_something_else_declares_is_not_passed_over(clusters: Clusters) -> None:
    """It is asked as any other, where a kind needs something there; else why it was not is said."""
    await registered(clusters)
    await record(clusters, text_of(job_set_kinds()))
    entry = {"uid": "u", "state": "Connected", "declared": {"by": "Secret default/prod", "key": "kubeconfig"}}
    await clusters.management.api.merge(RECORD, {"data": {"prod": json.dumps(entry)}})
    gone = "worker prod is declared by Secret default/prod, which does not exist any more"
    assert (await seen(clusters))["prod"] == ("fail", gone)
    own = await clusters.management.api.get(f"/api/v1/namespaces/{HOME}/secrets/east")
    secret = {"metadata": {"name": "prod"}, "data": own["data"]}
    await clusters.management.api.create("/api/v1/namespaces/default/secrets", secret)
    found = await seen(clusters)
    assert found["prod"] == found["east"]
    entry["declared"] = {"by": "Secret default/prod…"}
    await clusters.management.api.merge(RECORD, {"data": {"prod": json.dumps(entry)}})
    assert (await seen(clusters))["prod"][1].startswith("declared by Secret default/prod…, and not checked: ")
    await record(clusters, text_of(Kinds.of(JOB)))
    assert await seen(clusters) == {}


async def test_another_version_is_named(clusters: Clusters) -> None:
    """It is another thing to mend than a missing definition."""
    await registered(clusters)
    await record(clusters, text_of(job_set_kinds()))
    await define(clusters.east.api, "v1")
    verdict, text = (await seen(clusters))["east"]
    assert (verdict, text.partition(";")[0]) == ("warn", "version v1alpha2 is not served, only v1")


async def test_what_is_in_the_way_comes_with_how_to_mend_it(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 for a missing permission; a settings file is looked at before the manager has it."""
    await registered(clusters)
    await define(clusters.east.api)
    settings = parse(b"kinds: [JobSet]", "mirror.yaml")
    capsys.readouterr()
    with pytest.raises(Failure, match="checks failed: east"):
        await kinds_check.check(kinds_check.Asked(settings=settings, allow=("loopback",), where=clusters.where))
    printed = capsys.readouterr().out
    assert "the management cluster\n  ! kind JobSet: not served" in printed
    assert f"→ install the CustomResourceDefinition {JOB_SETS} and its controller, with version v1alpha2\n" in printed
    assert "→ mirror worker add east --context CONTEXT --kinds JobSet, with its other options, too\n" in printed

    with pytest.raises(Failure):
        await kinds_check.check(
            kinds_check.Asked(settings=settings, allow=("loopback",), form="json", where=clusters.where)
        )
    (management, east) = json.loads(capsys.readouterr().out)["items"]
    assert (management["cluster"], east["findings"][0]["verdict"]) == ("management", "fail")


async def test_where_there_are_jobs_alone_nothing_is_asked(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """And it says so."""
    await registered(clusters)
    capsys.readouterr()
    await kinds_check.check(kinds_check.Asked(allow=("loopback",), where=clusters.where))
    assert "the manager mirrors Jobs alone" in capsys.readouterr().out


async def test_a_drain_waits_for_the_kinds_that_the_manager_has_recorded(clusters: Clusters) -> None:
    """A JobSet that runs is one that runs, though the command was told nothing of JobSets."""
    await define(clusters.management.api)
    await registered(clusters)
    await record(clusters, text_of(job_set_kinds()))
    job_sets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
    body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"}}
    await clusters.management.api.create(job_sets, body | {"spec": {"managedBy": names.DEFAULT_MANAGED_BY}})
    placed = {"type": names.PLACED, "status": "True", "message": "east", "reason": "Placed"}
    await clusters.management.api.merge(f"{job_sets}/train/status", {"status": {"conditions": [placed]}})
    with pytest.raises(drain.Failure, match=r"timed out: 1 Job.* still running \(JobSet default/train\);"):
        await drain.drain(clusters.where, "east", timeout_seconds=0)


async def test_a_record_of_another_version_is_an_error(clusters: Clusters) -> None:
    """Nothing is done by half of it: a drain that overlooks a kind would end too early."""
    await registered(clusters)
    await record(clusters, '[{"kind": "JobSet", "colour": "red"}]')
    with pytest.raises(ClusterError, match=r"jobmirror.io/kinds: .*colour: unknown key.*the version of mirror"):
        await drain.drain(clusters.where, "east", timeout_seconds=0)


def test_kinds_that_there_are_not_are_refused() -> None:
    """With what was probably meant."""
    line = ["worker", "add", "east", "--context", "east", "--dry-run", "--kinds"]
    result = CliRunner().invoke(main, [*line, "JobSex"])
    assert result.exit_code == 2
    assert "JobSex: expected a kind that is built in (mirror kinds), or PLURAL.GROUP. Did you mean 'JobSet'?" in (
        result.output
    )


async def test_a_path_that_is_no_field_is_named_by_its_key(clusters: Clusters) -> None:
    """A misspelt one, or one that an older definition does not have; by the schema that each cluster publishes."""
    await registered(clusters)
    text = b"kinds: [{kind: Simulation, resource: simulations.v1.example.com, suspend: {path: spec.pausd}, "
    text += b"done: {succeeded: [phase=Done], failed: [phase=Lost]}, lost: {set: {phase: Lost}}, record: annotation}]"
    spec = {"type": "object", "properties": {"paused": {"type": "boolean"}, "managedBy": {"type": "string"}}}
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names_of = {"plural": "simulations", "kind": "Simulation"}
    body = {"group": "example.com", "scope": "Namespaced", "names": names_of, "versions": [version]}
    definition = {"metadata": {"name": "simulations.example.com"}, "spec": body}
    await clusters.east.api.create(DEFINITIONS, definition)
    await add.add(clusters.asked(no_check=True, kinds="simulations.example.com"))
    found = await seen(clusters, settings=parse(text, "mirror.yaml"))
    said = "served as v1; suspend.path: spec.pausd is no field of Simulation; this worker gets no Simulation"
    assert found["east"] == ("warn", said)

    # Here, nothing of it would be placed.
    version["subresources"] = {"status": {}}
    await clusters.management.api.create(DEFINITIONS, definition)
    found = await seen(clusters, settings=parse(text, "mirror.yaml"))
    verdict, said = found["management"]
    assert verdict == "fail"
    assert said.startswith("served as v1; none is placed: suspend.path: spec.pausd is no field of Simulation")


def test_of_a_kind_of_ones_own_it_is_said_what_to_put_into_a_copy_of_which_file() -> None:
    """There is no file for it."""
    text = b"kinds: [{kind: Simulation, resource: simulations.v1.example.com, lost: {set: {phase: Lost}}, "
    text += b"done: {succeeded: [phase=Done], failed: [phase=Lost]}}]"
    kind = kinds_of(parse(text, "mirror.yaml").kinds)["Simulation"]
    found = judge_on_management(KindFacts(kind, ("v1",), (Permission("list", "example.com", "simulations"),)))
    copy = "a copy of config/rbac/kinds/management-jobset.yaml for group example.com and resource simulations"
    assert (found.verdict, found.fix) == ("fail", f"kubectl apply -f FILE, with FILE {copy}")
