"""What runs in a control plane, and the command line of each of its programs. Called by ``cluster`` only.

Everything listens on loopback or on sockets in the cluster's own directory. Not here: starting and stopping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from e2e.controlplane.audit import Level

NODE_YAML = Path(__file__).parent / "node.yaml"
STAGES_YAML = Path(__file__).parent / "stages.yaml"
NODE_NAME = "node-0"

JOB_CONTROLLERS = ",".join(
    (
        "job-controller",
        "cronjob-controller",
        "ttl-after-finished-controller",
        "garbage-collector-controller",
        "namespace-controller",
        "pod-garbage-collector-controller",  # ends deleted pods that no node ever had
        "clusterrole-aggregation-controller",  # without it the role `edit` allows nothing
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a control plane has besides etcd and an API server with RBAC."""

    controllers: str | None = None
    """``--controllers`` of kube-controller-manager, such as ``*`` or ``*,-job-controller``; None: it is not started."""
    scheduler: bool = False
    kwok: bool = False
    """Whether pods on ``node-0`` run and end (``stages.yaml``). Without a scheduler, ``spec.nodeName`` must name it."""
    audit: Level | None = None
    service_accounts: bool = False
    """Whether pods need a service account that exists; the controllers then have to make ``default``."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    client_qps: int = 1000
    """Requests a second that the controller manager and the scheduler allow themselves."""
    client_burst: int = 2000
    apiserver_args: Sequence[str] = ()
    controller_manager_args: Sequence[str] = ()

    @property
    def programs(self) -> list[str]:
        """The binaries that it needs; kubectl is always among them."""
        wanted = {
            "etcd": True,
            "kube-apiserver": True,
            "kubectl": True,
            "kube-controller-manager": self.controllers is not None,
            "kube-scheduler": self.scheduler,
            "kwok": self.kwok,
        }
        return [name for name, is_wanted in wanted.items() if is_wanted]


BARE = Shape()
MANAGEMENT = Shape(controllers=JOB_CONTROLLERS, audit="Metadata")
WORKER = Shape(controllers=JOB_CONTROLLERS, scheduler=True, kwok=True, audit="Metadata")


@dataclass(frozen=True, slots=True)
class Files:
    """Where the programs of one control plane find and put what they share."""

    directory: Path

    def __getitem__(self, name: str) -> Path:
        return self.directory / name


def etcd(binary: Path, files: Files) -> list[str | Path]:
    """Listens on sockets of the file system, so it needs no port; never flushes to disk, so it is quick."""
    return [
        binary,
        f"--data-dir={files['etcd']}",
        f"--listen-client-urls=unix://{files['etcd.sock']}",
        "--advertise-client-urls=http://127.0.0.1:1",  # must be an address; nobody asks for it
        "--listen-peer-urls=unix://peer.sock:0",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(binary: Path, files: Files, port: int, shape: Shape) -> list[str | Path]:
    """Shares its port with the socket that keeps the port ours (``cluster``)."""
    audit = [
        f"--audit-policy-file={files['audit-policy.json']}",
        f"--audit-log-path={files['audit.log']}",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=10000",  # MiB: a new file would begin at 100, and who counts would begin anew
    ]
    return [
        binary,
        f"--etcd-servers=unix://{files['etcd.sock']}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--cert-dir={files['apiserver']}",
        f"--tls-cert-file={files['serving.crt']}",
        f"--tls-private-key-file={files['serving.key']}",
        f"--client-ca-file={files['ca.crt']}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files['tokens.pub']}",
        f"--service-account-signing-key-file={files['tokens.key']}",
        "--authorization-mode=RBAC",
        # No controller here makes service accounts for pods (by default), or takes the taint off a new node.
        f"--disable-admission-plugins={'' if shape.service_accounts else 'ServiceAccount,'}TaintNodesByCondition",
        *_feature_gates(shape),
        *(audit if shape.audit else ()),
        *shape.apiserver_args,
    ]


def controller_manager(binary: Path, files: Files, kubeconfig: Path, shape: Shape) -> list[str | Path]:
    """Acts with one identity for all controllers, at once, without a lease."""
    return [
        binary,
        f"--kubeconfig={kubeconfig}",
        f"--controllers={shape.controllers}",
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials=false",
        f"--service-account-private-key-file={files['tokens.key']}",
        f"--root-ca-file={files['ca.crt']}",
        f"--kube-api-qps={shape.client_qps}",
        f"--kube-api-burst={shape.client_burst}",
        *_feature_gates(shape),
        *shape.controller_manager_args,
    ]


def scheduler(binary: Path, kubeconfig: Path, shape: Shape) -> list[str | Path]:
    """Binds pods to the one node that there is."""
    return [
        binary,
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--kube-api-qps={shape.client_qps}",
        f"--kube-api-burst={shape.client_burst}",
        *_feature_gates(shape),
    ]


def kwok(binary: Path, kubeconfig: Path) -> list[str | Path]:
    """Plays the kubelet of nodes that are marked as fake, and of no other."""
    return [
        binary,
        f"--kubeconfig={kubeconfig}",
        f"--config={STAGES_YAML}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
    ]


def _feature_gates(shape: Shape) -> list[str]:
    gates = ",".join(f"{name}={str(enabled).lower()}" for name, enabled in shape.feature_gates.items())
    return [f"--feature-gates={gates}"] if gates else []
