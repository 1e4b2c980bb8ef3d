"""A user's token at any of three managers that work at once: each answers, by whoever knows (decision 0032)."""

from __future__ import annotations

import asyncio

import pytest
from access_slot_world import AccessSlotWorld, host_of
from access_world import ACCOUNTS, Got, access_world

from mirror.access.bounds import Bounds
from mirror.access.elsewhere import PassedOn
from mirror.access.logs import Cut
from mirror.access.peers import PASSED_ON, digest_of
from mirror.access.reviews import GUESSES_A_SECOND_OF_MEMBER, GUESSES_AT_ONCE_OF_MEMBER, GUESSES_AT_ONCE_OF_PEER
from mirror.embedded.apiserver.apimachinery import errors
from mirror.embedded.faults.targets import Which
from mirror.kinds.registry import JOB
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.serving.client_certificates import CertificateUser

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

ANN = {"authorization": "Bearer token-of-ann"}
TRAIN = SourceKey(JOB.name, "default", "train")


def managers(bounds: Bounds | None = None):  # type: ignore[no-untyped-def]  # a context, as access_world gives it
    return access_world("east", "west", bounds=bounds, form=AccessSlotWorld)


async def test_each_manager_answers_what_only_one_of_them_knows() -> None:
    """Pods, events, differences, the log; the two others pass it on with the caller's own token, once."""
    async with managers() as world:
        worker, pod, owner, _ = await world.runs(b"one\ntwo\n")
        for replica in world.replicas:
            world.ways.passed.clear()
            pods = await world.ask_at(replica, "train/pods")
            events = await world.ask_at(replica, "train/events")
            compared = await world.ask_at(replica, "train/diff")
            log = await world.ask_at(replica, "train/log?tailLines=2")

            assert [one["metadata"]["name"] for one in pods.json["items"]] == [pod]
            assert (events.code, compared.code, compared.json["worker"]) == (200, 200, worker)
            assert bytes(log.text) == b"one\ntwo\n"
            assert log.headers == {"X-Jobmirror-Worker": worker, "X-Jobmirror-Pod": pod}
            passed = [(one.to, one.authorization) for one in world.ways.passed]
            assert passed == ([] if replica is owner else [(owner.identity, "Bearer token-of-ann")] * 4)


async def test_the_history_is_the_owners() -> None:
    """The same at each manager, and the list everywhere."""
    async with managers() as world:
        await world.runs()
        found = [(await world.ask_at(replica, "train")).json for replica in world.replicas]

        assert found[0] == found[1] == found[2]
        assert "Mirrored" in [one["kind"] for one in found[0]["timeline"]]
        assert "unavailable" not in found[0]
        for replica in world.replicas:
            listed = await world.ask_at(replica, "/v1/namespaces/default/jobs")
            assert [one["name"] for one in listed.json["items"]] == ["train"]


async def test_of_a_job_without_a_worker_who_assigns_is_asked() -> None:
    async with managers() as world:
        await world.until_shared()
        await world.create("train", annotations={names.WORKER_SELECTOR: "tier=none"})
        await asyncio.sleep(15)
        assigner = world.assigner()
        for replica in world.replicas:
            world.ways.passed.clear()
            found = (await world.ask_at(replica, "train")).json

            assert (found["job"]["state"], set(found["lacks"])) == ("Waiting", {"", "east", "west"})
            assert [one.to for one in world.ways.passed] == ([] if replica is assigner else [assigner.identity])


async def test_who_assigns_compares_a_job_that_waits_since_others_may_have_come_after_its_refusals() -> None:
    """Where it does not answer, who was asked compares, and says who might know more."""
    async with managers() as world:
        await world.until_shared()
        for worker in ("east", "west"):
            refusal = errors.forbidden("jobs", "train", "", "no role allows it")
            world.workers[worker].faults.arrange(refusal, Which("create", "jobs"), times=1_000)
        await world.create("train")
        await asyncio.sleep(20)
        assigner = world.assigner()
        world.start_replica()
        await asyncio.sleep(3)
        for replica in world.replicas:
            found = (await world.ask_at(replica, "train/diff")).json
            assert found["lacks"] == dict.fromkeys(("east", "west"), "not allowed (403 Forbidden)")
            assert (found["note"], found["report"]["differences"] != []) == ("", True)
        await world.kill(assigner)
        left = (await world.ask_at(world.others(assigner)[0], "train/diff")).json

        named = f"manager {assigner.identity}, which assigns workers, does not answer: connection refused"
        assert (left["note"], left["report"]) == (named, found["report"])


async def test_an_owner_that_is_dead_is_named_and_what_is_known_is_answered() -> None:
    """Until its Lease has ended, it holds the slot; afterwards nobody, and then the next one answers."""
    async with managers() as world:
        worker, _, owner, other = await world.runs()
        await world.kill(owner)

        job, pods = await world.ask_at(other, "train"), await world.ask_at(other, "train/pods")
        named = f"manager {owner.identity}, which follows worker {worker}, does not answer: connection refused"
        assert (job.code, job.json["job"]["worker"], job.json["unavailable"]) == (200, worker, named)
        assert (pods.code, pods.message) == (503, named)

        async def is_known_again() -> bool:
            return (await world.ask_at(other, "train/pods")).code == 200

        await world.until(is_known_again, seconds=120)
        assert "unavailable" not in (await world.ask_at(other, "train")).json


async def test_a_log_whose_owner_dies_under_way_is_cut() -> None:
    """So that nobody takes what came for all of it."""
    async with managers() as world:
        worker, _, owner, other = await world.runs(b"one\n")
        got = Got()

        async def read() -> str:
            try:
                await world.ask_at(other, "train/log?follow=true", got=got)
            except Cut as cut:
                return str(cut)
            return "whole"

        reading = asyncio.ensure_future(read())
        await asyncio.sleep(1)
        assert bytes(got.text).endswith(b"one\n")
        await world.kill(owner)
        assert (await reading).startswith(
            f"the connection to manager {owner.identity}, which follows worker {worker}, failed"
        )


async def test_an_answer_that_an_owner_dies_over_is_none() -> None:
    async with managers() as world:
        worker, _, owner, other = await world.runs()
        world.workers[worker].faults.latency_seconds = 5.0  # an answer takes as long
        asking = asyncio.ensure_future(world.ask_at(other, "train/pods"))
        await asyncio.sleep(1)
        await world.kill(owner)
        got = await asking

        assert got.code == 503
        assert f"manager {owner.identity}, which follows worker {worker}, does not answer" in got.message


async def test_nothing_is_passed_on_twice() -> None:
    """Who is taken for the owner, and is not, says so: two that disagree do not ask each other for ever."""
    async with managers() as world:
        worker, _, _, other = await world.runs()
        for what in ("train", "train/pods", "train/log", "train/diff"):
            got = await world.ask_at(other, what, headers={**ANN, PASSED_ON: "true"})
            assert got.code == 503
            assert got.message == f"manager {other.identity} is not the one that follows worker {worker}; retry"
        assert not world.ways.passed


async def test_rights_are_looked_at_before_anything_is_passed_on() -> None:
    async with managers() as world:
        other = (await world.runs()).other
        got = await world.ask_at(other, "train/pods", headers={"authorization": "Bearer token-of-eve"})
        assert (got.code, world.ways.passed) == (403, [])


async def test_a_user_with_a_certificate_is_advised_what_to_do_where_another_manager_has_to_answer() -> None:
    """Its key is not ours. Trying again would not help."""
    async with managers() as world:
        worker, _, owner, other = await world.runs()
        certificate = CertificateUser("ann", (), float("inf"))
        pods = await world.ask_at(other, "train/pods", headers={}, certificate=certificate)
        job = await world.ask_at(other, "train", headers={}, certificate=certificate)

        advice = (
            f"manager {owner.identity}, which follows worker {worker}, has to answer, and a client certificate cannot "
            "be passed on to it: use a bearer token of the management cluster (--token), or send the request to that "
            "manager itself, through a port-forward to its pod (--server)"
        )
        assert (pods.code, pods.message, pods.retry_after) == (503, advice, "")
        assert (job.code, job.json["unavailable"]) == (200, advice)
        assert (await world.ask_at(owner, "train/pods", headers={}, certificate=certificate)).code == 200
        assert (world.ways.passed, world.counted) == ([], {PassedOn.NO_TOKEN: 2})


async def test_what_is_passed_on_is_counted_once_by_who_was_asked() -> None:
    async with managers() as world:
        _, _, owner, other = await world.runs(b"one\n")
        for what in ("train", "train/log", "none/pods", "train/log?container=none"):
            await world.ask_at(other, what)
        await world.ask_at(owner, "train/pods")
        assert world.counted == {PassedOn.ANSWERED: 2, PassedOn.REFUSED: 1}
        await world.kill(owner)
        await world.ask_at(other, "train/log")
        assert world.counted[PassedOn.UNREACHABLE] == 1


async def test_whose_tokens_are_over_shuts_nobody_else_out_of_another_manager() -> None:
    """What one manager accepted seconds ago, another one may refuse: it is held against this user."""
    async with managers() as world:
        other = (await world.runs()).other
        tokens = await world.tokens_of(["robot"] * (GUESSES_AT_ONCE_OF_PEER + 5))
        assert {(await world.ask_at(other, "none/pods", headers=one)).code for one in tokens} == {404}
        await world.management.api.delete(f"{ACCOUNTS}/robot")
        codes = [(await world.ask_at(other, "train/pods", headers=one)).code for one in tokens]

        assert (codes[0], codes[-1]) == (401, 429)
        assert (await world.ask_at(other, "train/pods", headers=ANN)).code == 200


async def test_many_users_at_once_get_through_one_manager_to_another() -> None:
    """Their tokens are being looked at: each may be a guess, but of another user."""
    async with managers(Bounds(calls_of_worker=60, requests_of_peer=60, requests_of_one=60)) as world:
        other = (await world.runs()).other
        users = await world.tokens_of(f"robot-{number}" for number in range(GUESSES_AT_ONCE_OF_PEER + 5))
        assert {(await world.ask_at(other, "none/pods", headers=one)).code for one in users} == {404}
        got = await asyncio.gather(*(world.ask_at(other, "train/pods", headers=one) for one in users))

        assert {one.code for one in got} == {200}


async def test_who_claims_that_a_request_was_passed_on_may_guess_no_more_than_others() -> None:
    """Anybody who reaches the port may send the header, and any user's name in it."""
    async with managers() as world:
        _, _, owner, other = await world.runs()

        async def guesses(peer: str, numbers: range) -> list[int]:
            found = []
            for number in numbers:
                headers = {"authorization": f"Bearer {number}", PASSED_ON: digest_of(f"user {number}")}
                found.append((await world.ask_at(owner, "train/pods", headers=headers, peer=peer)).code)
            return found

        codes = await guesses("10.0.0.66", range(GUESSES_AT_ONCE_OF_PEER + 5))
        assert (codes[0], codes[-1]) == (401, 429)

        proxy = host_of(other)  # on the node whose network that manager's pod has
        await asyncio.sleep(10)
        await guesses(proxy, range(1_000, 1_100 + GUESSES_AT_ONCE_OF_MEMBER))
        await asyncio.sleep(2)
        codes = await guesses(proxy, range(2_000, 2_090))
        assert codes.count(401) <= 3 * GUESSES_A_SECOND_OF_MEMBER
        assert (await world.ask_at(owner, "train/pods", headers=ANN)).code == 200


async def test_what_the_page_shows_of_anothers_job_says_whose_it_is() -> None:
    """All Jobs and workers are on each manager's page; of the owner's it knows more."""
    async with managers() as world:
        worker, _, owner, _ = await world.runs()
        for replica in world.replicas:
            known = world.known[replica]
            assert [worker.state for worker in known.workers()] == ["Connected", "Connected"]
            elsewhere = {view.name for view in known.workers() if view.is_elsewhere}
            assert elsewhere == {name for name in ("east", "west") if world.holder(name) is not replica}
            assert [job.state for job in known.jobs()] == ["Running"]
            kinds = {one.kind for one in known.timeline(TRAIN)}
            if replica is owner:
                assert (known.kept_elsewhere(TRAIN), "Mirrored" in kinds) == ("", True)
            else:
                assert known.kept_elsewhere(TRAIN) == (
                    f"Another manager ({owner.identity}) follows worker {worker} and alone knows its history "
                    "and how late its status is."
                )


async def test_the_page_notices_that_a_slot_has_moved_though_nothing_else_changes() -> None:
    """Nobody's Lease is watched for it by the page; what is compared changes with each change of who does what."""
    async with managers() as world:
        _, _, owner, replica = await world.runs()
        other = world.known[replica]
        before = other.ownership()
        await asyncio.sleep(120)
        assert other.ownership() == before
        await world.kill(owner)
        await asyncio.sleep(60)
        taken = other.ownership()
        assert taken != before
        world.start_replica()
        await asyncio.sleep(120)
        assert other.ownership() != taken, "it gives slots back to who has come"


async def test_of_a_worker_that_is_registered_no_more_its_slots_holder_still_answers() -> None:
    """A finished Job stays recorded there: nothing of it is unavailable, and its pods are out of reach, as with one."""
    async with managers() as world:
        await world.until_shared()
        await world.create("train")
        await asyncio.sleep(20)
        worker = (await world.ask_at(world.replicas[0], "train")).json["job"]["worker"]
        owner = world.holder(worker)
        await world.unregister(worker)
        await asyncio.sleep(400)
        for replica in world.replicas:
            job, pods = await world.ask_at(replica, "train"), await world.ask_at(replica, "train/pods")
            assert (job.json["job"]["state"], job.json.get("unavailable")) == ("Complete", None)
            assert (pods.code, "is unreachable from the manager" in pods.message) == (503, True)
            assert world.holder(worker) is owner
