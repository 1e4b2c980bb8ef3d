"""What somebody may do on a cluster, as access reviews ask for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    """Empty: all."""

    @property
    def attributes(self) -> dict[str, str]:
        """``resourceAttributes`` of a review."""
        return {key: value for key, value in asdict(self).items() if value}

    def __str__(self) -> str:
        what = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        named = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace and self.namespace != self.name else ""
        return f"{self.verb} {what}{named}{where}"
