"""What was probably meant by the name of an object that is not there. Asked for only once a command has failed.

The user's own permission to list is used, and only the first page is read: a hint is worth no more.
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from mirror.cli.user.cluster import Cluster, management
from mirror.cli.user.failures import Failure, NotThere
from mirror.cli.user.naming import Named
from mirror.cli.user.options import Where
from mirror.kinds.base import Kind
from mirror.model.text import nearest


async def hint(cluster: Cluster, kind: Kind, name: str) -> str:
    """``; did you mean NAME?``, or nothing where no name is near, or they may not be listed."""
    try:
        known = await cluster.first_names(kind.resource)
    except Failure:
        return ""
    if name in known:
        return f"; mirror get {name} says why"
    meant = nearest(name, known)
    return f"; did you mean {meant}?" if meant else ""


async def with_hint(where: Where, wanted: Named, work: Coroutine[Any, Any, None]) -> None:
    """Do this work on one object; where that is not there, say what was probably meant.

    Raises:
        NotThere: it is not there.
    """
    try:
        await work
    except NotThere as failure:
        meant = ""
        with suppress(Failure):
            async with management(where) as cluster:
                meant = await hint(cluster, wanted.kind, wanted.name)
        raise NotThere(failure.message + meant) from None
