"""Which controllers of other kinds end-to-end tests can run, and what each needs (``operators`` runs them).

JobSet's and mpi-operator are built wherever control planes are; the others only where ``MIRROR_E2E_KINDS`` asks for
their kinds (``kind_choice``), as each takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from e2e import go_modules
from e2e.controlplane.build import GOMOD
from e2e.controlplane.client import Json
from mirror.kube.resources import Resource

JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
MPIJOBS = Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
TRAINJOBS = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
PYTORCHJOBS, TFJOBS, XGBOOSTJOBS, PADDLEJOBS, JAXJOBS = (
    Resource("kubeflow.org", "v1", f"{kind.lower()}s", kind)
    for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob")
)
PIPELINERUNS = Resource("tekton.dev", "v1", "pipelineruns", "PipelineRun")
TASKRUNS = Resource("tekton.dev", "v1", "taskruns", "TaskRun")
RAYJOBS, RAYCLUSTERS, RAYSERVICES = (
    Resource("ray.io", "v1", f"{kind.lower()}s", kind) for kind in ("RayJob", "RayCluster", "RayService")
)
APPWRAPPERS = Resource("workload.codeflare.dev", "v1beta2", "appwrappers", "AppWrapper")
_RUNTIMES = Resource(
    "trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", namespaced=False
)
_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


@dataclass(frozen=True, slots=True)
class Files:
    """What a controller is given."""

    kubeconfig: Path
    directory: Path
    """Its own; its webhooks' ``tls.crt`` and ``tls.key`` are there."""
    port: int
    """Of its webhooks, on 127.0.0.1."""


def _by_position(files: Files) -> Sequence[str | Path]:
    """As our own programs take it (``controlplane/gomod``)."""
    return files.kubeconfig, str(files.port), files.directory


@dataclass(frozen=True, slots=True)
class Given:
    """An object that a cluster has for a controller's sake."""

    resource: Resource
    body: Json
    namespace: str = ""

    @property
    def collection(self) -> str:
        """The path where it is created."""
        return self.resource.path(self.namespace)

    @property
    def path(self) -> str:
        """Its own path."""
        return self.resource.path(self.namespace, self.body["metadata"]["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A controller, and what its cluster must have for it."""

    program: str
    module: str
    script: str = ""
    """A file beside this one that is run in place of the program, where that cannot run here."""
    kinds: tuple[Resource, ...]
    """What it runs."""
    definitions: tuple[str, ...] = ()
    """Where further CRDs that it wants to be served are in its module."""
    configuration: Callable[[], Iterable[Given]] = tuple
    """What it reads when it starts."""
    named: tuple[Given, ...] = field(default=(), hash=False)
    """What objects of its kinds name; its own webhooks may look at it first."""
    arguments: Callable[[Files], Sequence[str | Path]] = _by_position
    webhooks: str = ""
    """Where its registrations are in its module, or elsewhere if the path is absolute; without it, it has none."""
    probe: Json = field(default_factory=dict, hash=False)
    """Of its first kind, what its webhooks change or deny."""
    is_answer: Callable[[Json | None], bool] = lambda stored: stored is None
    """Whether they did, by what is stored; None: it was denied."""

    def takes(self, resources: Sequence[str]) -> bool:
        """Whether a webhook for these is needed here: JobSet's of pods are for exclusive placement alone."""
        return not {"pods", "jobs"} & {*resources}


def _jobset_arguments(files: Files) -> Sequence[str | Path]:
    config = files.directory / "jobset.yaml"
    settings = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": files.port, "certDir": str(files.directory)},
    }
    config.write_text(yaml.safe_dump(settings))
    return f"--kubeconfig={files.kubeconfig}", f"--config={config}"


def _pod(name: str) -> Json:
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": name, "image": "none", "command": ["none"]}]}}


JOBSET = Operator(
    program="jobset-controller",
    module=go_modules.JOBSET,
    kinds=(JOBSETS,),
    arguments=_jobset_arguments,
    webhooks="config/components/webhook/manifests.yaml",
    probe={"spec": {"replicatedJobs": [{"name": "main", "template": {"spec": {"template": _pod("main")}}}]}},
    is_answer=lambda stored: bool(stored and stored["spec"].get("successPolicy")),
)
MPI_OPERATOR = Operator(
    program="mpi-operator",
    module=go_modules.DEFINITIONS["MPIJob"][0],
    kinds=(MPIJOBS,),
    arguments=lambda files: [files.kubeconfig],
)
TRAINING_OPERATOR = Operator(
    program="training-operator",
    module=go_modules.DEFINITIONS["PyTorchJob"][0],
    kinds=(PYTORCHJOBS, TFJOBS, XGBOOSTJOBS, PADDLEJOBS),
    webhooks="manifests/base/webhook/manifests.yaml",
    probe={
        "spec": {
            "runPolicy": {"managedBy": "nobody"},
            "pytorchReplicaSpecs": {"Master": {"template": _pod("pytorch")}},
        }
    },
)
JAX_OPERATOR = Operator(
    program="training-operator",
    module=go_modules.DEFINITIONS["PyTorchJob"][0],
    kinds=(JAXJOBS,),
    arguments=lambda files: [*_by_position(files), JAXJOBS.kind],
)
"""The same for JAXJobs alone, which it runs whatever their ``managedBy`` says; its webhook does not look at that."""


def _task(name: str) -> Json:
    return {"steps": [{"name": name, "image": "none", "command": ["none"]}]}


KUBERAY = Operator(
    program="kuberay",
    module=go_modules.DEFINITIONS["RayJob"][0],
    script="ray_player.py",
    kinds=(RAYJOBS, RAYCLUSTERS, RAYSERVICES),
    arguments=lambda files: [files.kubeconfig],
)
APPWRAPPER = Operator(
    program="appwrapper-controller",
    module=go_modules.DEFINITIONS["AppWrapper"][0],
    kinds=(APPWRAPPERS,),
    webhooks="config/webhook/manifests.yaml",
    probe={
        "spec": {
            "suspend": True,
            "components": [
                {
                    "template": {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "metadata": {"name": "main"},
                        "spec": {"template": _pod("main")},
                    }
                }
            ],
        }
    },
    is_answer=lambda stored: bool(stored and "workload.codeflare.dev/user" in stored["metadata"].get("labels", {})),
)
RUNTIME = "plain"
"""The ClusterTrainingRuntime of each cluster with the Trainer."""
TRAINER = Operator(
    program="trainer-controller",
    module=go_modules.DEFINITIONS["TrainJob"][0],
    kinds=(TRAINJOBS,),
    definitions=(
        "manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
        "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml",
    ),
    named=(
        Given(
            _RUNTIMES,
            {
                "apiVersion": _RUNTIMES.api_version,
                "kind": _RUNTIMES.kind,
                "metadata": {"name": RUNTIME},
                "spec": {
                    "template": {
                        "spec": {
                            "replicatedJobs": [
                                {"name": "node", "template": {"spec": {"backoffLimit": 0, "template": _pod("node")}}}
                            ]
                        }
                    }
                },
            },
        ),
    ),
    webhooks="manifests/base/webhook/manifests.yaml",
    probe={"spec": {"runtimeRef": {"name": RUNTIME}, "runtimePatches": [{"manager": "e2e.example.com/probe"}]}},
    is_answer=lambda stored: bool(stored and stored["spec"]["runtimePatches"][0].get("time")),
)


def _tekton_configuration() -> Iterable[Given]:
    """Its ConfigMaps as they are shipped, in the namespace that our program takes them from."""
    found = go_modules.module_directory(go_modules.DEFINITIONS["TaskRun"][0]) / "config"
    for path in sorted(found.glob("config-*.yaml")):
        body: Json = yaml.safe_load(path.read_text())
        metadata = {"name": body["metadata"]["name"], "labels": body["metadata"].get("labels", {})}
        yield Given(_CONFIG_MAPS, {**body, "metadata": metadata}, "default")


TEKTON = Operator(
    program="tekton-controller",
    module=go_modules.DEFINITIONS["TaskRun"][0],
    kinds=(TASKRUNS, PIPELINERUNS),
    definitions=tuple(
        f"config/300-crds/300-{name}.yaml"
        for name in ("customrun", "pipeline", "resolutionrequest", "stepaction", "task", "verificationpolicy")
    ),
    configuration=_tekton_configuration,
    webhooks=str(GOMOD / "tekton/webhooks.yaml"),
    probe={"spec": {"taskSpec": _task("main")}},
    is_answer=lambda stored: bool(stored and stored["spec"].get("timeout")),
)
