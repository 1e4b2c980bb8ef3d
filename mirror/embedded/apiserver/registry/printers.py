"""Tables of kubectl: columns that many kinds have, how the server describes them, cells. ``now`` is an aware time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from mirror.batch import times
from mirror.batch.label_selectors import selector_of
from mirror.embedded.apiserver.apimachinery.strategy import Column
from mirror.model.durations import human_duration

_TABLE = """
NAME: Name must be unique within a namespace. Is required when creating resources, although some resources may allow a
    client to request the generation of an appropriate name automatically. Name is primarily intended for creation
    idempotence and configuration definition. Cannot be updated. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names
CREATED: CreationTimestamp is a timestamp representing the server time when this object was created. It is not
    guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is
    represented in RFC3339 form and is in UTC. ¶ Populated by the system. Read-only. Null for lists. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
POD_IP: podIP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated.
POD_NODE: NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate for scheduling by
    the scheduler defined in schedulerName. Once this field is set, the kubelet for this node becomes responsible for
    the lifecycle of this pod. This field should not be used to express a desire for the pod to be scheduled on a
    specific node. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename
POD_NOMINATED: nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled
    right away as preemption victims receive their graceful termination periods. This field does not guarantee that
    the pod will be scheduled on this node. Scheduler may decide to place the pod elsewhere if other nodes become
    available sooner. Scheduler may also decide to give the resources on this node to a higher priority pod that is
    created after preemption. As a result, this field may be different than PodSpec.nodeName when the pod is
    scheduled.
POD_GATES: If specified, all readiness gates will be evaluated for pod readiness. A pod is ready when all its
    containers are ready AND all conditions specified in the readiness gates have status equal to "True" More info:
    https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates
JOB_SUCCEEDED: The number of pods which reached phase Succeeded. The value increases monotonically for a given spec.
    However, it may decrease in reaction to scale down of elastic indexed jobs.
JOB_SELECTOR: A label query over pods that should match the pod count. Normally, the system sets this field for you.
    More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
CRON_SCHEDULE: The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.
CRON_TIME_ZONE: The time zone name for the given schedule, see
    https://en.wikipedia.org/wiki/List_of_tz_database_time_zones. If not specified, this will default to the time zone
    of the kube-controller-manager process. The set of valid time zone names and the time zone offset is loaded from
    the system-wide time zone database by the API server during CronJob validation and the controller manager during
    execution. If no system-wide time zone database can be found a bundled version of the database is used instead. If
    the time zone name becomes invalid during the lifetime of a CronJob or due to a change in host configuration, the
    controller will stop creating new new Jobs and will create a system event with the reason UnknownTimeZone. More
    information can be found in https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones
CRON_SUSPEND: This flag tells the controller to suspend subsequent executions, it does not apply to already started
    executions. ~ Defaults to false.
CRON_ACTIVE: A list of pointers to currently running jobs.
CRON_LAST: Information when was the last time the job was successfully scheduled.
NODE_KUBELET: Kubelet Version reported by the node.
NODE_ADDRESSES: List of addresses reachable to the node. Queried from cloud provider, if available. More info:
    https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This field is declared as mergeable, but
    the merge key is not sufficiently unique, which can cause data corruption when it is merged. Callers should
    instead use a full-replacement patch. See https://pr.k8s.io/79391 for an example. Consumers should assume that
    addresses can change during the lifetime of a Node. However, there are some exceptions where this may not be
    possible, such as Pods that inherit a Node's address in its own status or consumers of the downward API
    (status.hostIP).
NODE_OS: OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 (wheezy)).
NODE_KERNEL: Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64).
NODE_RUNTIME: ContainerRuntime Version reported by the node through runtime remote API (e.g. containerd://1.4.2).
EVENT_LAST: The time at which the most recent occurrence of this event was recorded.
EVENT_TYPE: Type of this event (Normal, Warning), new types could be added in the future
EVENT_REASON: This should be a short, machine understandable string that gives the reason for the transition into the
    object's current status.
EVENT_OBJECT: The object that this event is about.
EVENT_FIELD_PATH: If referring to a piece of an object instead of an entire object, this string should contain a valid
    JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object reference
    is to a container within a pod, this would take on a value like: "spec.containers{name}" (where "name" refers to
    the name of the container that triggered the event) or if no container name is specified "spec.containers[2]"
    (container with index 2 in this pod). This syntax is chosen only to have some well-defined way of referencing a
    part of an object.
EVENT_SOURCE: The component reporting this event. Should be a short machine understandable string.
EVENT_MESSAGE: A human-readable description of the status of this operation.
EVENT_FIRST: The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)
EVENT_COUNT: The number of times this event has occurred.
SECRET_TYPE: Used to facilitate programmatic handling of secret data. More info:
    https://kubernetes.io/docs/concepts/configuration/secret/#secret-types
SECRET_DATA: Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or '.'. The
    serialized form of the secret data is a base64 encoded string, representing the arbitrary (possibly non-string)
    data value here. Described in https://tools.ietf.org/html/rfc4648#section-4
CONFIG_DATA: Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'.
    Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with
    the keys in the BinaryData field, this is enforced during validation process.
LEASE_HOLDER: holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is
    used, the holder identity must be equal to the elected LeaseCandidate.metadata.name field.
PRIORITY_VALUE: value represents the integer value of this priority class. This is the actual priority that pods
    receive when they have the name of this class in their pod spec.
PRIORITY_DEFAULT: globalDefault specifies whether this PriorityClass should be considered as the default priority for
    pods that do not have any priority class. Only one PriorityClass can be marked as `globalDefault`. However, if
    more than one PriorityClasses exists with their `globalDefault` field set to true, the smallest value of such
    global default PriorityClasses will be used as the default priority.
PRIORITY_PREEMPTION: preemptionPolicy is the Policy for preempting pods with lower priority. One of Never,
    PreemptLowerPriority. Defaults to PreemptLowerPriority if unset.
"""
# One text a paragraph; ``¶`` is an empty line, ``~`` a second space, as there are in the originals.


def _read() -> dict[str, str]:
    texts: dict[str, str] = {}
    name = ""
    for line in _TABLE.strip().splitlines():
        if line.startswith("    "):
            texts[name] += f" {line.strip()}"
        else:
            name, _, texts[name] = line.partition(": ")
    return {name: text.replace(" ¶ ", "\n\n").replace(" ~ ", "  ") for name, text in texts.items()}


TEXTS: Mapping[str, str] = _read()
"""By name."""


UNKNOWN, NONE, UNSET = "<unknown>", "<none>", "<unset>"

NAME = Column("Name", format="name", description=TEXTS["NAME"])
AGE = Column("Age", description=TEXTS["CREATED"])


def age(body: Mapping[str, Any], now: datetime) -> str:
    """How long ago an object was created."""
    return since(body["metadata"].get("creationTimestamp"), now)


def since(moment: object, now: datetime) -> str:
    """How long ago a stored time was."""
    at = _nanoseconds(moment)
    return UNKNOWN if at is None else duration(nanoseconds(now) - at)


def between(first: object, last: object) -> str:
    """How long it is from one stored time to another; nothing if one is no time."""
    begin, end = _nanoseconds(first), _nanoseconds(last)
    return "" if begin is None or end is None else duration(end - begin)


def nanoseconds(moment: datetime) -> int:
    """Nanoseconds since 1970."""
    return times.instant(times.of(moment)) + moment.microsecond * 1_000


def duration(length: int) -> str:
    """A length of time in nanoseconds as people read it: two units where they matter, one otherwise."""
    # Cut towards zero, as integers of the server are.
    seconds = length // times.NANOSECONDS if length >= 0 else -(-length // times.NANOSECONDS)
    if seconds < 0:
        return "0s" if seconds >= -1 else "<invalid>"
    return human_duration(seconds)


def containers(listed: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Names and images of containers."""
    return ",".join(one.get("name", "") for one in listed), ",".join(one.get("image", "") for one in listed)


def selector(value: Mapping[str, Any] | None) -> str:
    """A label selector in one line."""
    if value is None:
        return NONE
    found = selector_of(value)
    if any(one.operator not in ("In", "NotIn", "Exists", "DoesNotExist") for one in found.expressions):
        return "<error>"
    return str(found) or NONE


def _nanoseconds(moment: object) -> int | None:
    if not isinstance(moment, str) or moment == times.ZERO:
        return None
    try:
        return times.instant(moment)
    except times.BadTime:
        return None
