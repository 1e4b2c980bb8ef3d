"""``mirror worker forget``: a person's word about a worker, on its Secret, or on one that takes its place (D14)."""

from __future__ import annotations

import json

import pytest
from test_cli_worker import HOME, Clusters, clusters, place

from mirror.cli.worker import add, check, drain, listing
from mirror.cli.worker.forgetting import forget, undo
from mirror.cli.worker.operations import draining
from mirror.cli.worker.operations.checking.judging import Finding
from mirror.cli.worker.operations.sites import ClusterError
from mirror.model import names
from mirror.planes.api import Api

__all__ = ["clusters"]

SECRETS, CONFIGMAPS = (f"/api/v1/namespaces/{HOME}/{plural}" for plural in ("secrets", "configmaps"))


async def recorded(api: Api, state: str, **more: str) -> None:
    entry = {"uid": "u", "state": state, **more}
    record = {"metadata": {"name": names.WORKERS_CONFIGMAP}, "data": {"east": json.dumps(entry)}}
    await api.create(CONFIGMAPS, record)


async def word(api: Api) -> str | None:
    """What the Secret says."""
    found: str | None = ((await api.get(f"{SECRETS}/east"))["metadata"].get("annotations") or {}).get(names.GONE)
    return found


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


async def test_it_is_taken_back(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    """On its Secret; who says so twice changes nothing."""
    api = clusters.management.api
    await add.add(clusters.asked(no_check=True))
    await recorded(api, "Lost")
    await place(api, "train")
    await forget(clusters.where, "east")
    capsys.readouterr()
    await undo(clusters.where, "east")
    assert await word(api) == "false"
    assert capsys.readouterr().out == "✓ worker east is not declared dead any more: 1 Job recorded there waits for it\n"
    await undo(clusters.where, "east")
    assert capsys.readouterr().out == "✓ worker east was not declared dead\n"
    await forget(clusters.where, "east")
    assert await word(api) == "true"


async def test_it_is_taken_back_though_its_secret_was_removed(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manager remembers it: a Secret without a kubeconfig says so."""
    api = clusters.management.api
    await recorded(api, "Lost", goneBy="uid")
    await undo(clusters.where, "east")
    assert await word(api) == "false"
    assert "data" not in await api.get(f"{SECRETS}/east")
    printed = capsys.readouterr().out
    assert "0 Jobs recorded there wait for it" in printed
    assert "its new Secret has no kubeconfig: mirror worker add east --context CONTEXT writes it" in printed


async def test_it_is_taken_back_though_another_secret_says_neither(clusters: Clusters) -> None:
    """A tool has restored it: that the annotation is not there would not take it back."""
    api = clusters.management.api
    await add.add(clusters.asked(no_check=True))
    await recorded(api, "Lost", goneBy="uid")
    await undo(clusters.where, "east")
    assert await word(api) == "false"


async def test_one_that_never_was_is_not_undone(clusters: Clusters) -> None:
    """As for ``forget``."""
    with pytest.raises(ClusterError, match="worker west not found"):
        await undo(clusters.where, "west")


async def test_it_is_listed_and_checked_as_dead(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    """With how that is taken back."""
    await add.add(clusters.asked(no_check=True))
    await recorded(clusters.management.api, "Lost")
    await forget(clusters.where, "east")
    capsys.readouterr()
    await listing.show(clusters.where, "json")
    printed = capsys.readouterr().out
    (row,) = json.loads(printed[printed.index("{") :])["items"]
    assert (row["name"], row["dead"]) == ("east", True)
    verdict, text = (await clusters.check())["declared dead"]
    assert (verdict, text) == (
        "warn",
        "it gets no new Jobs, and those recorded there start again elsewhere while it is unreachable",
    )


async def test_one_that_was_removed_is_checked_by_its_name(clusters: Clusters) -> None:
    """As long as Jobs are recorded there; else there is no such worker."""
    api = clusters.management.api
    with pytest.raises(ClusterError, match="worker east not found"):
        await reports_of(clusters)
    await recorded(api, "Lost", goneBy="uid")
    assert [(one.what, one.verdict) for one in await reports_of(clusters)][:2] == [
        ("declared dead", "warn"),
        ("secret", "fail"),
    ]


async def reports_of(clusters: Clusters) -> list[Finding]:
    """What ``mirror worker check east`` finds."""
    async with check.clusters.home(clusters.where) as home:
        (report,) = await check.reports(home, check.Asked(workers=("east",), where=clusters.where))
    return report.findings


async def test_it_is_removed_once_the_manager_has_recorded_it(
    clusters: Clusters, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its Secret nothing else would say it, and the Jobs that were not moved yet would wait."""
    api = clusters.management.api
    await add.add(clusters.asked(no_check=True))
    await place(api, "train")
    await recorded(api, "Lost")
    await forget(clusters.where, "east")
    with pytest.raises(ClusterError, match=r"1 unfinished Jobs are on worker east .*: it is declared dead, so they"):
        await drain.remove(clusters.where, "east", drain.Removal())
    monkeypatch.setattr(draining, "RECORDED_WITHIN_SECONDS", 0.0)
    with pytest.raises(ClusterError, match="the manager has not recorded that yet"):
        await drain.remove(clusters.where, "east", drain.Removal(is_forced=True))
    assert await word(api) == "true"
    entry = {"uid": "u", "state": "Lost", "goneBy": "uid"}
    await api.merge(f"{CONFIGMAPS}/{names.WORKERS_CONFIGMAP}", {"data": {"east": json.dumps(entry)}})
    monkeypatch.undo()
    capsys.readouterr()
    await drain.remove(clusters.where, "east", drain.Removal(is_forced=True, allow=("loopback",)))
    printed = capsys.readouterr()
    assert "✓ worker east is unregistered" in printed.out
    assert "1 unfinished Jobs are on worker east (default/train): they start again elsewhere" in printed.err
    await listing.show(clusters.where, "json")
    printed_again = capsys.readouterr().out
    (row,) = json.loads(printed_again[printed_again.index("{") :])["items"]
    assert (row["name"], row["dead"], row["jobs"]) == ("east", True, 1)


async def test_without_that_word_jobs_wait_and_that_is_said(
    clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--force`` on a worker that is not declared dead."""
    api = clusters.management.api
    await add.add(clusters.asked(no_check=True))
    await place(api, "train")
    capsys.readouterr()
    await drain.remove(clusters.where, "east", drain.Removal(is_forced=True, allow=("loopback",)))
    assert "(default/train): they wait for a worker of this name" in capsys.readouterr().err
