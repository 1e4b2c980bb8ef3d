"""Why a queue (Kueue) has not admitted something, as its Workload says: one line for people, without counts. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mirror.batch import views
from mirror.model.text import clean

MOST_CHARACTERS = 300
_COUNTS = re.compile(r",? [0-9][0-9.]*[A-Za-z]* more needed| \([^()]*\)|,? [0-9]+ (?=out of)")
"""They change while others come and go, and would be written again each time (D21)."""
_TYPES = ("Evicted", "QuotaReserved", "Admitted")
"""The first of which the state is not as it should be; ``Evicted`` only while it is true."""


def why_not_admitted(spec: Mapping[str, object], status: Mapping[str, object]) -> str:
    """Empty where a Workload does not say."""
    if spec.get("active") is False:
        return "its Workload is not active"
    conditions = {views.text(one.get("type")): one for one in map(views.mapping, views.items(status.get("conditions")))}
    for name in _TYPES:
        found = conditions.get(name, {})
        if found.get("status") == ("True" if name == "Evicted" else "False"):
            message = _COUNTS.sub("", clean(views.text(found.get("message"))[: 2 * MOST_CHARACTERS]))
            if message:
                return message[:MOST_CHARACTERS]
    return ""


def job_uid_of(labels: Mapping[str, str]) -> str:
    """The uid of the Job that a Workload is of."""
    return labels.get("kueue.x-k8s.io/job-uid", "")
