"""``mirror worker forget``: a person's word about a worker, on its Secret, or on one that takes its place (D14)."""

from __future__ import annotations

import json

import pytest
from test_cli_worker import HOME, Clusters, clusters, place

from mirror.cli.worker import add
from mirror.cli.worker.forgetting import forget
from mirror.cli.worker.operations.sites import ClusterError
from mirror.model import names
from mirror.planes.api import Api

__all__ = ["clusters"]

SECRETS, CONFIGMAPS = (f"/api/v1/namespaces/{HOME}/{plural}" for plural in ("secrets", "configmaps"))


async def recorded(api: Api, state: str) -> None:
    record = {"metadata": {"name": names.WORKERS_CONFIGMAP}, "data": {"east": json.dumps({"uid": "u", "state": state})}}
    await api.create(CONFIGMAPS, record)


async def test_its_secret_says_it(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    """And how many Jobs start again is printed."""
    api = clusters.management.api
    await add.add(clusters.asked(no_check=True))
    await recorded(api, "Lost")
    await place(api, "train")
    await forget(clusters.where, "east")
    assert (await api.get(f"{SECRETS}/east"))["metadata"]["annotations"] == {names.GONE: "true"}
    assert "✓ worker east is declared dead: 1 Job recorded there will start again elsewhere" in capsys.readouterr().out


async def test_a_secret_that_is_gone_is_put_back_without_a_kubeconfig(clusters: Clusters) -> None:
    """The manager reads it there: a worker that it knows and cannot reach."""
    api = clusters.management.api
    await recorded(api, "Lost")
    await forget(clusters.where, "east")
    secret = await api.get(f"{SECRETS}/east")
    assert secret["metadata"]["labels"] == {names.WORKER: "true"}
    assert secret["metadata"]["annotations"] == {names.GONE: "true"}
    assert "data" not in secret


async def test_one_that_is_reachable_is_not_dead(clusters: Clusters) -> None:
    """Draining loses nothing."""
    await add.add(clusters.asked(no_check=True))
    await recorded(clusters.management.api, "Connected")
    with pytest.raises(ClusterError, match="worker east is reachable: use mirror worker drain east"):
        await forget(clusters.where, "east")


async def test_one_that_never_was_is_not_found(clusters: Clusters) -> None:
    """A mistake in the name registers nothing."""
    with pytest.raises(ClusterError, match="worker west not found"):
        await forget(clusters.where, "west")
