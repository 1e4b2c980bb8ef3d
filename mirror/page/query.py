"""Which Jobs somebody wants to see: what an address says, as a value, and back. Pure. The choice is in ``table``."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from mirror.model.views import STATES, JobView

NOWHERE = "-"
"""As a worker: no worker yet. No worker can have this name."""
LONGEST = 253
"""Of any value; longer ones are cut."""
MOST_PAGES = 10_000


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Empty texts choose everything."""

    state: str = ""
    namespace: str = ""
    """Exactly this one."""
    worker: str = ""
    """Exactly this one, or ``NOWHERE``."""
    text: str = ""
    """Somewhere in ``namespace/name``, in the reason or in the uid; lower case."""
    page: int = 1

    @property
    def is_narrow(self) -> bool:
        """Whether it looks at more of a Job than its state."""
        return bool(self.namespace or self.worker or self.text)

    def with_state(self, state: str) -> Query:
        """The same in another state, from its first page."""
        return msgspec.structs.replace(self, state=state, page=1)

    def with_page(self, page: int) -> Query:
        """The same query on another page of the list."""
        return msgspec.structs.replace(self, page=page)

    def address(self) -> str:
        """As it stands behind ``?``; empty for everything."""
        given = {"state": self.state, "namespace": self.namespace, "worker": self.worker, "text": self.text}
        pairs = [(key, value) for key, value in given.items() if value]
        return urlencode(pairs + ([("page", str(self.page))] if self.page > 1 else []))

    def matches(self, job: JobView) -> bool:
        """Whether a Job is meant, whatever its state."""
        if self.namespace and job.namespace != self.namespace:
            return False
        if self.worker and job.worker != ("" if self.worker == NOWHERE else self.worker):
            return False
        text = self.text
        return not text or text in f"{job.namespace}/{job.name}" or text in job.because.lower() or text == job.uid


def parse(given: Mapping[str, str]) -> Query:
    """What an address asks for. What makes no sense is left out: an address that somebody mistyped shows something."""
    values = {key: given.get(key, "").strip()[:LONGEST] for key in ("state", "namespace", "worker", "text")}
    page = given.get("page", "")
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 9 else 1
    return Query(
        state=values["state"] if values["state"] in STATES else "",
        namespace=values["namespace"],
        worker=values["worker"],
        text=values["text"].lower(),
        page=min(max(number, 1), MOST_PAGES),
    )
