"""Somebody at a shell who types what the documents say, and nothing else. Used by ``test_documents``.

Not here: which commands there are (``commands``), and the clusters.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.commands import Said
from e2e.controlplane.assets import find_binaries
from e2e.controlplane.process import installed_mirror
from tests.documents.commands import TOP, all_commands

_TIMEOUT_SECONDS = 300.0
_AGAIN_SECONDS = 0.5
_PIECE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Reader:
    """A person with a desk (the working directory, and a home in it), a kubeconfig, kubectl and ``mirror``."""

    desk: Path
    kubeconfig: Path

    @classmethod
    def at(cls, desk: Path, kubeconfig: Path) -> Reader:
        """Somebody in a clone of this repository, with another clone, ``jobmirror``, beside their own files."""
        tools = desk / "bin"
        for folder in (tools, desk / "home/.config/fish/completions"):
            folder.mkdir(parents=True)
        for name in ("config", "deploy"):
            (desk / name).symlink_to(TOP / name)
        (desk / "jobmirror").symlink_to(TOP)
        (tools / "kubectl").symlink_to(find_binaries("kubectl")["kubectl"])
        return cls(desk, kubeconfig)

    async def follow(
        self,
        command: str,
        *,
        also: str = "",
        put: Mapping[str, str] | None = None,
        code: int = 0,
    ) -> str:
        """Type a command of the documents, and return what it printed, on stdout and then on stderr.

        Args:
            command: exactly as a document says it.
            also: what this place needs besides, such as a setting that lets workers be on loopback.
            put: what stands in the place of a document's placeholder.
            code: how it has to end.

        Raises:
            AssertionError: no document says so, or it ends otherwise.
            TimeoutError: it took more than five minutes.
        """
        typed = self._typed(command + also, command, put or {})
        said = await self.types(typed)
        assert said.code == code, f"$ {typed}\nexit code {said.code}, not {code}\n{said.output}\n{said.errors}"
        return said.output + said.errors

    async def follow_until(
        self, command: str, is_so: Callable[[str], bool], *, also: str = "", code: int = 0, seconds: float = 180.0
    ) -> str:
        """As ``follow``, again and again until what it prints is as expected.

        Raises:
            AssertionError: it was not in time.
        """
        deadline, text = asyncio.get_running_loop().time() + seconds, ""
        while asyncio.get_running_loop().time() < deadline:
            said = await self.types(command + also)
            text = said.output + said.errors
            if said.code == code and is_so(text):
                return await self.follow(command, also=also, code=code)
            await asyncio.sleep(_AGAIN_SECONDS)
        raise AssertionError(f"$ {command}{also}\nis not as expected after {seconds} s:\n{text}")

    async def follow_on(self, command: str, text: str) -> None:
        """Type a command of the documents that goes on for ever, wait until it has printed a text, and end it.

        Raises:
            AssertionError: no document says so, or it ended by itself.
            TimeoutError: it did not print it in five minutes.
        """
        line = self._typed(command, command, {})
        process, seen = await self._begin(line), b""
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                while text.encode() not in seen:
                    piece = await process.stdout.read(_PIECE_BYTES)
                    assert piece, f"$ {line}\nended by itself:\n{seen.decode()}"
                    seen += piece
        except TimeoutError:
            raise TimeoutError(f"$ {line}\nhas not printed {text!r}:\n{seen.decode()}") from None
        finally:
            await _end(process)

    async def types(self, line: str) -> Said:
        """Run a line in bash, with nothing of our environment."""
        process = await self._begin(line)
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                output, errors = await process.communicate()
        except TimeoutError:
            raise TimeoutError(f"$ {line}\ntook more than {_TIMEOUT_SECONDS} s") from None
        finally:
            await _end(process)
        assert process.returncode is not None
        return Said(process.returncode, output.decode(), errors.decode())

    def _typed(self, line: str, command: str, put: Mapping[str, str]) -> str:
        """What is typed for a command of the documents."""
        assert any(one.text == command for one in all_commands()), f"no document says: {command}"
        for placeholder, value in put.items():
            assert placeholder in line, (placeholder, line)
            line = line.replace(placeholder, value)
        return line

    async def _begin(self, line: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *("bash", "-o", "pipefail", "-c", line),
            cwd=self.desk,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
            env={
                "PATH": os.pathsep.join((str(self.desk / "bin"), str(installed_mirror().parent), os.defpath)),
                "HOME": str(self.desk / "home"),
                "KUBECONFIG": str(self.kubeconfig),
                "LANG": "C.UTF-8",
            },
        )


async def _end(process: asyncio.subprocess.Process) -> None:
    """End what was typed, with all that it started, if it still runs."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()
