"""The harness itself: control planes come up, fail on demand, count requests, run pods, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from e2e.controlplane import keeper
from e2e.controlplane.assets import MissingBinaries, find_binaries, start_timeout_seconds
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE, NODE_NAME, Files, Shape, apiserver
from e2e.controlplane.plane import CannotDo, ControlPlane
from e2e.controlplane.process import ProgramEnded
from e2e.controlplane.provider import Binaries, Existing, choose_provider, worker_names
from e2e.jobs import until as until_seen

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
ROOT = Path(__file__).parent.parent


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def solo(binaries: None) -> AsyncIterator[Cluster]:
    """A control plane of this file alone, since its tests kill it: nothing but etcd and an API server."""
    async with Cluster.start("solo", Shape(audit="Request")) as cluster:
        yield cluster


def job(annotations: dict[str, str], **spec: object) -> Json:
    """A Job whose pods fare as the annotations say; prefixes are added."""
    return {
        "metadata": {"name": "job"},
        "spec": {
            **spec,
            "template": {
                "metadata": {"annotations": {f"e2e.jobmirror.io/{key}": value for key, value in annotations.items()}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]},
            },
        },
    }


async def until(condition: Callable[[], bool], *, seconds: float = 60) -> None:
    """Wait for something that nobody announces."""
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return
            await asyncio.sleep(0.02)


def noted_pids(directory: Path) -> list[int]:
    """The processes of every control plane whose directory is in this one."""
    return [int(note.read_text().split()[0]) for note in directory.glob("jobmirror-*/*.pid")]


def is_running(pid: int) -> bool:
    """Whether a process has this number, and is no zombie."""
    return bool(keeper.birth(pid))


class TestClusters:
    """One control plane, and what tests can do to it."""

    async def test_a_control_plane_is_ready_in_seconds(self, binaries: None) -> None:
        """From nothing to an answering API server takes a few seconds, also on a busy machine."""
        started = time.monotonic()

        async with Cluster.start("quick", BARE) as cluster:
            assert "v1" in await cluster.kubectl("api-versions")
            assert time.monotonic() - started < 60

    async def test_a_restart_keeps_address_and_data(self, solo: Cluster) -> None:
        """A killed API server refuses connections; after its restart clients find what they had, where they had it."""
        client = solo.client()
        await client.create(CONFIGMAPS, {"metadata": {"name": "kept"}, "data": {"a": "b"}})

        await solo.kill_apiserver()
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.get(CONFIGMAPS)
        await solo.restart_apiserver()

        kept = await client.get(f"{CONFIGMAPS}/kept")
        assert kept["data"] == {"a": "b"}

    async def test_a_paused_api_server_hangs_until_it_is_resumed(self, solo: Cluster) -> None:
        """Nothing is refused and nothing is answered, as with a network that swallows packets."""
        client = solo.client()
        await client.get("/version")

        solo.pause_apiserver()
        waiting = asyncio.create_task(client.get("/version"))
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        solo.resume_apiserver()

        assert not done
        assert "gitVersion" in await waiting

    async def test_rights_are_those_that_rbac_gives(self, solo: Cluster) -> None:
        """Users and service accounts are known, and refused until something is bound to them or their group."""
        await solo.kubectl("create", "role", "see", "--verb=list", "--resource=configmaps", "--namespace=default")
        await solo.kubectl("create", "rolebinding", "see", "--role=see", "--group=readers", "--namespace=default")
        nobody = solo.client(solo.kubeconfig_for("nobody"))
        robot = solo.client(await solo.service_account_kubeconfig("default", "robot"))
        reader = solo.client(solo.kubeconfig_for("reader", groups=["readers"]))

        for user, client in (("nobody", nobody), ("system:serviceaccount:default:robot", robot)):
            with pytest.raises(StatusError, match=f'User "{user}" cannot list') as refused:
                await client.list(CONFIGMAPS)
            assert refused.value.status == 403
        # The server hears of new bindings a moment later.
        await until_seen(lambda: reader.list(CONFIGMAPS, labelSelector="no=such"), lambda found: found == [])

    async def test_the_audit_log_has_every_request_once(self, solo: Cluster) -> None:
        """Requests are counted by user agent, with what was sent; a watch that is still open counts as one."""
        async with Client(solo.kubeconfig, user_agent="counted") as client:
            for name in ("one", "two", "three"):
                await client.create(CONFIGMAPS, {"metadata": {"name": name}})
            await client.delete(f"{CONFIGMAPS}/two")
            events = client.watch(CONFIGMAPS, "0")
            await anext(events)
            entries = [entry for entry in await solo.audit_entries() if entry.user_agent == "counted"]
            await events.aclose()

        verbs = ["create", "create", "create", "delete", "watch"]
        assert verbs == [entry.verb for entry in entries]
        assert {"configmaps"} == {entry.resource for entry in entries}
        assert [entry.code for entry in entries] == [201, 201, 201, 200, 0]
        assert entries[2].body["metadata"]["name"] == "three"

    async def test_without_an_audit_log_none_is_shown(self, binaries: None) -> None:
        """What was not asked for at the start cannot be had later; it is said, not shown as nothing."""
        cluster = Cluster("unstarted", BARE)
        try:
            with pytest.raises(CannotDo, match="without an audit log"):
                await cluster.audit_entries()
        finally:
            await cluster.stop()

    def test_the_shape_reaches_the_command_line(self) -> None:
        """Feature gates and further arguments are handed on; without an audit level there is no audit."""
        shape = Shape(feature_gates={"A": True, "B": False}, apiserver_args=["--v=2"])

        command = apiserver(Path("apiserver"), Files(Path("d")), 1, shape)

        assert command[-2:] == ["--feature-gates=A=true,B=false", "--v=2"]
        assert not [part for part in command if "audit" in str(part)]


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for sockets, whose paths must be short: those of pytest are too long where tests run side by side."""
    with tempfile.TemporaryDirectory(prefix="up-") as folder:
        yield Path(folder)


class TestLeavings:
    """Whatever happens, no process and no file stays behind."""

    async def test_leaving_the_block_ends_and_removes_everything(self, binaries: None) -> None:
        """Programs are gone when ``stop`` returns, a paused one too, and so is the directory."""
        async with Cluster.start("leaving", BARE) as cluster:
            pids = cluster.pids
            cluster.pause_apiserver()

        assert sorted(pids) == ["etcd", "kube-apiserver"]
        assert not any(map(is_running, pids.values()))
        assert not cluster.directory.exists()

    async def test_a_failed_start_shows_the_log_and_leaves_nothing(
        self, binaries: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An API server that does not start ends the wait at once, with its own words."""
        # Others may run the same test beside this one; the path of a socket has to be short.
        with tempfile.TemporaryDirectory(prefix="left-") as folder:
            monkeypatch.setattr(tempfile, "tempdir", folder)
            with pytest.raises(ProgramEnded, match="unknown flag: --no-such-flag"):
                async with Cluster.start("broken", Shape(apiserver_args=["--no-such-flag"])):
                    pass
            monkeypatch.undo()

            assert not os.listdir(folder)

    async def test_a_program_that_ended_by_itself_is_reported(self, binaries: None) -> None:
        """A test must not pass on half a control plane unknowingly."""

        async def run_without_etcd() -> None:
            async with Cluster.start("halved", BARE) as cluster:
                os.kill(cluster.pids["etcd"], signal.SIGKILL)
                await until(lambda: "etcd" not in cluster.pids)

        with pytest.raises(ProgramEnded, match="etcd ended with -9"):
            await run_without_etcd()

    @pytest.mark.parametrize(
        ("number", "code"),
        [
            pytest.param(signal.SIGKILL, -signal.SIGKILL, id="owner is killed"),
            pytest.param(signal.SIGTERM, 0, id="owner is asked to end"),
            pytest.param(signal.SIGINT, 0, id="Ctrl-C"),
        ],
    )
    async def test_nothing_outlives_the_owner(
        self, number: signal.Signals, code: int, short_path: Path, binaries: None
    ) -> None:
        """``python -m e2e.controlplane up`` is ended in each way; what it started follows within seconds."""
        environment = os.environ | {"TMPDIR": str(short_path), "PYTHONUNBUFFERED": "1"}
        up = ["-m", "e2e.controlplane", "up", "--bare", "--workers=0", f"--directory={short_path / 'up'}"]
        owner = await asyncio.create_subprocess_exec(
            sys.executable, *up, cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE
        )
        assert owner.stdout is not None
        async for line in owner.stdout:
            if line.startswith(b"Try"):
                break
        pids = noted_pids(short_path)

        owner.send_signal(number)
        await owner.communicate()

        await until(lambda: not any(map(is_running, pids)))
        await until(lambda: not any("jobmirror" in name for name in os.listdir(short_path)))
        assert len(pids) == 2
        assert code == owner.returncode


class TestSimulatedPods:
    """Pods end as their annotations say, and real controllers make of it what they make of real pods."""

    @pytest.mark.parametrize(
        ("body", "ending", "expected"),
        [
            pytest.param(job({}), "Complete", {"succeeded": 1}, id="a pod succeeds unless told otherwise"),
            pytest.param(
                job({"exit-code": "3"}, backoffLimit=0),
                "Failed BackoffLimitExceeded",
                {"failed": 1},
                id="an exit code fails the pod",
            ),
            pytest.param(
                job(
                    {"exit-code-index-2": "7", "exit-code-index-10": "1"},
                    completions=12,
                    parallelism=12,
                    completionMode="Indexed",
                    backoffLimitPerIndex=0,
                ),
                "Failed FailedIndexes",
                {"succeeded": 10, "failedIndexes": "2,10"},
                id="exit codes by index",
            ),
            pytest.param(
                job(
                    {"exit-code": "42"},
                    podFailurePolicy={
                        "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
                    },
                ),
                "Failed PodFailurePolicy",
                {"failed": 1},
                id="containers carry the exit code",
            ),
        ],
    )
    async def test_jobs_end_as_annotated(
        self, east: ControlPlane, fresh_namespace: str, body: Json, ending: str, expected: Json
    ) -> None:
        """The Job controller sees phases and exit codes as from a kubelet."""
        east.need_simulated_pods()
        jobs, client = f"/apis/batch/v1/namespaces/{fresh_namespace}/jobs", east.client()

        await client.create(jobs, body)
        ended = await client.wait_until(f"{jobs}/job", lambda seen: seen and _verdict(seen))

        assert _verdict(ended).startswith(ending)
        assert expected == {key: ended["status"].get(key) for key in expected}

    async def test_pods_that_never_end_go_with_suspension_and_deletion(
        self, east: ControlPlane, fresh_namespace: str
    ) -> None:
        """`run-for: never` pods are ready until they are deleted, and then they do go, finalizers or not."""
        east.need_simulated_pods()
        jobs, client = f"/apis/batch/v1/namespaces/{fresh_namespace}/jobs", east.client()
        pods = f"/api/v1/namespaces/{fresh_namespace}/pods"

        await client.create(jobs, job({"run-for": "never"}, parallelism=2, completions=2))
        await client.wait_until(f"{jobs}/job", lambda seen: seen and seen["status"].get("ready") == 2)
        await client.merge(f"{jobs}/job", {"spec": {"suspend": True}})
        await client.wait_until(f"{jobs}/job", _is_at_rest)
        await until_none(client, pods)

        await client.merge(f"{jobs}/job", {"spec": {"suspend": False}})
        await client.wait_until(f"{jobs}/job", lambda seen: seen and seen["status"].get("ready") == 2)
        await client.delete(f"{jobs}/job", propagation="Foreground")
        await client.wait_until(f"{jobs}/job", lambda seen: seen is None)
        await until_none(client, pods)

    async def test_a_pod_that_stops_slowly_is_terminating_meanwhile(
        self, east: ControlPlane, fresh_namespace: str
    ) -> None:
        """`stop-after` keeps a deleted pod terminating, and the Job counts it; afterwards it is one failure."""
        east.need_simulated_pods()
        jobs, client = f"/apis/batch/v1/namespaces/{fresh_namespace}/jobs", east.client()
        annotations = {"run-for": "never", "stop-after": "3s"}

        await client.create(jobs, job(annotations, podReplacementPolicy="Failed"))
        await client.wait_until(f"{jobs}/job", lambda seen: seen and seen["status"].get("ready") == 1)
        # Looked for from before: it lasts but three seconds.
        terminating = client.wait_until(f"{jobs}/job", lambda seen: seen and seen["status"].get("terminating") == 1)
        deleting = client.call("DELETE", f"/api/v1/namespaces/{fresh_namespace}/pods")
        await asyncio.gather(terminating, deleting)

        await client.wait_until(f"{jobs}/job", lambda seen: seen and seen["status"].get("failed") == 1)


class TestProviders:
    """Control planes come from binaries or from elsewhere."""

    async def test_an_existing_cluster_is_used_and_left_alone(self, solo: Cluster) -> None:
        """It gets a simulated node for the time being, refuses faults with a reason, and goes on afterwards."""
        existing = Existing({"east": solo.kubeconfig}, simulate_nodes=True)
        pod = {
            "metadata": {"name": "bound"},
            "spec": {"nodeName": NODE_NAME, "containers": [{"name": "main", "image": "any"}]},
        }

        async with existing.start("east") as east:
            client = east.client()
            await client.create(PODS, pod)
            await client.wait_until(f"{PODS}/bound", lambda seen: seen and seen["status"]["phase"] == "Succeeded")
            with pytest.raises(CannotDo, match="east cannot kill its API server"):
                await east.kill_apiserver()

        assert await solo.kubectl("get", "nodes", "--output=name") == ""
        with pytest.raises(CannotDo, match="no existing cluster west: only east"):
            await existing.start("west").__aenter__()

    def test_the_environment_names_existing_clusters(self) -> None:
        """Workers are named in the order of their kubeconfigs; without the switch nothing is taken for existing."""
        named = {"MIRROR_E2E_MANAGEMENT": "/m", "MIRROR_E2E_WORKERS": "/e:/w"}

        assert isinstance(choose_provider(named), Binaries)
        chosen = choose_provider({"USE_EXISTING_CLUSTER": "true", **named})
        assert Existing({"east": Path("/e"), "west": Path("/w"), "management": Path("/m")}) == chosen

    def test_workers_have_names_of_their_own(self) -> None:
        """However many there are."""
        assert worker_names(6) == ["east", "west", "north", "south", "worker-5", "worker-6"]
        assert worker_names(1) == ["east"]


class TestAssets:
    """Where binaries are looked for, and what happens without them."""

    @pytest.mark.parametrize(
        ("required", "outcome"),
        [
            pytest.param("0", {"skipped": 1}, id="skipped by default"),
            pytest.param("1", {"error": 1}, id="failed where they are required"),
        ],
    )
    async def test_tests_without_binaries_say_so(self, required: str, outcome: dict[str, int], tmp_path: Path) -> None:
        """A run without binaries tells how to get them, and cannot pass where it must have them."""
        without = {"XDG_CACHE_HOME": str(tmp_path), "MIRROR_REQUIRE_CONTROLPLANE": required}
        own = {name: value for name, value in os.environ.items() if not name.startswith(("TEST_ASSET", "KUBEBUILDER"))}
        run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", __file__, "-k", "stops_slowly"]

        inner = await asyncio.create_subprocess_exec(
            *run, cwd=ROOT, env=own | without, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output = (await inner.communicate())[0].decode()

        assert "run `python -m e2e.controlplane build`" in output
        assert {
            word: int(count) for count, word in re.findall(r"(\d+) (skipped|passed|failed|error)", output)
        } == outcome

    def test_the_envtest_convention_is_followed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file named for one binary comes before a folder for all, and that before our cache."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        alone, folder = tmp_path / "my-etcd", tmp_path / "bin"
        folder.mkdir()
        for path in (alone, folder / "etcd", folder / "kube-apiserver"):
            path.touch(mode=0o755)
        environment = {"KUBEBUILDER_ASSETS": str(folder)}

        both = find_binaries("etcd", "kube-apiserver", environment={**environment, "TEST_ASSET_ETCD": str(alone)})
        assert {"etcd": alone, "kube-apiserver": folder / "kube-apiserver"} == both
        assert {"etcd": folder / "etcd"} == find_binaries("etcd", environment=environment)
        with pytest.raises(MissingBinaries, match=r"no kwok: run `python -m e2e.controlplane build`"):
            find_binaries("etcd", "kwok", environment=environment)

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            pytest.param("", 180, id="three minutes by default"),
            pytest.param("90s", 90, id="Go duration"),
            pytest.param("1m30s", 90, id="Go duration of two parts"),
            pytest.param("2.5", 2.5, id="bare seconds"),
        ],
    )
    def test_the_start_timeout_can_be_set(self, text: str, seconds: float) -> None:
        """By the variable that envtest has for it."""
        assert seconds == start_timeout_seconds({"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": text})


async def until_none(client: Client, path: str) -> None:
    """Wait until a collection is empty."""
    await until_seen(lambda: client.list(path), lambda found: not found)


def _verdict(seen: Json) -> str:
    """Type and reason of the condition that ended a Job; empty while it goes on."""
    endings = (
        f"{condition['type']} {condition['reason']}"
        for condition in seen["status"].get("conditions", [])
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
    )
    return next(endings, "")


def _is_at_rest(seen: Json | None) -> bool:
    """Suspended, with no pod left."""
    status = seen["status"] if seen else {}
    return bool(status.get("conditions")) and not status.get("active") and not status.get("terminating")
