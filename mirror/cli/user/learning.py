"""Which kinds the manager mirrors, found out by a command that needs to know, with the user's own permissions.

The manager tells it where it tells its address: in a ConfigMap that everybody who is known to the cluster may read.
Where that is not to be had (access is not enabled), it is guessed: the kinds that are built in, as far as discovery
has them. Neither needs a permission that ``mirror get`` of Jobs does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from mirror.batch import views
from mirror.cli.user import naming, printing
from mirror.cli.user.cluster import Cluster, management
from mirror.cli.user.failures import Failure
from mirror.cli.user.naming import Named
from mirror.cli.user.options import Where
from mirror.cli.user.similar import with_hint
from mirror.kinds import registry
from mirror.kinds.registry import Kinds
from mirror.kube import requests
from mirror.kube.errors import Forbidden, KubeError, NotFound
from mirror.kube.objects import JUNK
from mirror.kube.requests import Request
from mirror.kube.resources import CONFIGMAPS
from mirror.model import names

Work = Coroutine[Any, Any, None]

KEY = "kinds"
"""Of the ConfigMap."""
DEADLINE_SECONDS = 10.0


class _Version(msgspec.Struct, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct):
    versions: list[_Version] = []


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


async def learn(where: Where) -> None:
    """Find out which kinds there are; ``naming.kinds`` has them from then on.

    What cannot be found out is left as it was: what the command asks for next says why.

    Raises:
        Failure: nothing says where the management cluster is.
    """
    async with management(where) as cluster:
        naming.know(await kinds_of_manager(cluster, where.manager_namespace))


def knowing(where: Where, work: Callable[[], Work]) -> Callable[[], Work]:
    """Work that knows the kinds; where no cluster is named it does what it can without."""

    async def do() -> None:
        with suppress(Failure):  # the work says so itself, if it needs a cluster
            await learn(where)
        await work()

    return do


def about_one(where: Where, words: Sequence[str], work: Callable[[Named], Work]) -> Callable[[], Work]:
    """Work on the one object that these words mean; they are read once the kinds are known, if they name one."""

    async def do() -> None:
        if naming.may_name_a_kind(words):
            await learn(where)
        wanted = naming.one_named(words)
        await with_hint(where, wanted, work(wanted))

    return do


async def kinds_of_manager(cluster: Cluster, namespace: str) -> Kinds:
    """The kinds of the manager of this namespace, or those that it may have."""
    base = registry.BUILT_IN
    try:
        told = await _told(cluster, namespace)
        if told is None:
            return await _guessed(cluster, base)
    except KubeError:
        return base
    if told == "[]":
        return base
    from mirror.kinds.declared import published  # a quarter of a second that Jobs alone need not cost

    found = published.read(told, base)
    if found is None:
        return base
    if found.left_out:
        unknown = ", ".join(found.left_out)
        printing.remark(f"the manager mirrors {unknown} in a way that this version of the command does not know")
    return found.kinds


async def _told(cluster: Cluster, namespace: str) -> str | None:
    """What the manager has published; None: nothing."""
    request = requests.get(CONFIGMAPS, names.ACCESS_CONFIGMAP, namespace=namespace)
    try:
        found = await cluster.client.send_object(request)
    except (NotFound, Forbidden):
        return None
    return views.text(found.data_dict().get(KEY)) or None


async def _guessed(cluster: Cluster, base: Kinds) -> Kinds:
    raw = await cluster.client.send(Request("get", "GET", "/apis", deadline_seconds=DEADLINE_SECONDS))
    try:
        groups = msgspec.json.decode(raw, type=_Groups).groups
    except JUNK:
        return base
    served = {version.group_version for group in groups for version in group.versions}
    from mirror.kinds.declared import published

    return published.guessed(base, served)
