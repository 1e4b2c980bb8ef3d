"""A real Chromium without a window, driven over the DevTools protocol: open, look, click, type, take a picture.

For ``test_page``. The program comes from the machine (``.ci/packages`` installs it); it is started like a control
plane's programs, so it never outlives the tests. It sees only what is on this machine.
"""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

import aiohttp

from e2e.controlplane.process import Program
from e2e.controlplane.scratch import Scratch

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_DEBIANS = (Path("/usr/lib/chromium/chromium"), Path("/usr/lib/chromium/chromium-headless-shell"))
"""The programs behind Debian's wrapper scripts; of these one does not hand its process over to the program."""
START_SECONDS = 180.0
CLOSE_SECONDS = 5.0
CALL_SECONDS = 120.0
_LOOK_AGAIN_SECONDS = 0.05
_WHOLE_LOG = 1_000_000
_GONE = ("Inspected target navigated or closed", "Execution context was destroyed", "Cannot find context")
"""What a browser says of a script whose document was left before it answered."""
_LISTENS = re.compile(r"DevTools listening on (ws://\S+)")


class ScriptFailed(AssertionError):
    """A script of ours failed in the page; the text says how."""


class DocumentGone(ScriptFailed):
    """It was asked of a document that was just being left, by a link or a form: the next one has to be asked."""


def find_chromium() -> Path | None:
    """The program, if there is one."""
    installed = (path for path in _DEBIANS if path.exists())
    on_path = (Path(found) for name in PROGRAMS if (found := shutil.which(name)))
    return next(chain(installed, on_path), None)


class Tab:
    """One page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._session = ""
        self._told = asyncio.Condition()
        self.complaints: list[str] = []
        """What the console was told that is an error: scripts that failed, what the page's policy blocked."""
        self.loads = 0
        """How many documents it has had."""

    async def attach(self) -> None:
        """Open it."""
        target = await self.call("Target.createTarget", url="about:blank")
        found = await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self.call(f"{domain}.enable")

    async def read(self) -> None:
        """Take what the browser says, until it ends."""
        async for message in self._socket:
            said = message.json()
            answer = self._answers.pop(said.get("id", 0), None)
            if answer is not None and not answer.done():
                answer.set_result(said)
            elif "method" in said:
                self._note(said["method"], said["params"])
                async with self._told:
                    self._told.notify_all()

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol.

        Raises:
            ScriptFailed: it was refused.
        """
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        session = {"sessionId": self._session} if self._session else {}
        await self._socket.send_json({"id": number, "method": method, "params": parameters, **session})
        async with asyncio.timeout(CALL_SECONDS):
            said = await answer
        if "error" in said:
            is_gone = any(text in said["error"]["message"] for text in _GONE)
            raise (DocumentGone if is_gone else ScriptFailed)(f"{method}: {said['error']}")
        result: dict[str, Any] = said["result"]
        return result

    async def close(self) -> None:
        """End the whole browser, with all its processes; it need not answer."""
        await self._socket.send_json({"id": 0, "method": "Browser.close"})

    async def open(self, url: str) -> None:
        """Go there, and wait until it is there."""
        loads = self.loads
        await self.call("Page.navigate", url=url)
        # The document that goes answers no more, and what it was asked would end in an error.
        await self._until_told(lambda: self.loads > loads)
        await self.wait_for(f"location.href.startsWith({url!r}) && document.readyState === 'complete'")

    async def evaluate(self, script: str) -> Any:
        """What an expression gives, in the page.

        Raises:
            ScriptFailed: it failed.
        """
        said = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            raise ScriptFailed(f"{script}: {said['exceptionDetails']}")
        return said["result"].get("value")

    async def text(self, selector: str) -> str:
        """What a person reads there."""
        return str(await self.evaluate(f"document.querySelector({selector!r})?.innerText ?? ''"))

    async def wait_for(self, script: str, *, seconds: float = 90.0) -> None:
        """Until an expression is true, in this document or, after a link or a form, in the next one.

        Raises:
            TimeoutError: it does not become so; the text holds the page's.
        """
        try:
            async with asyncio.timeout(seconds):
                while not await self._is_true(script):  # noqa: ASYNC110 - a page tells nobody
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        except TimeoutError:
            shown = await self.evaluate("document.body.innerText")
            raise TimeoutError(f"never true: {script}\n{shown}\n{self.complaints}") from None

    async def _is_true(self, script: str) -> bool:
        try:
            return bool(await self.evaluate(f"Boolean({script})"))
        except DocumentGone:
            return False

    async def until_complaint(self, text: str) -> None:
        """Until the console was told such an error.

        Raises:
            TimeoutError: it was not.
        """
        await self._until_told(lambda: any(text in complaint for complaint in self.complaints))

    async def _until_told(self, condition: Callable[[], bool]) -> None:
        """Until what the browser tells by itself has made this true."""
        async with asyncio.timeout(CALL_SECONDS), self._told:
            await self._told.wait_for(condition)

    async def look(self, *, width: int, height: int = 900, scheme: str = "light") -> None:
        """From now on as a screen of this size, in ``light`` or ``dark``."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def picture(self) -> bytes:
        """What is on the screen, as PNG."""
        said = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(said["data"])

    async def press(self, key: str) -> None:
        """A key; one character is typed."""
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": key} if len(key) == 1 else {}))
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def type(self, text: str) -> None:
        """Text, where the keyboard is."""
        await self.call("Input.insertText", text=text)

    def _note(self, method: str, said: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(said["exceptionDetails"]))
        elif method == "Log.entryAdded" and said["entry"]["level"] == "error":
            self.complaints.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")
        elif method == "Page.frameNavigated" and "parentId" not in said["frame"]:
            self.loads += 1


@asynccontextmanager
async def browser_tab(program: Path) -> AsyncIterator[Tab]:
    """A browser of its own with one empty page, while the block runs."""
    scratch = Scratch("browser")
    running = Program([program, *_arguments(scratch.path / "profile"), "about:blank"], scratch)
    try:
        running.start()
        url = await _address(running)
        # The tests' own loop may be told to use a proxy; a browser on this machine needs none.
        async with aiohttp.ClientSession(trust_env=False) as session, session.ws_connect(url, max_msg_size=0) as socket:
            tab = Tab(socket)
            async with asyncio.TaskGroup() as scope:
                reading = scope.create_task(tab.read(), name="read from the browser")
                try:
                    await tab.attach()
                    yield tab
                finally:
                    with suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
                        await tab.close()
                    reading.cancel()
        with suppress(TimeoutError):
            await running.wait_until_ended(seconds=CLOSE_SECONDS)
    finally:
        await running.kill()
        scratch.close()


def _arguments(profile: Path) -> list[str]:
    return [
        "--headless",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "--no-sandbox",  # it opens nothing but our own page, and root or a container could not start it otherwise
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-proxy-server",
        "--hide-scrollbars",
    ]


async def _address(running: Program) -> str:
    async with asyncio.timeout(START_SECONDS):
        while True:
            running.check()
            found = _LISTENS.search(running.last_words(_WHOLE_LOG))
            if found is not None:
                return found[1]
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
