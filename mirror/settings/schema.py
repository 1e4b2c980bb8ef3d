"""The settings as values, with their defaults; ``config/mirror.yaml`` documents the same keys in YAML.

Every room that can be configured takes the part it needs from here. Each field names the rule that its value obeys; a
new setting is one line here, one in ``config/mirror.yaml`` and one in ``docs/settings.md``. Not here: reading a file
(``load``) and what the rules are (``rules``).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from mirror.model import names
from mirror.settings import mirror_rules, rules, texts
from mirror.settings.kinds import KindEntry
from mirror.settings.section import Section


class Limits(Section, frozen=True):
    """How fast we talk to one cluster."""

    qps: Annotated[float, rules.RATE] = 200.0
    burst: Annotated[int, rules.BURST] = 400


class SecretSource(Section, frozen=True):
    """Secrets of others that declare workers, such as Cluster API's."""

    label_selector: Annotated[str, rules.SELECTOR] = ""
    namespaces: Annotated[tuple[str, ...], rules.SOME_NAMESPACES] = ()
    key: Annotated[str, rules.DATA_KEY] = names.KUBECONFIG_KEY
    """Of the Secret's data: where the kubeconfig is."""
    name_from_label: Annotated[str, rules.LABEL_KEY] = ""
    """The label whose value is the worker's name; empty: the Secret's name."""
    type: Annotated[str, rules.SECRET_TYPE] = ""
    """Of the Secret; empty: any."""

    REQUIRED: ClassVar[tuple[str, ...]] = ("labelSelector", "namespaces")


class ClusterProfiles(Section, frozen=True):
    """Workers by ClusterProfiles of SIG-Multicluster."""

    enabled: Annotated[bool, rules.SWITCH] = False
    namespaces: Annotated[tuple[str, ...], rules.NAMESPACES] = ()
    managed_service_account: Annotated[str, rules.OBJECT_NAME] = ""
    """Of Open Cluster Management, whose Secrets are named CLUSTER-ACCOUNT; empty: the only one there is."""


class Workers(Limits, frozen=True):
    """What holds for every worker; limits are per worker."""

    lost_after_seconds: Annotated[float, rules.DURATION] = msgspec.field(name="lostAfter", default=900.0)
    on_loss: Annotated[str, rules.ON_LOSS] = "Wait"
    """What becomes of Jobs on a worker that is lost for ``lost_after_seconds``, unless they say it (D14)."""
    on_loss_allowed: Annotated[tuple[str, ...], rules.ON_LOSS_ALLOWED] = ("Wait", "Reschedule", "Fence")
    """What Jobs and Namespaces may say."""
    on_loss_of_namespaces: Annotated[bool, rules.SWITCH] = False
    """Whether Namespaces are read for what they say."""
    fence_ttl_seconds: Annotated[float, rules.FENCE_TTL] = msgspec.field(name="fenceTTL", default=1800.0)
    """How long a fenced Job may run without being renewed."""
    losers: Annotated[str, rules.LOSERS] = "delete"
    """What becomes of a copy that was left on a lost worker once that is back."""
    move_rate: Annotated[float, rules.RATE] = 5.0
    """Jobs moved a second, from all lost workers together."""
    move_limit: Annotated[int, rules.MOVES] = 3
    """Moves of one Job."""
    seed_progress: Annotated[bool, rules.SWITCH] = False
    """What a Job has counted goes along when it moves, where workers let us write statuses (D14)."""
    create_namespaces: Annotated[bool, rules.SWITCH] = False
    watch_pods: Annotated[str, rules.WATCH_PODS] = "none"
    """``labelled``: pods of mirrors get our labels and are watched for trouble (D22)."""
    read_workloads: Annotated[bool, rules.SWITCH] = False
    """Read in Kueue's Workloads why it holds mirrors (D26)."""
    allow: Annotated[dict[str, bool], rules.ALLOW] = msgspec.field(default_factory=dict)
    renew_tokens: Annotated[bool, rules.SWITCH] = True
    """Ask a worker for a new token, and store it in the worker's Secret, before the one we have ends."""
    secret_sources: tuple[SecretSource, ...] = ()
    cluster_profiles: ClusterProfiles = ClusterProfiles()


class ScoreWeight(Section, frozen=True):
    """One score by which workers are compared, and how much it counts."""

    name: Annotated[str, rules.SCORE] = "load"
    weight: Annotated[float, rules.SCORE_WEIGHT] = 1.0

    REQUIRED: ClassVar[tuple[str, ...]] = ("name",)


class Placement(Section, frozen=True):
    """How a worker is chosen among those that may take a Job (``mirror.placement.policy``)."""

    filters: Annotated[tuple[str, ...], rules.FILTERS] = ("capacity",)
    """Those that may be left out."""
    scores: tuple[ScoreWeight, ...] = (ScoreWeight(),)
    retry_after_seconds: Annotated[float | None, rules.OPTIONAL_DURATION] = msgspec.field(
        name="retryAfter", default=None
    )
    """So long no pod of a mirror may become ready before its Job is tried on another worker, if none ever ran; None: it
    is not (D31)."""
    priority_classes: Annotated[bool, rules.SWITCH] = False
    """Jobs that wait are ordered by the PriorityClass of their pods, too."""


class Globs(Section, frozen=True):
    """Keys that are not copied to a mirror; ``*``, ``?`` and ``[…]`` are wildcards."""

    labels: Annotated[tuple[str, ...], rules.KEY_GLOBS] = ()
    annotations: Annotated[tuple[str, ...], rules.KEY_GLOBS] = ()
    node_selectors: Annotated[tuple[str, ...], rules.KEY_GLOBS] = ()
    """Of pod templates: labels of the management cluster's nodes."""
    tolerations: Annotated[tuple[str, ...], rules.KEY_GLOBS] = ()
    """Of pod templates: keys of the management cluster's taints."""


class Replacements(Section, frozen=True):
    """What is another on workers."""

    node_selectors: Annotated[dict[str, str], mirror_rules.NODE_SELECTORS] = msgspec.field(default_factory=dict)
    """Of pod templates: KEY=VALUE of the management cluster's nodes, and in its place KEY=VALUE of workers'."""


class Additions(Section, frozen=True):
    """Keys that every mirror gets."""

    labels: Annotated[dict[str, str], rules.LABELS] = msgspec.field(default_factory=dict)
    annotations: Annotated[dict[str, str], rules.ANNOTATIONS] = msgspec.field(default_factory=dict)


class Mirrors(Section, frozen=True):
    """What a mirror looks like beside its source, and how long it stays (D4, D8)."""

    retention_seconds: Annotated[float | None, rules.OPTIONAL_DURATION] = msgspec.field(name="retention", default=None)
    """After its end; None: as long as its source."""
    strip: Globs = Globs()
    replace: Replacements = Replacements()
    set: Additions = Additions()


class Dependencies(Section, frozen=True):
    """What goes along with a mirror where its source asks for it: the ConfigMaps and so on that its pods need (D27)."""

    config_maps: Annotated[bool, rules.SWITCH] = False
    secrets: Annotated[bool, rules.SWITCH] = False
    service_accounts: Annotated[bool, rules.SWITCH] = False
    namespaces: Annotated[tuple[str, ...], rules.NAMESPACE_GLOBS] = ()
    """Of sources; empty: all."""
    interval_seconds: Annotated[float, rules.PAUSE] = msgspec.field(name="interval", default=60.0)
    """Between two looks at whether copies are like their originals."""


class Sweep(Section, frozen=True):
    """The search for mirrors whose source is gone (D10)."""

    interval_seconds: Annotated[float, rules.PAUSE] = msgspec.field(name="interval", default=60.0)


class LeaderElection(Section, frozen=True):
    """The Lease that lets one of several managers act."""

    enabled: Annotated[bool, rules.SWITCH] = True
    lease_duration_seconds: Annotated[float, rules.PAUSE] = msgspec.field(name="leaseDuration", default=15.0)
    renew_deadline_seconds: Annotated[float, rules.PAUSE] = msgspec.field(name="renewDeadline", default=10.0)
    retry_period_seconds: Annotated[float, rules.PAUSE] = msgspec.field(name="retryPeriod", default=2.0)


class Sharding(Section, frozen=True):
    """Several managers that work at once, each on the workers of some slots (S2)."""

    slots: Annotated[int, rules.SLOTS] = 1
    """1: one manager works, the others stand by."""
    address: Annotated[str, rules.IP_ADDRESS] = ""
    """Where the other managers reach this one; empty: the environment variable POD_IP."""


class Https(Section, frozen=True):
    """The one TLS address that the webhook and ``access`` share; opened when one of them is enabled."""

    listen: Annotated[str, rules.LISTEN] = ":8443"
    cert_file: Annotated[str, rules.PATH] = ""
    """PEM, the whole chain; empty together with ``key_file``: we are our own authority."""
    key_file: Annotated[str, rules.PATH] = ""
    names: Annotated[tuple[str, ...], rules.HOSTS] = ()
    """DNS names and IP addresses beside those of our Services, for certificates that we make."""

    @property
    def listen_address(self) -> tuple[str, int]:
        """Host (empty: every interface) and port (0: any free one)."""
        return texts.split_address(self.listen)


class Webhook(Section, frozen=True):
    """Claims new Jobs of chosen namespaces, and checks our annotations (D16)."""

    enabled: Annotated[bool, rules.SWITCH] = False


class Access(Section, frozen=True):
    """Logs, pods and events of mirrors for users that have no right on workers."""

    enabled: Annotated[bool, rules.SWITCH] = False
    url: Annotated[str, rules.HTTPS_URL] = ""
    """Where users reach it; told to them in a ConfigMap."""
    client_certificates: Annotated[bool, rules.SWITCH] = True
    """Whether users may authenticate by client certificates of the management cluster, as well as by tokens."""


class Page(Section, frozen=True):
    """The page for people: workers, Jobs, timelines; without TLS, so not beyond this pod unless told to."""

    enabled: Annotated[bool, rules.SWITCH] = False
    listen: Annotated[str, rules.LISTEN] = "127.0.0.1:8081"
    hosts: Annotated[tuple[str, ...], rules.HOSTS] = ()
    """Names by which a proxy calls it, beside addresses and ``localhost``."""
    login: Annotated[bool, rules.SWITCH] = False
    """Ask for a bearer token of the management cluster, and show what its owner may get and list there."""

    @property
    def listen_address(self) -> tuple[str, int]:
        """Host (empty: every interface) and port (0: any free one)."""
        return texts.split_address(self.listen)


class Logging(Section, frozen=True):
    """How log lines look and which are written."""

    format: Annotated[str, rules.LOG_FORMAT] = "text"
    level: Annotated[str, rules.LOG_LEVEL] = "info"


class Tracing(Section, frozen=True):
    """One OpenTelemetry trace per Job, sent when its final status is stored; needs the extra ``otel``."""

    enabled: Annotated[bool, rules.SWITCH] = False
    endpoint: Annotated[str, rules.HTTP_URL] = ""
    """An OTLP/HTTP collector; empty: what the variables ``OTEL_EXPORTER_OTLP_*`` say."""


class JobController(Limits, frozen=True):
    """Our equivalent of the built-in Job controller (D20); its constants are upstream's (K2, K3)."""

    enabled: Annotated[bool, rules.SWITCH] = False
    qps: Annotated[float, rules.RATE] = 20.0
    burst: Annotated[int, rules.BURST] = 30
    lease_namespace: Annotated[str, rules.NAMESPACE] = "kube-system"
    feature_gates: Annotated[dict[str, bool], rules.GATES] = msgspec.field(default_factory=dict)
    batch_period_seconds: Annotated[float, rules.DURATION] = msgspec.field(name="batchPeriod", default=1.0)
    api_backoff_seconds: Annotated[float, rules.PAUSE] = msgspec.field(name="apiBackoff", default=1.0)
    api_backoff_max_seconds: Annotated[float, rules.PAUSE] = msgspec.field(name="apiBackoffMax", default=60.0)
    pod_failure_backoff_seconds: Annotated[float, rules.PAUSE] = msgspec.field(name="podFailureBackoff", default=10.0)
    max_pod_failure_backoff_seconds: Annotated[float, rules.PAUSE] = msgspec.field(
        name="maxPodFailureBackoff", default=600.0
    )
    max_uncounted_pods: Annotated[int, rules.PODS] = 500
    max_pod_create_delete_per_sync: Annotated[int, rules.PODS] = 500


class Settings(Section, frozen=True):
    """Everything that can be configured."""

    managed_by: Annotated[str, rules.MANAGED_BY] = names.DEFAULT_MANAGED_BY
    origin: Annotated[str, rules.ORIGIN] = ""
    """Empty: the uid of the management cluster's ``kube-system`` namespace."""
    namespace: Annotated[str, rules.NAMESPACE] = "jobmirror-system"
    kubeconfig: Annotated[str, rules.PATH] = ""
    """Of the management cluster; empty: in-cluster."""
    namespaces: Annotated[tuple[str, ...], rules.NAMESPACES] = ()
    """Empty: all, with one cluster-wide watch."""
    kinds: tuple[KindEntry, ...] = ()
    """Beside batch/v1 Jobs, which are always mirrored (``mirror.kinds.declared``)."""
    management: Limits = Limits()
    workers: Workers = Workers()
    placement: Placement = Placement()
    mirrors: Mirrors = Mirrors()
    dependencies: Dependencies = Dependencies()
    sweep: Sweep = Sweep()
    leader_election: LeaderElection = LeaderElection()
    sharding: Sharding = Sharding()
    listen: Annotated[str, rules.LISTEN] = "127.0.0.1:8080"
    https: Https = Https()
    webhook: Webhook = Webhook()
    access: Access = Access()
    page: Page = Page()
    log: Logging = Logging()
    tracing: Tracing = Tracing()
    job_controller: JobController = JobController()

    @property
    def listen_address(self) -> tuple[str, int]:
        """Host (empty: every interface) and port (0: any free one) of ``listen``."""
        return texts.split_address(self.listen)
