"""Other people's clients against the embedded server: kubectl, the typed Python client, upstream's Job controller."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from kubernetes_asyncio import client as typed
from kubernetes_asyncio import config, watch

from e2e.controlplane import components
from e2e.controlplane.assets import find_binaries
from e2e.controlplane.client import Client
from e2e.controlplane.components import Files, Shape
from e2e.controlplane.process import Program
from e2e.controlplane.scratch import Scratch
from e2e.jobs import until

SAMPLES = Path(__file__).parent.parent / "config" / "samples"
ENDS = {
    "plain": "Complete",
    "indexed": "Complete",
    "success-policy": "Complete",
    "failing": "Failed",
    "pod-failure-policy": "Failed",
    "backoff-limit-per-index": "Failed",
    "suspended": "Suspended",
}
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": ["true"]}]}


@dataclass
class Embedded:
    """A running ``mirror apiserver`` whose Jobs are run by kube-controller-manager's controller."""

    directory: Path
    kubeconfig: Path
    client: Client

    async def kubectl(self, *arguments: str, stdin: str = "", allowed: tuple[int, ...] = (0,)) -> str:
        """Run the real kubectl; returns what it printed."""
        binary = find_binaries("kubectl")["kubectl"]
        process = await asyncio.create_subprocess_exec(
            binary,
            f"--kubeconfig={self.kubeconfig}",
            *arguments,
            env={"HOME": str(self.directory), "PATH": "/usr/bin:/bin"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(stdin.encode())
        assert process.returncode in allowed, f"kubectl {' '.join(arguments)}: {process.returncode}\n{err.decode()}"
        return out.decode()

    async def job(self, name: str, ended: Callable[[dict[str, Any]], object], seconds: float = 180) -> dict[str, Any]:
        """The Job, once it is as wanted."""
        path = f"/apis/batch/v1/namespaces/default/jobs/{name}"
        return await self.client.wait_until(path, lambda job: job and ended(job), seconds=seconds)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def embedded(binaries: None) -> AsyncIterator[Embedded]:
    """All neighbours but the Job controller are ours."""
    with closing(Scratch("embedded-clients")) as scratch:
        kubeconfig = scratch.path / "admin.kubeconfig"
        server = Program(
            [
                Path(sys.executable).with_name("mirror"),
                "apiserver",
                "--listen=127.0.0.1:0",
                f"--kubeconfig-out={kubeconfig}",
                "--controllers=all,-job",
            ],
            scratch,
        )
        server.start()
        async with asyncio.timeout(120):
            while not kubeconfig.exists():
                server.check()
                await asyncio.sleep(0.05)
        # What it signs tokens with is its own affair; the controller manager only wants to be given something.
        (scratch.path / "ca.crt").write_text(_authority(kubeconfig))
        (scratch.path / "tokens.key").write_bytes(_key())
        shape = Shape(controllers="job-controller", client_qps=500, client_burst=1000)
        binary = find_binaries("kube-controller-manager")["kube-controller-manager"]
        controller = Program(components.controller_manager(binary, Files(scratch.path), kubeconfig, shape), scratch)
        controller.start()
        try:
            async with Client(kubeconfig) as client:
                yield Embedded(scratch.path, kubeconfig, client)
            controller.check()
            server.check()
        finally:
            await controller.kill()
            await server.kill()


def _key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _authority(kubeconfig: Path) -> str:
    import base64

    found = yaml.safe_load(kubeconfig.read_text())
    return base64.b64decode(found["clusters"][0]["cluster"]["certificate-authority-data"]).decode()


def _has(kind: str) -> Callable[[dict[str, Any]], bool]:
    def answer(job: dict[str, Any]) -> bool:
        conditions = job.get("status", {}).get("conditions") or []
        return any(one["type"] == kind and one["status"] == "True" for one in conditions)

    return answer


async def test_upstreams_job_controller_runs_every_kind_of_job(embedded: Embedded) -> None:
    """It speaks protobuf, patches strategically, and believes every answer."""
    for name in ENDS:
        body = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text())
        body["spec"].pop("managedBy", None)
        await embedded.client.create("/apis/batch/v1/namespaces/default/jobs", body)
    for name, end in ENDS.items():
        job = await embedded.job(name, _has(end))
        assert not job["status"].get("uncountedTerminatedPods")
    pods = await embedded.client.list("/api/v1/namespaces/default/pods")
    assert not any("batch.kubernetes.io/job-tracking" in pod["metadata"].get("finalizers", []) for pod in pods)
    policy = await embedded.job("pod-failure-policy", _has("Failed"))
    assert {one["reason"] for one in policy["status"]["conditions"]} == {"PodFailurePolicy"}
    for name in ENDS:
        await embedded.kubectl("delete", "job", name, "--wait", "--timeout=180s")
    # They are collected once their Job is gone.
    await until(
        lambda: embedded.client.list("/api/v1/namespaces/default/pods"),
        lambda left: all("deletionTimestamp" in pod["metadata"] for pod in left),
    )


async def test_kubectl_lives_with_a_job(embedded: Embedded) -> None:
    """Apply, wait, get, describe, logs, events, label, annotate, patch, delete."""
    manifest = yaml.safe_dump(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "day"}, "spec": {"template": {"spec": POD}}}
    )
    assert await embedded.kubectl("apply", "-f", "-", stdin=manifest) == "job.batch/day created\n"
    assert await embedded.kubectl("apply", "-f", "-", stdin=manifest) == "job.batch/day unchanged\n"
    assert "condition met" in await embedded.kubectl("wait", "--for=condition=Complete", "job/day", "--timeout=180s")
    assert (await embedded.kubectl("get", "jobs", "day", "--no-headers")).split()[:3] == ["day", "Complete", "1/1"]
    described = await until(lambda: embedded.kubectl("describe", "job", "day"), lambda text: "SuccessfulCreate" in text)
    assert "Pods Statuses:" in described
    assert await embedded.kubectl("logs", "job/day") is not None
    assert "SuccessfulCreate" in await embedded.kubectl("events", "--for=job/day")
    assert "labeled" in await embedded.kubectl("label", "job", "day", "team=red")
    assert "day" in await embedded.kubectl("get", "jobs", "-l", "team=red", "-o", "name")
    assert "annotated" in await embedded.kubectl("annotate", "job", "day", "note=x")
    patch = '{"spec":{"ttlSecondsAfterFinished":1000}}'
    assert "patched" in await embedded.kubectl("patch", "job", "day", "--type=strategic", "-p", patch)
    assert await embedded.kubectl("delete", "job", "day") == 'job.batch "day" deleted from default namespace\n'


async def test_kubectl_applies_on_both_sides(embedded: Embedded) -> None:
    """A conflict is told, a difference is shown, and force takes over."""
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sides"}, "data": {"a": "1"}}
    manifest = json.dumps(body)
    assert "serverside-applied" in await embedded.kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    changed = json.dumps(body | {"data": {"a": "2"}})
    shown = await embedded.kubectl("diff", "--server-side", "-f", "-", stdin=changed, allowed=(1,))
    assert '-  a: "1"' in shown
    assert '+  a: "2"' in shown
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    await embedded.kubectl(*other, stdin=changed, allowed=(1,))
    assert "serverside-applied" in await embedded.kubectl(*other, "--force-conflicts", stdin=changed)
    fields = await embedded.kubectl("get", "cm", "sides", "--show-managed-fields", "-o", "jsonpath={..manager}")
    assert "other" in fields.split()


async def test_kubectl_knows_what_is_served(embedded: Embedded) -> None:
    """Discovery, explanations, and the check of a manifest's fields."""
    resources = await embedded.kubectl("api-resources", "-o", "name")
    assert {"jobs.batch", "pods", "cronjobs.batch", "customresourcedefinitions.apiextensions.k8s.io"} <= set(
        resources.split()
    )
    assert "managedBy" in await embedded.kubectl("explain", "job.spec", "--recursive")
    assert "FIELD: managedBy <string>" in await embedded.kubectl("explain", "job.spec.managedBy")
    wrong = json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wrong"}, "dta": {}},
    )
    await embedded.kubectl("create", "--validate=strict", "-f", "-", stdin=wrong, allowed=(1,))
    assert "Server Version" in await embedded.kubectl("version")
    assert await embedded.kubectl("auth", "can-i", "create", "jobs") == "yes\n"


async def test_kubectl_makes_a_job_of_a_cronjob(embedded: Embedded) -> None:
    """Owned by it, and run like others."""
    await embedded.kubectl("create", "cronjob", "nightly", "--image=busybox", "--schedule=0 3 * * *")
    await embedded.kubectl("create", "job", "tonight", "--from=cronjob/nightly")
    job = await embedded.job("tonight", _has("Complete"))
    assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
    await embedded.kubectl("delete", "cronjob", "nightly", "--cascade=foreground", "--timeout=180s")
    assert await embedded.kubectl("get", "jobs", "tonight", "--ignore-not-found") == ""


async def test_kubectl_defines_a_kind(embedded: Embedded) -> None:
    """And is told its columns, its explanation and its rules."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": {"type": "integer", "minimum": 1, "description": "How big."}},
            }
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boxes", "kind": "Box"},
        "versions": [version],
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": spec,
    }
    await embedded.kubectl("apply", "-f", "-", stdin=json.dumps(definition))
    await embedded.kubectl("wait", "--for=condition=Established", "crd/boxes.example.com", "--timeout=180s")
    box = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b"}, "spec": {"size": 3}}
    await embedded.kubectl("apply", "-f", "-", stdin=json.dumps(box))
    assert (await embedded.kubectl("get", "boxes", "--no-headers")).split() == ["b", "3"]
    assert "How big." in await embedded.kubectl("explain", "box.spec.size")
    await embedded.kubectl("apply", "-f", "-", stdin=json.dumps(box | {"spec": {"size": 0}}), allowed=(1,))
    await embedded.kubectl("delete", "crd", "boxes.example.com", "--timeout=180s")


async def test_the_typed_client_reads_what_it_writes(embedded: Embedded) -> None:
    """Models there and back, a list, a watch, a patch and a refusal."""
    configuration = typed.Configuration()
    await config.load_kube_config(config_file=str(embedded.kubeconfig), client_configuration=configuration)
    async with typed.ApiClient(configuration) as api:
        batch = typed.BatchV1Api(api)
        container = typed.V1Container(name="c", image="busybox")
        template = typed.V1PodTemplateSpec(spec=typed.V1PodSpec(restart_policy="Never", containers=[container]))
        body = typed.V1Job(
            metadata=typed.V1ObjectMeta(name="typed"), spec=typed.V1JobSpec(template=template, suspend=True)
        )
        made = await batch.create_namespaced_job("default", body)
        assert (made.spec.completion_mode, made.spec.backoff_limit) == ("NonIndexed", 6)
        found = await batch.list_namespaced_job("default", field_selector="metadata.name=typed")
        assert [job.metadata.uid for job in found.items] == [made.metadata.uid]
        await batch.patch_namespaced_job("typed", "default", {"spec": {"suspend": False}})
        seen = watch.Watch()
        async with asyncio.timeout(180):
            stream = seen.stream(
                batch.list_namespaced_job, "default", field_selector="metadata.name=typed", timeout_seconds=170
            )
            async for event in stream:
                if event["object"].status.succeeded == 1 and event["object"].status.completion_time:
                    break
        await seen.close()
        with pytest.raises(typed.ApiException) as refused:
            await batch.create_namespaced_job("default", body)
        assert refused.value.status == 409
        await batch.delete_namespaced_job("typed", "default", propagation_policy="Background")
