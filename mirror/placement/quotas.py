"""What ResourceQuotas of a worker say about a namespace there: how much of each is free. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

Amounts = Mapping[str, object]

COUNTED = ("pods", "cpu", "memory", "count/pods")
"""What pods take, beside requests and limits of any resource."""
_COUNTED_PREFIXES = ("requests.", "limits.")
_AMOUNT = re.compile(r"([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(m|[kMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?")
_FACTORS: Mapping[str, float] = {
    "m": 1e-3,
    **{suffix: 10.0 ** (3 * power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": 2.0 ** (10 * power) for power, suffix in enumerate("KMGTPE", start=1)},
}


def amount_of(value: object) -> float | None:
    """A quantity such as ``500m``, ``4``, ``1e3`` or ``2Gi``; None for what is none, or is negative."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    found = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    if (suffix := found[2] or "") in _FACTORS:
        return float(found[1]) * _FACTORS[suffix]
    return float(found[1] + suffix)


def free_share(quotas: Iterable[tuple[Amounts, Amounts]], *, objects: Collection[str]) -> float | None:
    """The scarcest of what quotas limit, as the share that is free, from 0 to 1.

    Args:
        quotas: ``hard`` and ``used`` of each that holds for all pods of a namespace.
        objects: how quotas name the mirrored objects that they count: ``count/jobs.batch``.

    Returns:
        None where nothing that Jobs take is limited.
    """
    shares = [share for hard, used in quotas for share in _shares(hard, used, objects)]
    return min(shares, default=None)


def _shares(hard: Amounts, used: Amounts, objects: Collection[str]) -> Iterable[float]:
    for name, value in hard.items():
        if name not in COUNTED and name not in objects and not name.startswith(_COUNTED_PREFIXES):
            continue
        most, taken = amount_of(value), amount_of(used.get(name, "0"))
        if most is None or taken is None:
            continue
        yield max(0.0, 1.0 - taken / most) if most else 0.0
