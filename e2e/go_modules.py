"""Files of other projects' Go modules, such as their CRDs, as the module proxy has them; kept by Go's own cache.

Versions are checked against the checksum database by ``go`` itself. Needs the Go that ``controlplane`` builds with.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import yaml

from e2e.controlplane.build import go_toolchain
from e2e.controlplane.client import Json
from e2e.controlplane.toolchain import CannotBuild

JOBSET = "sigs.k8s.io/jobset@v0.12.0"
_TRAINING = "github.com/kubeflow/training-operator@v1.9.4"
_TEKTON = "github.com/tektoncd/pipeline@v1.15.0"
_VOLCANO = "volcano.sh/volcano@v1.15.1"
_RAY = "github.com/ray-project/kuberay/ray-operator@v1.6.2"
DEFINITIONS = {
    "JobSet": (JOBSET, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
    "MPIJob": ("github.com/kubeflow/mpi-operator@v0.8.2", "manifests/base/kubeflow.org_mpijobs.yaml"),
    "TrainJob": (
        "github.com/kubeflow/trainer/v2@v2.3.0",
        "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml",
    ),
    **{
        kind: (_TRAINING, f"manifests/base/crds/kubeflow.org_{kind.lower()}s.yaml")
        for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob")
    },
    "PipelineRun": (_TEKTON, "config/300-crds/300-pipelinerun.yaml"),
    "TaskRun": (_TEKTON, "config/300-crds/300-taskrun.yaml"),
    **{
        kind: (_RAY, f"config/crd/bases/ray.io_{kind.lower()}s.yaml") for kind in ("RayJob", "RayCluster", "RayService")
    },
    "AppWrapper": (
        "github.com/project-codeflare/appwrapper@v1.2.2",
        "config/crd/bases/workload.codeflare.dev_appwrappers.yaml",
    ),
}
"""By kind: a module, and where in it the CRD is."""
NOT_BUILT_IN = {
    "JAXJob": (_TRAINING, "manifests/base/crds/kubeflow.org_jaxjobs.yaml"),
    "SparkApplication": (
        "github.com/kubeflow/spark-operator/v2@v2.5.2",
        "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml",
    ),
    "Workflow": (
        "github.com/argoproj/argo-workflows/v3@v3.7.17",
        "manifests/base/crds/full/argoproj.io_workflows.yaml",
    ),
    "Job": (_VOLCANO, "config/crd/volcano/bases/batch.volcano.sh_jobs.yaml"),
    "Command": (_VOLCANO, "config/crd/volcano/bases/bus.volcano.sh_commands.yaml"),
    "LeaderWorkerSet": (
        "sigs.k8s.io/lws@v0.9.0",
        "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
    ),
}
"""The same of kinds that are not built in (``test_kinds_not_built_in``); a Job is Volcano's."""
_SECONDS = 300.0


@cache
def module_directory(module: str) -> Path:
    """Where the files of ``PATH@VERSION`` are; read only.

    Raises:
        CannotBuild: it cannot be had.
    """
    go = go_toolchain()
    with tempfile.TemporaryDirectory(prefix="mirror-module-") as elsewhere:
        done = subprocess.run(
            [go.program, "mod", "download", "-json", module],
            cwd=elsewhere,
            env=go.environment(),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    try:
        found = json.loads(done.stdout)
        return Path(found["Dir"])
    except (ValueError, KeyError):
        raise CannotBuild(f"{module} cannot be downloaded: {(done.stdout + done.stderr)[-500:]}") from None


def definition(module: str, path: str) -> Json:
    """A CRD of a module, without conversion webhooks: nothing answers them here."""
    found: Json = yaml.load((module_directory(module) / path).read_text(), Loader=yaml.CSafeLoader)
    found.pop("status", None)
    found["spec"].pop("conversion", None)
    return found


def definition_of(kind: str) -> Json:
    """The CRD of a kind that tests know."""
    return definition(*{**DEFINITIONS, **NOT_BUILT_IN}[kind])


def jobset_definition() -> Json:
    """The CRD of JobSets."""
    return definition_of("JobSet")
