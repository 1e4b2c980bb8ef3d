"""A real Prometheus that scrapes a manager and evaluates the shipped alert rules, for tests of both.

The program is the system's (``.ci/packages`` installs it). Rules keep their expressions; what they wait for (``for``)
is shortened, so that a test sees them fire. Not here: what a rule should say (``deploy/observability/tests``).
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import yaml

from e2e.controlplane.client import Json
from e2e.controlplane.process import Program
from e2e.controlplane.scratch import Scratch
from e2e.ports import reserved_port

RULES = Path(__file__).parents[1] / "deploy/observability/alerts.yaml"
INTERVAL = "1s"
READY_SECONDS = 120.0
_LOOK_AGAIN_SECONDS = 0.1


class Missing(RuntimeError):
    """Prometheus is not installed here."""


class Prometheus:
    """A running one. Use ``start``."""

    def __init__(self, program: Program, url: str, session: aiohttp.ClientSession) -> None:
        self._program = program
        self._url = url
        self._session = session

    @classmethod
    @asynccontextmanager
    async def start(cls, targets: Mapping[str, str]) -> AsyncIterator[Prometheus]:
        """One that scrapes these targets every second: addresses by the name of their scrape job.

        Raises:
            Missing: it is not installed.
            TimeoutError, ProgramEnded: it does not get ready.
        """
        binary = shutil.which("prometheus")
        if binary is None:
            raise Missing("prometheus is not installed (.ci/packages does it)")
        with closing(Scratch("prometheus")) as scratch, reserved_port() as port:
            config = _write_config(scratch.path, targets)
            listen = f"--web.listen-address=127.0.0.1:{port}"
            data = f"--storage.tsdb.path={scratch.path / 'data'}"
            program = Program([binary, f"--config.file={config}", data, listen], scratch)
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
                one = cls(program, f"http://127.0.0.1:{port}", session)
                try:
                    program.start()
                    await one._wait_until_ready()
                    yield one
                finally:
                    await program.kill()

    async def rules(self) -> list[Json]:
        """Every rule, with ``health`` and ``lastError`` of its latest evaluation."""
        groups = (await self._ask("rules"))["groups"]
        return [rule for group in groups for rule in group["rules"]]

    async def firing(self) -> dict[str, Json]:
        """What fires now, by the alert's name."""
        alerts = (await self._ask("alerts"))["alerts"]
        return {alert["labels"]["alertname"]: alert for alert in alerts if alert["state"] == "firing"}

    async def targets(self) -> list[Json]:
        """What it scrapes, with ``health`` and ``lastScrapeDuration``."""
        found: list[Json] = (await self._ask("targets"))["activeTargets"]
        return found

    async def query(self, expression: str) -> list[Json]:
        """What an expression gives now.

        Raises:
            AssertionError: Prometheus does not understand it.
        """
        found: list[Json] = (await self._ask("query", query=expression))["result"]
        return found

    async def _ask(self, what: str, **query: str) -> Json:
        async with self._session.get(f"{self._url}/api/v1/{what}", params=query) as answer:
            body: Json = await answer.json()
        assert body["status"] == "success", f"{query}: {body}"
        data: Json = body["data"]
        return data

    async def _wait_until_ready(self) -> None:
        async with asyncio.timeout(READY_SECONDS):
            while True:
                self._program.check()
                try:
                    async with self._session.get(f"{self._url}/-/ready") as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientConnectionError:
                    pass  # it does not listen yet
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)


def _write_config(folder: Path, targets: Mapping[str, str]) -> Path:
    rules, config = folder / "alerts.yaml", folder / "prometheus.yaml"
    rules.write_text(yaml.safe_dump(_hurried(yaml.safe_load(RULES.read_text()))))
    config.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": INTERVAL},
                "rule_files": [str(rules)],
                "scrape_configs": [
                    {"job_name": name, "static_configs": [{"targets": [address]}]} for name, address in targets.items()
                ],
            }
        )
    )
    return config


def _hurried(rules: Json) -> Json:
    """The same rules, which do not wait but for two scrapes."""
    for group in rules["groups"]:
        group["rules"] = [rule | ({"for": "2s"} if "for" in rule else {}) for rule in group["rules"]]
    return rules
