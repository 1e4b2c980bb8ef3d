"""What the two pages show, and what of it is sent again."""

import json
from datetime import timedelta
from html import unescape
from typing import Any

import msgspec
import pytest

from mirror.kinds.registry import BUILT_IN
from mirror.model.keys import SourceKey
from mirror.model.views import Moment, WorkerView
from mirror.page import detail, fleet, listing
from mirror.page.health import judged
from mirror.page.query import Query
from mirror.page.skeleton import About, job_page, list_page
from mirror.page.table import PAGE_JOBS, Table
from mirror.page.view import Sent, View
from tests.doubles.pretended import NOW, Pretended, before, job, many, picture

ABOUT = About(kinds=BUILT_IN, managed_by="jobmirror.io/controller", origin="o", version="1", assets="a")
UP = WorkerView(name="any", state="Connected")
HOSTILE = '"><img src=x onerror=alert(1)>\u202e'


def list_view(known: Pretended, query: Query | None = None, *, is_leading: bool = True) -> View:
    table = Table(judged(job, known.by_name.get(job.worker) or UP) for job in known.by_key.values())
    seen = listing.ListState(
        is_leading=is_leading,
        workers=known.workers(),
        lags=table.lags(),
        selection=table.select(query or Query(), NOW),
        triage=table.triage(),
        namespaces=("default",),
        kinds=table.kinds(),
    )
    return listing.view(seen, query or Query(), NOW)


def job_view(known: Pretended, namespace: str, name: str) -> View:
    key = SourceKey("Job", namespace, name)
    seen = detail.JobState(
        is_leading=True,
        key=key,
        job=known.job(key),
        timeline=known.timeline(key),
        obstacles=known.placement_obstacles(key),
        elsewhere=known.kept_elsewhere(key),
    )
    return detail.view(seen, NOW)


def news(sent: Sent, view: View) -> Any:
    message = sent.news(view)
    return None if message is None else json.loads(message)


def test_every_part_has_its_id_once() -> None:
    """The script finds each of them; two of the same id would be mixed up."""
    for view in (list_view(picture()), job_view(picture(), "research", "train-resnet-large")):
        parts = [*view.parts, *(part for parts in view.lists.values() for part in parts)]
        assert len({part.id for part in parts}) == len(parts)
        assert [part.id for part in parts if f'id="{part.id}"' not in part.draw()] == []


def test_worker_lines_say_what_matters() -> None:
    """State, since when, why, how full, what is wrong with it."""
    known = Pretended()
    known.put_worker(
        WorkerView(name="east", state="Lost", since=before(hours=2), lost_since=before(minutes=4), because="refused",
                   cordoned=True, draining=True, capacity=8, weight=2.5, jobs=3, version="v1.36.3",
                   token_expires=before(hours=-1))
    )  # fmt: skip
    card = unescape(list_view(known).drawn()["fleet"])
    for text in (
        "east",
        "Lost",
        "4m",
        "refused",
        "3 of at most 8 Jobs",
        "cordoned",
        "draining",
        "weight 2.5",
        "v1.36.3",
    ):
        assert text in card
    assert 'class="chip warn">expires <time' in card


def test_a_worker_that_is_declared_dead_says_so() -> None:
    """D14: it is lost, and nobody waits for it."""
    known = Pretended()
    for name in ("east", "west"):
        known.put_worker(WorkerView(name=name, state="Lost", lost_since=before(hours=2), dead=name == "east"))
    east, west = unescape(list_view(known).drawn()["fleet"]).split("</tr>")[:2]
    assert '<span class="chip bad" title="Its Jobs start again on other workers">declared dead</span>' in east
    assert "declared dead" not in west


def test_worker_lines_have_labels_what_is_late_and_a_filter() -> None:
    """The oldest status that is not stored yet; the name leads to the worker's Jobs."""
    known = Pretended()
    for name in ("east", "west"):
        known.put_worker(WorkerView(name=name, state="Connected", since=before(hours=2), labels={"region": name[:2]}))
    for number, lag in enumerate((0.1, 12.0, 40.0)):
        known.put(job(f"train-{number}", worker="east", lag_seconds=lag))
    known.put(job("other", worker="west", lag_seconds=0.2))
    lines = unescape(list_view(known).drawn()["fleet"]).split("</tr>")
    for line, name, late in zip(lines, ("east", "west"), (">40s<", "in time"), strict=False):
        assert f'href="?worker={name}"' in line
        assert f"region={name[:2]}" in line
        assert late in line


@pytest.mark.parametrize(
    ("expires", "level"),
    [("", ""), (before(days=-3), ""), (before(hours=-2), "warn"), (before(seconds=1), "bad")],
    ids=["unknown", "far away", "soon", "over"],
)
def test_a_token_that_ends_is_told(expires: str, level: str) -> None:
    """Before it ends, and after."""
    assert fleet.token_level(WorkerView(name="east", state="Connected", token_expires=expires), NOW) == level


def test_of_very_many_workers_those_in_trouble_are_shown() -> None:
    """The page stays bounded, and says what it leaves out."""
    workers = [WorkerView(name=f"w{n:04d}", state="Lost" if n == 700 else "Connected") for n in range(800)]
    shown, hidden = fleet.shown_workers(workers)
    assert (shown[0].name, len(shown), hidden) == ("w0700", fleet.MOST_SHOWN, 700)


def test_a_standby_says_so() -> None:
    """Who reads it knows that another manager acts."""
    assert "standby" in list_view(picture(), is_leading=False).drawn()["role"]


@pytest.mark.parametrize(("leads", "said"), [(True, "assigns"), (False, "active")])
def test_of_several_that_work_at_once_each_says_what_it_does(leads: bool, said: str) -> None:
    """None of them only watches."""
    assert f">{said}<" in listing.role(leads, is_shared=True).draw()


def test_of_a_worker_that_another_manager_follows_it_is_not_said_that_statuses_are_in_time() -> None:
    """That, only the other one knows."""
    for is_elsewhere, said in ((False, "in time"), (True, "Another manager follows this worker")):
        one = WorkerView(name="east", state="Connected", is_elsewhere=is_elsewhere)
        (line,) = fleet.lines((one,), {}, "", NOW)
        assert (said in line.draw(), "in time" in line.draw()) == (True, not is_elsewhere)


def test_a_job_that_another_manager_knows_more_of_says_so() -> None:
    """And with one manager nothing of it is seen."""
    known, key = picture(), SourceKey("Job", "research", "train-resnet-large")
    assert 'id="elsewhere" class="nothing" hidden' in job_view(known, key.namespace, key.name).drawn()["elsewhere"]
    known.elsewhere[key] = "Another manager knows more."
    assert ">Another manager knows more.<" in job_view(known, key.namespace, key.name).drawn()["elsewhere"]


def test_states_are_links_that_keep_the_filter() -> None:
    """Counts are of what the rest of the filter leaves."""
    known = picture()
    states = list_view(known, Query(namespace="billing", state="Failed")).drawn()["states"]
    assert 'href="?state=Complete&amp;namespace=billing"' in states
    assert '<span class="count">3</span>' in states
    assert states.count('aria-current="true"') == 1


def test_nothing_found_offers_everything() -> None:
    """An empty list is explained."""
    assert "Show all" in list_view(picture(), Query(text="nowhere")).drawn()["nothing"]
    assert "No mirrored Jobs" in list_view(Pretended()).drawn()["nothing"]


def test_a_waiting_job_shows_why_workers_are_not_eligible() -> None:
    """The question a user comes with."""
    drawn = job_view(picture(), "research", "embed-corpus-7").drawn()
    assert "does not match gpu=a100" in drawn["obstacles"]
    assert "hidden" in drawn["pending"]
    assert "hidden" not in drawn["why-not"]


def test_a_job_that_is_gone_is_said_to_be() -> None:
    """An open page of a deleted Job."""
    assert "may have been deleted" in job_view(Pretended(), "a", "b").drawn()["head"]


def test_a_long_story_is_cut_at_its_beginning() -> None:
    """The latest is what people come for."""
    known = Pretended()
    known.put(job("a"), *(Moment(at=before(minutes=999 - n), kind="Status", text=f"n{n}.") for n in range(999)))
    timeline = job_view(known, "default", "a").drawn()["timeline"]
    assert timeline.count("<li") == detail.MOST_MOMENTS
    assert "n998." in timeline
    assert "n1." not in timeline


def test_equal_entries_of_a_story_are_told_apart() -> None:
    """Twice the same in the same second."""
    known = Pretended()
    entry = Moment(at=before(minutes=1), kind="Error", text="again")
    known.put(job("a"), entry, entry)
    assert len({part.id for part in job_view(known, "default", "a").lists["timeline"]}) == 2


@pytest.mark.parametrize("field", ["state", "worker", "because", "name", "namespace", "uid", "created"])
def test_hostile_jobs_stay_text_on_both_pages(field: str) -> None:
    """Whatever a field holds, no element comes of it, and no control character stays."""
    known = Pretended()
    made = known.put(msgspec.structs.replace(job("a"), **{field: HOSTILE}), Moment(at=HOSTILE, kind=HOSTILE, text="t"))
    key = SourceKey("Job", made.namespace, made.name)
    known.obstacles[key] = {HOSTILE: HOSTILE}
    known.put_worker(WorkerView(name=HOSTILE, state=HOSTILE, because=HOSTILE, version=HOSTILE, uid=HOSTILE))
    pages = (
        list_page(list_view(known, Query(text="a")).drawn(), Query(text=HOSTILE), ABOUT, NOW),
        list_page(list_view(known, Query(worker=HOSTILE)).drawn(), Query(worker=HOSTILE), ABOUT, NOW),
        job_page(job_view(known, key.namespace, key.name).drawn(), key, ABOUT, NOW),
    )
    for page in pages:
        assert "<img" not in page
        assert "\u202e" not in page


# -- what is sent ------------------------------------------------------------------------------------------------------


def test_the_first_message_is_everything_and_then_nothing() -> None:
    """What did not change is not sent, though time has passed."""
    sent, known = Sent(), picture()
    first = news(sent, list_view(known))
    assert first["whole"] is True
    assert len(first["lists"]["rows"]) == len(known.by_key)
    assert set(first["lists"]["rows"]) <= set(first["parts"])
    assert sent.news(list_view(known)) is None


def test_only_what_changed_is_sent() -> None:
    """One Job's row, and the counts."""
    sent, known = Sent(), picture()
    news(sent, list_view(known))
    known.put(msgspec.structs.replace(known.by_key[SourceKey("Job", "web", "thumbnails-28841")], state="Complete"))
    said = news(sent, list_view(known))
    assert set(said["parts"]) == {"j:web/thumbnails-28841", "states"}
    assert "lists" not in said
    assert "whole" not in said


def test_a_job_that_goes_is_missing_in_the_order() -> None:
    """The browser removes what is in no list."""
    sent, known = Sent(), picture()
    news(sent, list_view(known))
    known.drop("web", "thumbnails-28841")
    said = news(sent, list_view(known))
    assert "j:web/thumbnails-28841" not in said["lists"]["rows"]
    assert not [part for part in said["parts"] if part.startswith("j:")]


def test_a_message_is_one_line_whatever_it_quotes() -> None:
    """A line end in a text would end the event."""
    known = Pretended()
    known.put(job("a", because="x\n\ndata: {}\r\n"))
    message = Sent().news(list_view(known))
    assert message is not None
    assert b"\n" not in message
    assert b"\r" not in message


@pytest.mark.slow
def test_twenty_thousand_jobs_make_a_bounded_message() -> None:
    """A browser gets one page of them."""
    view = list_view(many(20_000))
    message = Sent().news(view)
    assert message is not None
    assert len(view.lists["rows"]) == PAGE_JOBS
    assert len(message) < 150_000


def test_a_card_changes_when_its_token_comes_to_its_end() -> None:
    """Time alone changes it: the level is part of what is compared."""
    sent, known = Sent(), Pretended()
    known.put_worker(WorkerView(name="east", state="Connected", token_expires=before(hours=-7)))

    def at(hours: float) -> View:
        selection = Table().select(Query())
        seen = listing.ListState(is_leading=True, workers=known.workers(), selection=selection, namespaces=())
        return listing.view(seen, Query(), NOW + timedelta(hours=hours))

    news(sent, at(0))
    assert set(news(sent, at(2))["parts"]) == {"w:east"}


def test_the_strip_is_numbers_that_are_filters() -> None:
    """Each leads to what it counts."""
    known = picture()
    strip = list_view(known).drawn()["triage"]
    for address in ("?state=Failed", "?state=Unknown", "?only=stuck", "?state=Waiting", "?only=late",
                    "?state=Waiting&amp;reason=WorkersFull", "?only=stuck&amp;reason=ImagePullBackOff"):  # fmt: skip
        assert f'href="{address}"' in strip


def test_columns_say_how_they_sort() -> None:
    """And a filter that no field shows can be dropped."""
    drawn = list_view(picture(), Query(sort="-pods", reason="x", only="late")).drawn()
    assert (
        '<th scope="col" role="columnheader" class="pods" aria-sort="descending"><a href="?only=late'
        in drawn["columns"]
    )
    assert drawn["columns"].count("aria-sort") == 1
    assert 'aria-label="Remove the filter reason: x"' in drawn["chosen"]
    assert 'role="alert"' in list_view(picture(), Query(label="=")).drawn()["chosen"]


def test_progress_is_a_bar_that_is_never_overfull() -> None:
    """Whatever a worker says."""
    known = Pretended()
    known.put(job("a", succeeded=5, active=4, failed=99, completions=8))
    row = list_view(known).drawn()["rows"]
    assert 'aria-label="5 of 8 completions"' in row
    assert [part.split('"')[0] for part in row.split('width="')[1:]] == ["55.6", "44.4"]


def test_those_who_look_at_the_same_share_what_is_sent() -> None:
    """It is made once."""
    view, later = list_view(picture()), list_view(Pretended())
    first, second = Sent(), Sent()
    assert first.news(view) is second.news(view)
    assert first.news(later) is second.news(later)
    assert first.news(later) is None
