"""Whose logs are meant: which pods of a mirror, and which of their containers. Pure; used by ``logs``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mirror.cli.user.failures import Failure
from mirror.cli.user.pods import Pod, order

MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """What of the pods is wanted."""

    pod: str = ""
    index: int | None = None
    all_pods: bool = False
    container: str = ""
    all_containers: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """One container of one pod. Where they are empty, who is asked chooses, by the index if there is one."""

    pod: str
    container: str
    index: int | None = None


def choose(pods: Sequence[Pod], choice: Choice) -> tuple[list[Target], str]:
    """The containers to read, and a remark where others could have been meant; no pods, no targets.

    Raises:
        Failure: what was asked for is not there.
    """
    if not pods:
        return [], ""
    chosen, remark = _pods(pods, choice)
    return [target for pod in chosen for target in _containers(pod, choice)], remark


def _pods(pods: Sequence[Pod], choice: Choice) -> tuple[list[Pod], str]:
    if choice.pod:
        named = [pod for pod in pods if pod.name == choice.pod]
        if not named:
            raise Failure(f"the Job has no pod {choice.pod}; its pods: {_named(pod.name for pod in pods)}")
        return named, ""
    if choice.index is not None:
        pods = [pod for pod in pods if pod.index == str(choice.index)]
        if not pods:
            raise Failure(f"the Job has no pod with index {choice.index}")
    if choice.all_pods:
        return sorted(pods, key=order), ""
    best = max(pods, key=_interest)
    if len(pods) == 1:
        return [best], ""
    what = f" (index {best.index})" if best.index else ""
    return [best], f"{len(pods)} pods, showing {best.name}{what}; select with --index or --pod, or use --all-pods"


def _interest(pod: Pod) -> tuple[int, str, str]:
    """What runs is asked for most, then what has failed, then what has ended; of those the newest."""
    rank = {"Running": 3, "Failed": 2, "Succeeded": 1}
    return rank.get(pod.phase, 0), pod.created, pod.name


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
