"""Replicas that share certificates of our own making through a Secret, on an embedded API server."""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta

import pytest
from doubles.refusals import Refused
from doubles.transport import Fault, Wire, client_of, wire_to

from mirror.kube.errors import KubeError
from mirror.model import names
from mirror.model.endings import CannotStart
from mirror.serving.certificates import Certificates, SelfManaged, served_names
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

HOME = "jobmirror-system"


def replica(wire: Wire, *more: str, days: float = 0) -> SelfManaged:
    """One whose clock is so far ahead."""
    return SelfManaged(
        client_of(wire), HOME, served_names(HOME, more), now=lambda: wire.clock.now() + timedelta(days=days)
    )


def secret(wire: Wire) -> dict[str, bytes]:
    data = wire.server.get("secrets", names.HTTPS_SECRET, HOME)["data"]
    return {key: base64.b64decode(value) for key, value in data.items()}


async def test_the_first_look_makes_everything() -> None:
    """The second reads it."""
    wire = wire_to("management")
    made = await replica(wire).look()
    assert set(secret(wire)) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
    assert await replica(wire).look() == made
    assert len(wire.writes()) == 1


async def test_replicas_that_start_at_once_agree() -> None:
    """Who loses the race reads what the winner wrote."""
    wire = wire_to("management")
    async with asyncio.TaskGroup() as scope:
        tasks = [scope.create_task(replica(wire).look(), name=f"replica {n}") for n in range(5)]
    assert len({task.result().authority for task in tasks}) == 1


async def test_replicas_that_renew_at_once_agree() -> None:
    """After sixty-one days all of them find the certificate old; the authority stays."""
    wire = wire_to("management")
    made = await replica(wire).look()
    async with asyncio.TaskGroup() as scope:
        tasks = [scope.create_task(replica(wire, days=61).look(), name=f"replica {n}") for n in range(5)]
    assert len({task.result().pair for task in tasks}) == 1
    assert tasks[0].result().pair != made.pair
    assert tasks[0].result().authority == made.authority


async def test_a_secret_that_an_operator_emptied_is_filled() -> None:
    """So the right to create one can be kept from us."""
    wire = wire_to("management")
    wire.server.put("secrets", {"metadata": {"name": names.HTTPS_SECRET, "namespace": HOME}})
    made = await replica(wire).look()
    assert secret(wire)["ca.crt"] == made.authority


async def test_a_deleted_secret_is_made_anew() -> None:
    """Which is how an operator replaces an authority at once."""
    wire = wire_to("management")
    made = await replica(wire).look()
    wire.server.remove("secrets", names.HTTPS_SECRET, HOME)
    assert (await replica(wire).look()).authority != made.authority


async def test_an_outage_later_on_changes_nothing() -> None:
    """What is served is served on, and renewed when the cluster is back."""
    wire = wire_to("management")
    clock = {"days": 0.0}
    source = SelfManaged(
        client_of(wire), HOME, served_names(HOME), now=lambda: wire.clock.now() + timedelta(days=clock["days"])
    )
    certificates = Certificates(source, log=get_log("test"))
    seen: list[bytes] = []
    certificates.when_changed(lambda: seen.append(certificates.authority))
    await certificates.load()
    async with asyncio.TaskGroup() as scope:
        keeping = scope.create_task(certificates.keep(), name="keep")
        clock["days"] = 61.0
        wire.is_down = True
        await asyncio.sleep(100)
        assert len(seen) == 1
        wire.is_down = False
        await asyncio.sleep(20)
        assert len(seen) == 2
        keeping.cancel()


async def test_a_missing_right_is_told_at_the_start() -> None:
    """With the file that grants it."""
    wire = wire_to("management")
    wire.arrange("get", "secrets", Refused(403, "Forbidden"))
    with pytest.raises(CannotStart, match=r"missing permission to write Secret jobmirror-https .*rbac/https.yaml"):
        await Certificates(replica(wire), log=get_log("test")).load()


async def test_a_cluster_that_is_slow_to_start_is_waited_for() -> None:
    """For half a minute."""
    wire = wire_to("management")
    wire.arrange("get", "secrets", Fault.BREAK, times=3)
    await Certificates(replica(wire), log=get_log("test")).load()
    wire.is_down = True
    with pytest.raises(CannotStart, match="Secret jobmirror-https: "):
        await Certificates(replica(wire), log=get_log("test")).load()


async def test_a_lost_answer_is_no_second_authority() -> None:
    """The create was carried out: the next look reads it."""
    wire = wire_to("management")
    wire.arrange("create", "secrets", Fault.LOSE_ANSWER)
    with pytest.raises(KubeError):
        await replica(wire).look()
    assert (await replica(wire).look()).authority == secret(wire)["ca.crt"]
