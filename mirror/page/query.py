"""Which Jobs a page shows: the query of an address as a value, and back. Pure. The selection is in ``table``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from mirror.batch.label_selectors import MalformedSelector, Requirement, matches
from mirror.batch.label_selectors import parse as parse_selector
from mirror.model.views import JobView
from mirror.page.health import STATES, is_late, is_stuck, reason_of

NOWHERE = "-"
"""As a worker: no worker yet. No worker can have this name."""
LONGEST = 253
"""Of any value; longer ones are cut."""
MOST_PAGES = 10_000
SORTS = ("name", "state", "worker", "pods", "created", "took", "why")
"""By which column, in the order of the columns; with ``-`` before it the other way round."""
SPECIAL = {"late": is_late, "stuck": is_stuck}
"""What ``only`` can be: Jobs whose status is late, and those that make no progress on their worker."""

_FIELDS = ("state", "only", "reason", "kind", "namespace", "worker", "label", "text")


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Empty texts choose everything."""

    state: str = ""
    only: str = ""
    """One of ``SPECIAL``."""
    reason: str = ""
    """Exactly this one, whatever its case."""
    kind: str = ""
    namespace: str = ""
    """Exactly this one."""
    worker: str = ""
    """Exactly this one, or ``NOWHERE``."""
    label: str = ""
    """A label selector."""
    text: str = ""
    """Somewhere in ``namespace/name``, in the reason or in the uid; lower case."""
    sort: str = ""
    """One of ``SORTS``, perhaps after ``-``; empty: newest first."""
    page: int = 1

    @property
    def is_narrow(self) -> bool:
        """Whether it looks at more of a Job than its state."""
        return bool(self.only or self.reason or self.kind or self.namespace or self.worker or self.label or self.text)

    @property
    def is_everything(self) -> bool:
        """Whether no Job is left out."""
        return not self.state and not self.is_narrow

    @property
    def problem(self) -> str:
        """What is wrong with the label selector; empty if nothing is."""
        return _requirements(self.label)[1]

    def with_state(self, state: str) -> Query:
        """The same in another state, from its first page."""
        return replace(self, state=state, page=1)

    def with_page(self, page: int) -> Query:
        """The same query on another page of the list."""
        return replace(self, page=page)

    def sorted_by(self, column: str) -> Query:
        """The same by this column; by the one it is sorted by already, the other way round."""
        return replace(self, sort=f"-{column}" if self.sort == column else column, page=1)

    def address(self) -> str:
        """As it stands behind ``?``; empty for everything."""
        given = [(name, getattr(self, name)) for name in (*_FIELDS, "sort")]
        pairs = [(key, value) for key, value in given if value]
        return urlencode(pairs + ([("page", str(self.page))] if self.page > 1 else []))

    def test(self) -> Callable[[JobView], bool]:
        """Whether a Job is meant, whatever its state; made once for many Jobs."""
        checks: list[Callable[[JobView], bool]] = []
        if self.only:
            checks.append(SPECIAL[self.only])
        if self.namespace:
            checks.append(lambda job: job.namespace == self.namespace)
        if self.worker:
            worker = "" if self.worker == NOWHERE else self.worker
            checks.append(lambda job: job.worker == worker)
        if self.kind:
            checks.append(lambda job: job.kind == self.kind)
        if self.reason:
            reason = self.reason.lower()
            checks.append(lambda job: reason_of(job).lower() == reason)
        if self.label:
            requirements, problem = _requirements(self.label)
            checks.append(lambda job: not problem and matches(requirements, job.labels))
        if self.text:
            text = self.text
            checks.append(
                lambda job: text in f"{job.namespace}/{job.name}" or text in job.why.lower() or text == job.uid
            )
        if len(checks) == 1:
            return checks[0]
        return lambda job: all(check(job) for check in checks)

    def matches(self, job: JobView) -> bool:
        """Whether a Job is meant, whatever its state."""
        return self.test()(job)


def parse(given: Mapping[str, str]) -> Query:
    """The query of an address. Invalid parts are left out, so that a mistyped address still shows a page."""
    values = {key: given.get(key, "").strip()[:LONGEST] for key in (*_FIELDS, "sort")}
    page = given.get("page", "")
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 9 else 1
    return Query(
        state=values["state"] if values["state"] in STATES else "",
        only=values["only"] if values["only"] in SPECIAL else "",
        reason=values["reason"],
        kind=values["kind"],
        namespace=values["namespace"],
        worker=values["worker"],
        label=values["label"],
        text=values["text"].lower(),
        sort=values["sort"] if values["sort"].removeprefix("-") in SORTS else "",
        page=min(max(number, 1), MOST_PAGES),
    )


@lru_cache(maxsize=64)
def _requirements(label: str) -> tuple[tuple[Requirement, ...], str]:
    """A label selector's conditions, or what is wrong with it."""
    try:
        return parse_selector(label), ""
    except MalformedSelector as error:
        return (), str(error)
