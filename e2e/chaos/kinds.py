"""What a campaign needs of a kind: how its objects are written, what runs them, how they are read.

``KINDS`` is the table that everything here asks; a further kind is a further line. Objects are read as the API has
them: nothing of ``mirror.kinds``, which is what is judged, is used for Jobs. Not here: what must hold (``judging``).
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from e2e import drills
from e2e.chaos.history import Json
from e2e.controlplane.client import Client, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import RUN_FOR_KEY, indexed, job
from mirror.kube.resources import JOBS, Resource
from tests.doubles.drills import DRILLS, drill

_RUN_FOR = {"200ms": 20, "1s": 20, "4s": 20, "15s": 20, "40s": 10, "120s": 6, "never": 3}
"""How many Jobs in a hundred or so run so long; those that never end do so once all is healed."""
_STOPS_AFTER = ("3s", "8s")
"""What some pods take to stop, as real ones do: whoever does not wait for that has two of them run."""
_DEADLINES = (10, 45, 400)
"""What some users give their Jobs, in seconds: less and more than a lease."""
_ROUNDS = {1: 25, 4: 25, 15: 25, 40: 15, 100_000: 3}
"""The same of Drills, whose rounds take a second each."""
_ENDLESS_ROUNDS = 1_000_000


class Maker(Protocol):
    """Makes an object of this name; without ``managed_by`` it is nobody's."""

    def __call__(self, name: str, managed_by: str | None = None) -> Json: ...


class Serving(Protocol):
    """Has a kind served on the management cluster and the workers, and run on the workers, while the block lasts."""

    def __call__(self, *planes: ControlPlane) -> AbstractAsyncContextManager[None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredKind:
    """One line of the table."""

    resource: Resource
    policy: tuple[str, ...] = ()
    """Below ``spec``: where ``managedBy`` and ``suspend`` are."""
    suspend: str = "suspend"
    """The field that suspends it."""
    ends: Mapping[str, str] = field(hash=False)
    """The conditions that end it, the good one first, and for each what its controller says before, if anything."""
    left_out: tuple[str, ...] = ()
    """Fields of ``spec`` that no rule asks for."""
    can_move: bool = False
    """Whether one is moved from a lost worker."""
    resized: Callable[[Json, random.Random], Json | None] | None = None
    """A merge patch that gives one another size; None: this one has a size for ever. Without it, all have."""
    made: Callable[[str, str, random.Random], Json]
    """One as users submit it, of a name and ``managedBy``: how long it runs and how it ends is random."""
    endless: tuple[Maker, ...]
    """Forms of one that runs until it is hurried."""
    hurry: Callable[[Client, str], Awaitable[None]]
    """Let all that runs in a namespace of a worker end now."""
    served: Serving
    etcd_prefix: str
    """Of the keys of its objects."""

    @property
    def name(self) -> str:
        """Its plural, as in the history."""
        return self.resource.plural

    def managed_by(self, body: Json) -> str | None:
        """Who runs it, if it says so."""
        found: str | None = self._policy_of(body).get("managedBy")
        return found

    def is_suspended(self, body: Json) -> bool:
        """Whether its spec suspends it."""
        return bool(self._policy_of(body).get(self.suspend))

    def suspension(self, value: bool) -> Json:
        """A merge patch that suspends or resumes it."""
        patch: Json = {self.suspend: value}
        for name in reversed(("spec", *self.policy)):
            patch = {name: patch}
        return patch

    def suspended(self, body: Json) -> Json:
        """The same, suspended."""
        self._policy_of(body)[self.suspend] = True
        return body

    def end(self, body: Json) -> Json | None:
        """The condition that ended it."""
        return next((found for kind in self.ends if (found := condition(body, kind))), None)

    @property
    def complete(self) -> str:
        """The condition that says that it has ended well."""
        return next(iter(self.ends))

    def may_run(self, body: Json) -> bool:
        """Whether its controller may be running it."""
        is_going = "deletionTimestamp" in body["metadata"]
        return self.end(body) is None and not is_going and not self.is_suspended(body)

    def _policy_of(self, body: Json) -> Json:
        found: Json = body["spec"]
        for name in self.policy:
            found = found.get(name) or {}
        return found


def condition(body: Json, kind: str) -> Json | None:
    """Its condition of this type if it is true."""
    listed = (body.get("status") or {}).get("conditions") or ()
    return next((one for one in listed if one["type"] == kind and one["status"] == "True"), None)


# -- Jobs, run by Kubernetes' own controllers --------------------------------------------------------------------------


def _ended_by_policy(name: str, managed_by: str | None = None, **more: Any) -> Json:
    """Two successes are enough, and those that still run then are ended."""
    policy = {"rules": [{"succeededCount": 2}]}
    return indexed(name, managed_by, completions=4, parallelism=1, successPolicy=policy, **more)


def _limited_per_index(
    name: str, managed_by: str | None = None, pods: Mapping[str, str] | None = None, **more: Any
) -> Json:
    """Its second index fails each time, and the others go on."""
    limits = {"backoffLimit": 100, "backoffLimitPerIndex": 1}
    fails = {**(pods or {}), "exit-code-index-1": "1"}
    return indexed(name, managed_by, completions=4, parallelism=2, pods=fails, **{**more, **limits})


_FORMS: dict[Callable[..., Json], int] = {
    job: 60,
    indexed: 24,  # as large as it is parallel, so that it may get another size
    _ended_by_policy: 8,
    _limited_per_index: 8,
}
"""How many Jobs in a hundred are of each."""


def _some_job(name: str, managed_by: str, chance: random.Random) -> Json:
    form = chance.choices(list(_FORMS), list(_FORMS.values()))[0]
    run_for = chance.choices(list(_RUN_FOR), list(_RUN_FOR.values()))[0]
    exit_code, backoff_limit = int(chance.random() < 0.15), chance.choice((0, 2))
    pods = {"stop-after": chance.choice(_STOPS_AFTER)} if chance.random() < 0.3 else {}
    found = form(name, managed_by, run_for=run_for, exit_code=exit_code, pods=pods, backoffLimit=backoff_limit)
    if chance.random() < 0.1:
        found["spec"]["activeDeadlineSeconds"] = chance.choice(_DEADLINES)
    return found


def _resized_job(body: Json, chance: random.Random) -> Json | None:
    """Only one with indexes that is as large as it is parallel may change, and both at once."""
    spec = body["spec"]
    if spec.get("completionMode") != "Indexed" or spec.get("completions") != spec.get("parallelism"):
        return None
    size = chance.randint(1, 6)
    return {"spec": {"completions": size, "parallelism": size}}


async def _end_pods(client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    now = {"metadata": {"annotations": {RUN_FOR_KEY: "0s"}}}
    for pod in await client.list(path, fieldSelector="status.phase=Running"):
        if pod["metadata"]["annotations"].get(RUN_FOR_KEY) != "0s":
            with suppress(StatusError):
                await client.merge(f"{path}/{pod['metadata']['name']}", now)


def _served_anyway(*_: ControlPlane) -> AbstractAsyncContextManager[None]:
    return nullcontext()


# -- Drills, the tests' own --------------------------------------------------------------------------------------------


def _drill(name: str, managed_by: str | None = None, *, rounds: int = _ENDLESS_ROUNDS) -> Json:
    body = drill(name, managedBy=managed_by)
    if managed_by is None:
        del body["spec"]["run"]["managedBy"]
    body["spec"]["rounds"] = rounds
    return body


def _some_drill(name: str, managed_by: str, chance: random.Random) -> Json:
    return _drill(name, managed_by, rounds=chance.choices(list(_ROUNDS), list(_ROUNDS.values()))[0])


async def _last_round(client: Client, namespace: str) -> None:
    path = DRILLS.path(namespace)
    for found in await client.list(path):
        if found["spec"]["rounds"] > 1:
            with suppress(StatusError):
                await client.merge(f"{path}/{found['metadata']['name']}", {"spec": {"rounds": 1}})


JOB = MirroredKind(
    resource=JOBS,
    ends={"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"},
    left_out=("template", "selector"),
    can_move=True,
    resized=_resized_job,
    made=_some_job,
    endless=(
        partial(job, run_for="never"),
        partial(indexed, run_for="never", pods={"stop-after": "5s"}),
        # Not endless, but longer than leases are: it is about what it has counted by then.
        partial(indexed, run_for="10s", completions=80, parallelism=2),
        # These count meanwhile, too, and end by what is counted.
        partial(_ended_by_policy, run_for="40s"),
        partial(_limited_per_index, run_for="40s"),
    ),
    hurry=_end_pods,
    served=_served_anyway,
    etcd_prefix=f"/registry/{JOBS.plural}/",
)
DRILL = MirroredKind(
    resource=DRILLS,
    policy=("run",),
    suspend="paused",
    ends={"Succeeded": "", "Broken": ""},
    made=_some_drill,
    endless=(_drill,),
    hurry=_last_round,
    served=partial(drills.served, every_seconds=1.0),
    etcd_prefix=f"/registry/{DRILLS.group}/{DRILLS.plural}/",
)
KINDS = {kind.name: kind for kind in (JOB, DRILL)}
"""By plural."""
