"""Reading the settings file: everything that is wrong with it at once, each with its path and what to do.

Called by the command line. Not here: what a single value must be (``rules``), what exists (``schema``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from mirror.model.durations import format_duration
from mirror.model.losses import OnLoss
from mirror.model.text import clean
from mirror.settings.rule import Rule, Wrong, shown, suggestion
from mirror.settings.schema import (
    ClusterProfiles,
    Https,
    JobController,
    LeaderElection,
    ScoreWeight,
    Settings,
    Workers,
)
from mirror.settings.section import Section
from mirror.settings.strict_yaml import read_yaml

P = TypeVar("P", bound=Section)

MOST_PARTS = 50
"""In a list of mappings."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to correct: the path of the key, empty for the file as a whole, and what is wrong."""

    path: str
    what: str

    def __str__(self) -> str:
        return clean(f"{self.path}: {self.what}" if self.path else self.what)


class SettingsError(Exception):
    """The settings cannot be used; its text has one line per problem, each naming the file."""

    def __init__(self, file: str, problems: tuple[Problem, ...]) -> None:
        super().__init__(file, problems)
        self.file = file
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(f"{self.file}: {problem}" for problem in self.problems)


def load(path: str | Path) -> Settings:
    """The settings in a file; what it does not mention has its default.

    Raises:
        SettingsError: the file cannot be read, or something in it is refused; all problems are named.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(str(path), (Problem("", f"cannot be read: {error.strerror or error}"),)) from None
    return parse(raw, str(path))


def parse(raw: bytes, file: str) -> Settings:
    """The settings in YAML text; ``file`` is what messages call it.

    Raises:
        SettingsError: something in it is refused; all problems are named.
    """
    problems: list[Problem] = []

    def report(path: str, what: str) -> None:
        problems.append(Problem(path, what))

    content = read_yaml(raw, report)
    if problems:
        raise SettingsError(file, tuple(problems))
    settings = _read_part(Settings, {} if content is None else content, "", problems)
    if settings is not None:
        problems += _check_together(settings)
    if settings is None or problems:
        raise SettingsError(file, tuple(problems))
    return settings


def read_section(part: type[P], value: object, problems: list[Problem], *, path: str = "") -> P | None:
    """A part as it stands in a file; None if anything in it was refused and is now among the problems."""
    return _read_part(part, value, path, problems)


def _read_part(part: type[P], value: object, path: str, problems: list[Problem]) -> P | None:
    """One mapping with all below it; None if anything in it was refused and is now among the problems."""
    if not isinstance(value, Mapping):
        problems.append(Problem(path, f"expected a mapping of settings, got {shown(value)}"))
        return None
    fields = {field.encode_name: field for field in msgspec.structs.fields(part)}
    before = len(problems)
    values: dict[str, object] = {}
    for key, raw in value.items():
        below = f"{path}.{key}" if path else key
        if key in fields:
            values[fields[key].name] = _read_value(fields[key].type, raw, below, problems)
        else:
            problems.append(Problem(below, f"unknown key{suggestion(key, tuple(fields))}"))
    return part.of_mapping(values) if len(problems) == before else None


def _read_value(kind: Any, raw: object, path: str, problems: list[Problem]) -> object:
    if isinstance(kind, type) and issubclass(kind, Section):
        return _read_part(kind, raw, path, problems)
    if get_origin(kind) is tuple:
        return _read_parts(get_args(kind)[0], raw, path, problems)
    rule: Rule = kind.__metadata__[0]
    try:
        return rule.apply(raw)
    except Wrong as wrong:
        problems += [Problem(f"{path}{where}", what) for where, what in wrong.problems]
        return None


def _read_parts(part: type[P], value: object, path: str, problems: list[Problem]) -> tuple[P | None, ...]:
    """A list of mappings; each names what it has to."""
    if not isinstance(value, list):
        problems.append(Problem(path, f"expected a list of mappings, got {shown(value)}"))
        return ()
    if len(value) > MOST_PARTS:
        problems.append(Problem(path, f"expected at most {MOST_PARTS} mappings, got {len(value)}"))
        return ()
    found = []
    for index, raw in enumerate(value):
        at = f"{path}[{index}]"
        if isinstance(raw, str) and (shorthand := getattr(part, "SHORTHAND", "")):
            raw = {shorthand: raw}
        found.append(_read_part(part, raw, at, problems))
        if isinstance(raw, Mapping):
            missing = [key for key in getattr(part, "REQUIRED", ()) if key not in raw]
            problems += [Problem(f"{at}.{key}", "is missing") for key in missing]
    return tuple(found)


def _check_together(settings: Settings) -> list[Problem]:
    """Conditions over several keys."""
    return [
        *_check_lease(settings.leader_election),
        *_check_https(settings.https),
        *_check_job_controller(settings.job_controller),
        *_check_cluster_profiles(settings.workers.cluster_profiles),
        *_check_scores(settings.placement.scores),
        *_check_losses(settings.workers),
        *_check_retries(settings),
        *_check_sharding(settings),
    ]


def _check_lease(lease: LeaderElection) -> list[Problem]:
    """A leader gives up before its Lease runs out, and tries more than once until then: else two could act at once."""
    found = []
    if lease.lease_duration_seconds != int(lease.lease_duration_seconds):
        found.append(Problem("leaderElection.leaseDuration", "must be whole seconds; a Lease holds nothing finer"))
    if lease.lease_duration_seconds <= lease.renew_deadline_seconds:
        renew = format_duration(lease.renew_deadline_seconds)
        found.append(Problem("leaderElection.leaseDuration", f"must be longer than renewDeadline ({renew})"))
    if lease.renew_deadline_seconds <= lease.retry_period_seconds:
        retry = format_duration(lease.retry_period_seconds)
        found.append(Problem("leaderElection.renewDeadline", f"must be longer than retryPeriod ({retry})"))
    return found


_READ_ON_WORKERS = ("quota", "clusterQueue", "allocatable")
"""Scores for which workers are read."""


def _check_sharding(settings: Settings) -> list[Problem]:
    """What needs more than one manager to know of a Job or a worker is not there with several slots."""
    if settings.sharding.slots == 1:
        return []
    placement = settings.placement
    problems = [] if settings.leader_election.enabled else [("leaderElection.enabled", "must be true")]
    refused = {
        "placement.scores": any(one.weight for one in placement.scores if one.name in _READ_ON_WORKERS),
    }
    problems += [(name, "cannot be used yet") for name, is_wanted in refused.items() if is_wanted]
    return [Problem(name, f"{what} where sharding.slots is {settings.sharding.slots}") for name, what in problems]


def _check_https(https: Https) -> list[Problem]:
    """A certificate and its key come together."""
    if bool(https.cert_file) == bool(https.key_file):
        return []
    given, missing = ("certFile", "keyFile") if https.cert_file else ("keyFile", "certFile")
    return [Problem(f"https.{missing}", f"must be set together with {given}")]


def _check_cluster_profiles(profiles: ClusterProfiles) -> list[Problem]:
    """Where to look is said, so that rights can be given there and nowhere else."""
    if profiles.namespaces or not profiles.enabled:
        return []
    return [Problem("workers.clusterProfiles.namespaces", "is missing; list the namespaces of ClusterProfiles")]


def _check_scores(scores: tuple[ScoreWeight, ...]) -> list[Problem]:
    """Each stands there once: two weights of one score would be a mistake."""
    names = [one.name for one in scores]
    twice = [at for at, name in enumerate(names) if name in names[:at]]
    return [Problem(f"placement.scores[{at}]", f"{names[at]} stands there twice; remove one") for at in twice]


def _check_losses(workers: Workers) -> list[Problem]:
    """What holds for all is allowed to each."""
    if workers.on_loss in (OnLoss.WAIT, *workers.on_loss_allowed):
        return []
    return [Problem("workers.onLoss", f"{workers.on_loss} is not in onLossAllowed")]


def _check_retries(settings: Settings) -> list[Problem]:
    """What proves that nothing of a Job ran is in its pods."""
    if settings.placement.retry_after_seconds is None or settings.workers.watch_pods == "labelled":
        return []
    why = "needs workers.watchPods: labelled, since only pods prove that none ran; set that, or leave this out"
    return [Problem("placement.retryAfter", why)]


def _check_job_controller(jobs: JobController) -> list[Problem]:
    """A first delay is not beyond the longest."""
    pairs = (
        ("apiBackoff", jobs.api_backoff_seconds, "apiBackoffMax", jobs.api_backoff_max_seconds),
        (
            "podFailureBackoff",
            jobs.pod_failure_backoff_seconds,
            "maxPodFailureBackoff",
            jobs.max_pod_failure_backoff_seconds,
        ),
    )
    return [
        Problem(f"jobController.{first}", f"must not be longer than {longest} ({format_duration(most)})")
        for first, seconds, longest, most in pairs
        if seconds > most
    ]
