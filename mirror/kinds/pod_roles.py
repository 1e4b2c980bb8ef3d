"""What part of an object a pod is: its role, as ``worker``, or ``workers/1`` where a role has several Jobs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

_ROLE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?(/[0-9]{1,9})?")


class PodRoles(msgspec.Struct, frozen=True):
    """How pods of a kind say their role: by labels, which their controller writes."""

    label: str = ""
    """Empty: they have none."""
    number: str = ""
    """The label that tells Jobs of one role from each other; empty: there is one of each."""
    first: tuple[str, ...] = ()
    """Roles whose logs are of most interest, in this order."""
    without: str = ""
    """The role of pods that do not have the label."""

    def __bool__(self) -> bool:
        return bool(self.label)

    def of(self, labels: Mapping[str, object]) -> str:
        """A pod's role by its labels; empty where it has none."""
        found = labels.get(self.label)
        if not self.label:
            return ""
        if not isinstance(found, str):
            return self.without
        number = labels.get(self.number)
        return f"{found}/{number}" if self.number and isinstance(number, str) and number else found

    def rank(self, role: str) -> int:
        """The order of roles: those that come first have the lowest."""
        name = role.partition("/")[0]
        return self.first.index(name) if name in self.first else len(self.first)

    def selector(self, wanted: str) -> str:
        """The label selector of the pods of a role that somebody names."""
        name, _, number = wanted.partition("/")
        if self.without and wanted == self.without:
            return f"!{self.label}"
        return f"{self.label}={name},{self.number}={number}" if number and self.number else f"{self.label}={name}"

    def problem(self, wanted: str) -> str:
        """What is wrong with a role that somebody names; empty if nothing is."""
        if not _ROLE.fullmatch(wanted):
            return "not a role such as workers, or workers/0"
        if not self.label:
            return "the pods of this kind have none"
        return "" if self.number or "/" not in wanted else "roles have no number here"

    @staticmethod
    def is_meant(wanted: str, role: str) -> bool:
        """Whether a role is the one that somebody names: ``workers`` are all of ``workers/0``, ``workers/1``."""
        return wanted in ("", role, role.partition("/")[0])


NO_ROLES = PodRoles()
