"""The Job controller put together: client, cache, controller, events, TTL, Lease, and the watch for a rival (D20).

``mirror job-controller`` runs it as a process of its own (``run``), ``mirror run`` as a part of the manager
(``JobControllerComponent``). What a sync does is ``controller``'s business; how a process behaves is ``cli.process``'s.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping

import msgspec
import tenacity

from mirror.batch import rule_names
from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller import constants
from mirror.jobcontroller.controller import ControllerSettings, JobController
from mirror.jobcontroller.controller_conflict import Rivals
from mirror.jobcontroller.decide.values import Constants
from mirror.jobcontroller.events import job_event_recorder
from mirror.jobcontroller.metrics import JobMetrics
from mirror.jobcontroller.syncing import Behaviour
from mirror.jobcontroller.ttl import TimeToLive
from mirror.kube.client import Client
from mirror.kube.connect import connect_management
from mirror.kube.errors import KubeError, Unauthorized
from mirror.kube.fields import stores_field
from mirror.kube.kubeconfig import KubeconfigRefused
from mirror.kube.objects import Object
from mirror.kube.permits import WritePermit
from mirror.model import names
from mirror.model.endings import CannotStart
from mirror.runtime import cyclic_gc, large_blocks
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock, SystemClock
from mirror.runtime.environment import Environment
from mirror.runtime.informer import Change
from mirror.runtime.leadership import Leadership, LeaseSettings
from mirror.runtime.supervise import supervise
from mirror.serving.health import Check, serve
from mirror.settings.feature_gates import judge_gate
from mirror.settings.schema import LeaderElection, Limits, Settings
from mirror.telemetry.logs import Log, get_log
from mirror.telemetry.looplag import measure_loop_lag
from mirror.telemetry.metrics import Metrics
from mirror.workers.probes import Unsupported, check_version

FLUSH_SECONDS = 2.0
"""Less than what lies between the renew deadline and the end of a lease: who leads next must not meet us."""


OLDEST_MINOR = 29
"""Of the clusters whose Jobs we run, as of workers."""
ASK_AGAIN = Backoff(first=0.5, most=15.0)


class JobControllerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator says."""

    kubeconfig: str = ""
    """Empty: in-cluster."""
    limits: Limits = Limits(qps=20.0, burst=30)
    listen: tuple[str, int] = ("127.0.0.1", 8081)
    constants: Constants = Constants()
    gates: FeatureGates = FeatureGates()
    lease_namespace: str = "kube-system"
    leader_election: LeaderElection = LeaderElection()
    namespaces: tuple[str, ...] = ()


def settings_of(settings: Settings, environment: Mapping[str, str]) -> JobControllerSettings:
    """What the settings of ``mirror run`` say of it; the environment has the last word about constants and gates.

    Raises:
        CannotStart: a variable's value cannot be used.
    """
    ours = settings.job_controller
    given = {field: getattr(ours, field) for field in Constants.__struct_fields__}
    log, variable = get_log("jobs"), constants.GATES_VARIABLE

    def warn(line: str) -> None:
        log.warning("feature gate ignored", because=line)

    gates = FeatureGates(
        **{constants.GATES[name]: on for name, on in ours.feature_gates.items() if name in constants.GATES}
    )
    for name, on in ours.feature_gates.items():
        if name not in constants.GATES and (told := judge_gate(name, on)):
            warn(f"jobController.featureGates: {told[0]}")
    try:
        gates = constants.read_gates(environment.get(variable, ""), gates, what=variable, warn=warn)
        constants.check_gates(gates)
        return JobControllerSettings(
            kubeconfig=settings.kubeconfig,
            limits=Limits(qps=ours.qps, burst=ours.burst),
            constants=constants.read_constants(environment, Constants(**given)),
            gates=gates,
            lease_namespace=ours.lease_namespace,
            leader_election=settings.leader_election,
            namespaces=settings.namespaces,
        )
    except constants.InvalidConstant as refused:
        raise CannotStart("; ".join(str(refused).splitlines())) from refused


async def run(
    settings: JobControllerSettings,
    *,
    metrics: Metrics,
    stop: asyncio.Event,
    on_listening: Callable[[int], None] = lambda _: None,
) -> None:
    """Run the Job controller as a process until ``stop`` is set.

    Raises:
        CannotStart: the settings lead nowhere (no kubeconfig, credentials that are refused, a port that is taken).
        LeadershipLost: another process may be working now; nothing of ours is any more.
        ControllerConflict: kube-controller-manager's Job controller runs, too (D20).
    """
    log = get_log("jobs")
    clock = SystemClock()
    permit = permit_of(settings, clock)
    client = await connect(settings, metrics=metrics, permit=permit)
    try:
        environment = Environment(clock, log, metrics)
        part = JobControllerComponent(
            client, settings, environment=environment, metrics=JobMetrics(metrics), permit=permit
        )
        _refresh_on_scrape(part, metrics, client.name)
        health: dict[str, Check] = {"loop": lambda: (True, "alive")}
        async with serve(settings.listen, metrics=metrics, health=health, readiness=part.checks()) as port:
            cyclic_gc.tune()
            large_blocks.give_back()
            on_listening(port)
            log.info("started", listen=f"{settings.listen[0]}:{port}", server=client.server)
            async with asyncio.TaskGroup() as scope:
                lag = scope.create_task(measure_loop_lag(metrics.loop_lag), name="measure loop lag")
                freezing = scope.create_task(_freeze_when_ready(part), name="freeze")
                asking = scope.create_task(_ask_who_is_there(client, log), name="ask for the version")
                await part.run(stop)
                for task in (lag, freezing, asking):
                    task.cancel()
    finally:
        await client.close()
        log.info("stopped")


def permit_of(settings: JobControllerSettings, clock: Clock) -> WritePermit | None:
    """What the client of the work looks at before each write; None without a Lease."""
    return WritePermit(clock.boottime) if settings.leader_election.enabled else None


async def connect(settings: JobControllerSettings, *, metrics: Metrics, permit: WritePermit | None) -> Client:
    """A client with limits of its own.

    Raises:
        CannotStart: the kubeconfig leads nowhere.
    """
    try:
        return await connect_management(settings.kubeconfig, limits=settings.limits, observer=metrics, permit=permit)
    except KubeconfigRefused as error:
        where = f"kubeconfig {settings.kubeconfig}".rstrip()
        raise CannotStart(f"{where}: {str(error).removeprefix('kubeconfig: ')}") from error


class JobControllerComponent:
    """One Job controller with all that it needs; watches at once, works while it leads."""

    def __init__(
        self,
        client: Client,
        settings: JobControllerSettings,
        *,
        environment: Environment,
        metrics: JobMetrics,
        permit: WritePermit | None = None,
    ) -> None:
        """``permit``: what ``client`` looks at before each write."""
        clock, log = environment.clock, environment.log
        self._log = log
        self._client = client
        self._heeds_rule_names = settings.gates.pod_failure_policy_name
        self._metrics = metrics
        self._process = environment.metrics
        self._events = job_event_recorder(client, clock=clock, log=log)
        self._rivals = Rivals(client, clock=clock, log=log)
        self.controller = JobController(
            client,
            ControllerSettings(Behaviour(settings.constants, settings.gates), settings.namespaces),
            events=self._events,
            metrics=metrics,
            clock=clock,
            log=log,
            also=self._on_job,
            knows_rule_names=self._knows_rule_names,
        )
        self._ttl = TimeToLive(client, self.controller.jobs.store, metrics=metrics, clock=clock, log=log)
        metrics.watch_queue("job", self.controller.queue)
        metrics.watch_queue("job_orphan_pod", self.controller.orphan_queue)
        self._leadership = _leadership(client, settings, clock=clock, log=log, permit=permit)
        self.is_working = False
        self.ended_because = ""
        """Set by whoever goes on without it."""

    async def run(self, stop: asyncio.Event) -> None:
        """Watch, lead, and end when told to; raises what the leader's work ends by."""
        async with asyncio.TaskGroup() as scope:
            watching = scope.create_task(self._keep("watch jobs", self.controller.watch), name="watch jobs")
            leading = scope.create_task(self._lead(), name="lead jobs")
            stopping = scope.create_task(stop.wait(), name="wait for stop of jobs")
            await asyncio.wait({leading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            # In this order: first nothing new is begun, then what was recorded is sent, then the watches end.
            leading.cancel()
            await asyncio.wait({leading})
            watching.cancel()
            stopping.cancel()

    def checks(self) -> dict[str, Check]:
        """What it means to be ready."""

        def jobs() -> tuple[bool, str]:
            is_synced, gangs = self.controller.informers.is_synced, self.controller.gangs
            if is_synced:
                return True, "jobs and pods are known"
            return False, gangs.api.problem or "listing" if gangs is not None else "listing"

        def leader() -> tuple[bool, str]:
            if self.ended_because:
                return False, self.ended_because
            if self._leadership is not None and not self.is_working and self._leadership.obstacle:
                return False, self._leadership.obstacle
            return True, "leading" if self.is_working else "standby"

        return {"jobs": jobs, "job-leader": leader}

    async def _keep(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        await supervise(name, work, log=self._log, on_restart=self._process.on_task_restart)

    async def _lead(self) -> None:
        if self._leadership is None:
            await self._work()
        else:
            await self._leadership.run(self._work)

    async def _work(self) -> None:
        """The leader's work. What was recorded is sent before the Lease is given away."""
        self.is_working = True
        self._metrics.leader.set(1)
        async with asyncio.TaskGroup() as around:
            sending = around.create_task(self._events.run(), name="send events")
            try:
                await self._work_until_fought()
            finally:
                self.is_working = False
                self._metrics.leader.set(0)
                await self._events.flush(FLUSH_SECONDS)
                sending.cancel()

    async def _work_until_fought(self) -> None:
        async with asyncio.TaskGroup() as scope:
            scope.create_task(self._rivals.watch(), name="watch for a rival")
            scope.create_task(self._ttl.lead(), name="time to live")
            scope.create_task(self.controller.lead(), name="work on jobs")

    async def _knows_rule_names(self) -> bool:
        return self._heeds_rule_names and await stores_field(self._client, *rule_names.FIELD, log=self._log)

    def _on_job(self, old: Object | None, new: Object | None, change: Change) -> None:
        self._rivals.on_job(old, new, change)
        self._ttl.on_job(old, new, change)


def _leadership(
    client: Client, settings: JobControllerSettings, *, clock: Clock, log: Log, permit: WritePermit | None
) -> Leadership | None:
    election = settings.leader_election
    if not election.enabled:
        return None
    lease = LeaseSettings.of_process(election, settings.lease_namespace, names.JOB_CONTROLLER_LEASE)
    return Leadership(client, lease, clock=clock, log=log, permit=permit)


async def _ask_who_is_there(client: Client, log: Log) -> None:
    """Say once a while what keeps the server from answering: informers and the Lease try again in silence.

    Raises:
        CannotStart: waiting will not mend it.
    """

    def report(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        log.warning("the cluster does not answer", server=client.server, error=error)

    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(lambda e: isinstance(e, KubeError) and not isinstance(e, Unauthorized)),
        wait=lambda state: ASK_AGAIN.delay(state.attempt_number),
        before_sleep=report,
    )
    try:
        await retrying(check_version, client, OLDEST_MINOR)
    except (Unsupported, Unauthorized) as error:
        raise CannotStart(f"cluster at {client.server}: {error}") from error


async def _freeze_when_ready(part: JobControllerComponent) -> None:
    await part.controller.wait_until_ready()
    cyclic_gc.freeze()


def _refresh_on_scrape(part: JobControllerComponent, metrics: Metrics, cluster: str) -> None:
    """Gauges of what is known anyway are read when somebody asks."""

    def refresh() -> None:
        metrics.leader.set(part.is_working)
        silent: defaultdict[str, float] = defaultdict(float)
        for informer in part.controller.informers:  # of each resource one for each namespace
            plural = informer.resource.plural
            silent[plural] = max(silent[plural], informer.describe().silent_for_seconds)
        for plural, seconds in silent.items():
            metrics.watch_staleness(cluster, plural).set(seconds)

    metrics.before_scrape(refresh)
