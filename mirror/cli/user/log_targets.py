"""Whose logs are meant: which pods of a mirror, and which of their containers. Pure; used by ``logs``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mirror.cli.user.failures import Failure
from mirror.cli.user.pods import Pod, order_of
from mirror.kinds.base import Kind

MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """What of the pods is wanted."""

    pod: str = ""
    index: int | None = None
    role: str = ""
    all_pods: bool = False
    container: str = ""
    all_containers: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """One container of one pod. Where they are empty, who is asked chooses, by the index if there is one."""

    pod: str
    container: str
    index: int | None = None
    role: str = ""


def choose(pods: Sequence[Pod], choice: Choice, kind: Kind) -> tuple[list[Target], str]:
    """The containers to read, and a remark where others could have been meant; no pods, no targets.

    Args:
        pods: of the mirror.
        choice: what is wanted.
        kind: of the mirror; the logs of some of its roles may come first.

    Raises:
        Failure: what was asked for is not there.
    """
    if not pods:
        return [], ""
    chosen, remark = _pods(pods, choice, kind)
    return [target for pod in chosen for target in _containers(pod, choice)], remark


def _pods(pods: Sequence[Pod], choice: Choice, kind: Kind) -> tuple[list[Pod], str]:
    if choice.pod:
        named = [pod for pod in pods if pod.name == choice.pod]
        if not named:
            raise Failure(f"the Job has no pod {choice.pod}; its pods: {_named(pod.name for pod in pods)}")
        return named, ""
    if choice.role:
        _check_role(pods, choice.role, kind)
        pods = [pod for pod in pods if kind.pod_roles.is_meant(choice.role, pod.role)]
    if choice.index is not None:
        pods = [pod for pod in pods if pod.index == str(choice.index)]
        if not pods:
            of_role = f" in role {choice.role}" if choice.role else ""
            raise Failure(f"the Job has no pod with index {choice.index}{of_role}")
    if choice.all_pods:
        return sorted(pods, key=order_of(kind)), ""
    best = max(pods, key=lambda pod: _interest(pod, kind))
    if len(pods) == 1:
        return [best], ""
    said = ", ".join(filter(None, (best.role and f"role {best.role}", best.index and f"index {best.index}")))
    ways = "--role, --index" if kind.pod_roles else "--index"
    return [best], (
        f"{len(pods)} pods, showing {best.name}{f' ({said})' if said else ''}; select with {ways} or --pod, or use "
        "--all-pods"
    )


def _check_role(pods: Sequence[Pod], role: str, kind: Kind) -> None:
    """Whether some pod has this role; raises Failure."""
    if problem := kind.pod_roles.problem(role):
        raise Failure(f"--role {role}: {problem}")
    if not any(kind.pod_roles.is_meant(role, pod.role) for pod in pods):
        there = dict.fromkeys(pod.role for pod in sorted(pods, key=order_of(kind)))
        raise Failure(f"the {kind.name} has no pod of role {role}; its roles: {_named(there)}")


def _interest(pod: Pod, kind: Kind) -> tuple[bool, int, int, str, str]:
    """What has begun, of the first role; what runs is asked for most, then what has failed, then what has ended.

    Of those the newest.
    """
    rank = {"Running": 3, "Failed": 2, "Succeeded": 1}.get(pod.phase, 0)
    return rank > 0, -kind.pod_roles.rank(pod.role), rank, pod.created, pod.name


def _containers(pod: Pod, choice: Choice) -> list[Target]:
    if choice.all_containers:
        return [Target(pod.name, container) for container in pod.containers]
    if choice.container and choice.container not in pod.containers:
        raise Failure(f"pod {pod.name} has no container {choice.container}; its containers: {_named(pod.containers)}")
    return [Target(pod.name, choice.container or pod.main)]


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    shown = ", ".join(listed[:MOST_NAMED])
    return f"{shown} and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else shown
