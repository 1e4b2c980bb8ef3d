"""The HTTP face of a running manager, over a real loopback socket."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from mirror.model.endings import CannotStart
from mirror.serving.health import Check, serve
from mirror.telemetry.metrics import Metrics

ANY_PORT = ("127.0.0.1", 0)


class Manager:
    """Health and readiness as a test wants them, and what a client gets."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.health: dict[str, Check] = {}
        self.readiness: dict[str, Check] = {}
        self.port = 0

    async def get(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, str, str]:
        """Status, content type and text of an answer."""
        url = f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.ClientSession() as session, session.request(method, url, headers=headers) as answer:
            return answer.status, answer.headers["Content-Type"], await answer.text()


@pytest.fixture
async def manager() -> AsyncIterator[Manager]:
    made = Manager()
    async with serve(ANY_PORT, metrics=made.metrics, health=made.health, readiness=made.readiness) as made.port:
        yield made


async def test_metrics_are_served(manager: Manager) -> None:
    """A scraper gets the text format with its content type."""
    manager.metrics.on_retry()

    status, content_type, text = await manager.get("/metrics")

    assert (status, content_type.partition(";")[0]) == (200, "text/plain")
    assert "\njobmirror_queue_retries_total 1.0\n" in text


async def test_openmetrics_is_served_to_who_asks(manager: Manager) -> None:
    """The Accept header decides the format."""
    _, content_type, text = await manager.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")

    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


async def test_a_scrape_does_not_keep_the_loop_from_its_work(manager: Manager) -> None:
    """Series of a thousand workers take a second to be written down: meanwhile the manager does what it is for."""
    goes_on = threading.Event()

    class Slow(Collector):
        def collect(self) -> Iterator[Metric]:
            assert goes_on.wait(60), "the loop had no turn"
            yield GaugeMetricFamily("slow", "Seen once the loop had its turn", value=1)

    manager.metrics.registry.register(Slow())
    asyncio.get_running_loop().call_later(0.05, goes_on.set)

    _, _, text = await manager.get("/metrics")
    assert "\nslow 1.0\n" in text


async def test_scrapes_come_one_after_the_other(manager: Manager) -> None:
    """Where one goes away, too: what is written down is not refreshed under its hands, and no thread is added."""
    begun, goes_on, at_once = threading.Semaphore(0), threading.Event(), list[int]()
    among: set[int] = set()
    ages = iter(range(1, 10))

    class Slow(Collector):
        def collect(self) -> Iterator[Metric]:
            among.add(threading.get_ident())
            at_once.append(len(among))
            begun.release()
            assert goes_on.wait(60)
            among.discard(threading.get_ident())
            yield GaugeMetricFamily("slow", "Seen at last", value=1)

    manager.metrics.registry.register(Slow())
    manager.metrics.before_scrape(lambda: manager.metrics.queue_oldest.set(next(ages)))
    gone = asyncio.create_task(manager.get("/metrics"))
    assert await asyncio.to_thread(begun.acquire, timeout=60)
    gone.cancel()
    await asyncio.wait({gone})
    others = [asyncio.create_task(manager.get("/metrics")) for _ in range(3)]
    asyncio.get_running_loop().call_later(0.2, goes_on.set)

    texts = [text for _, _, text in await asyncio.gather(*others)]

    assert set(at_once) == {1}
    shown = [line for text in texts for line in text.splitlines() if line.startswith("jobmirror_queue_oldest_seconds ")]
    assert sorted(shown) == [f"jobmirror_queue_oldest_seconds {age}.0" for age in (2, 3, 4)]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_without_checks_all_is_well(manager: Manager, path: str) -> None:
    """Nothing to be checked cannot fail."""
    assert await manager.get(path) == (200, "text/plain; charset=utf-8", "ok\n")


async def test_each_check_has_a_line(manager: Manager) -> None:
    """Readiness says which part is missing; one failed check makes the whole not ready."""
    manager.readiness |= {"leader": lambda: (True, ""), "watches": lambda: (False, "east: not listed yet")}

    status, _, text = await manager.get("/readyz")

    assert (status, text) == (503, "leader: ok\nwatches: failed east: not listed yet\n")


async def test_checks_are_asked_each_time(manager: Manager) -> None:
    """An answer tells how it is now."""
    state = {"synced": False}
    manager.readiness["watches"] = lambda: (state["synced"], "")

    before = await manager.get("/readyz")
    state["synced"] = True

    assert (before[0], (await manager.get("/readyz"))[0]) == (503, 200)


async def test_health_and_readiness_are_apart(manager: Manager) -> None:
    """A manager that stands by is alive, though not ready."""
    manager.readiness["leader"] = lambda: (False, "another manager leads")

    assert (await manager.get("/healthz"))[0] == 200
    assert (await manager.get("/readyz"))[0] == 503


async def test_worker_text_is_cleaned(manager: Manager) -> None:
    """What a check quotes from a worker is one printable line (D18)."""
    manager.health["east"] = lambda: (False, "x\nleader: ok\x1b[2J")

    assert (await manager.get("/healthz"))[2] == "east: failed x\\nleader: ok\\x1b[2J\n"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/metrics/", 404), ("POST", "/metrics", 405), ("DELETE", "/healthz", 405)],
)
async def test_nothing_else_is_served(manager: Manager, method: str, path: str, status: int) -> None:
    """Three paths, for reading only."""
    assert (await manager.get(path, method=method))[0] == status


async def test_after_closing_nobody_listens() -> None:
    """The port is free again when the block ends."""
    async with serve(ANY_PORT, metrics=Metrics(), health={}, readiness={}) as port:
        pass
    async with serve(("127.0.0.1", port), metrics=Metrics(), health={}, readiness={}) as again:
        assert again == port


async def test_a_port_in_use_is_told() -> None:
    """The operator learns which setting to change."""
    async with serve(ANY_PORT, metrics=Metrics(), health={}, readiness={}) as port:
        with pytest.raises(CannotStart, match=rf"cannot listen on 127\.0\.0\.1:{port} \(setting listen\): .*in use"):
            async with serve(("127.0.0.1", port), metrics=Metrics(), health={}, readiness={}):
                raise AssertionError("listening twice")


async def test_a_host_that_does_not_exist_is_told() -> None:
    """A name that does not resolve is a wrong setting too."""
    with pytest.raises(CannotStart, match=r"cannot listen on no-such-host\.invalid:80 \(setting listen\): "):
        async with serve(("no-such-host.invalid", 80), metrics=Metrics(), health={}, readiness={}):
            raise AssertionError("listening nowhere")
