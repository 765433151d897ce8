"""A parse that takes too long stops itself, whatever it was busy with. Time is a count of questions here."""

from __future__ import annotations

import pytest

from services.fetcher.parse import OutOfTime, Unparseable, parse_feed
from services.fetcher.parse.model import seldom
from tests.unit.parse.feeds import NOW, URL, atom, rss


class Patience:
    """A deadline that passes when it is asked the given number of times."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def parse(body: str, patience: Patience) -> str:
    return parse_feed(body.encode(), url=URL, content_type=None, now=NOW, deadline=patience).tier


MANY = "<item><title>t</title><link>l</link><category>c</category></item>"
BODIES = {
    "strict": rss("".join(MANY.replace(">t<", f">{n}<") for n in range(50))),
    "lenient": rss("".join(MANY.replace(">t<", f">{n}<") for n in range(50))) + "<end>",
    "salvage": rss("") + rss("".join(MANY.replace(">t<", f">{n}<") for n in range(50))),
    "json": '{"version":"https://jsonfeed.org/version/1.1","items":[' + ",".join(['{"title":"t"}'] * 50) + "]}",
}


@pytest.mark.parametrize("tier", BODIES)
def test_every_tier_asks_all_along_and_stops_at_once(tier: str) -> None:
    patience = Patience(1_000_000)
    assert parse(BODIES[tier], patience) == tier
    questions = 1_000_000 - patience.left
    assert questions >= 50
    for enough in range(0, questions, max(1, questions // 20)):
        with pytest.raises(OutOfTime, match="longer than a feed is worth"):
            parse(BODIES[tier], Patience(enough))
    assert parse(BODIES[tier], Patience(questions)) == tier


@pytest.mark.parametrize(
    "inner",
    [
        "<item><title>t</title>" + "<category>c</category>" * 500 + "<item>",
        "<item><title>t</title>" + "text &amp; &unknown; " * 500,
        "<item><title>t</title><description>" + "<div><p>x" * 500,
        "<item>" + "</a>" * 500,
        "<item><author>" + "<name>n</name>" * 500,
    ],
)
def test_the_lenient_tier_asks_at_every_piece_that_it_reads(inner: str) -> None:
    patience = Patience(1_000_000)
    with pytest.raises(OutOfTime):
        parse(rss(inner), Patience(300))
    parse(rss(inner), patience)
    assert 1_000_000 - patience.left >= 500


def test_what_is_out_of_time_is_unparseable_and_salvage_is_not_asked() -> None:
    with pytest.raises(Unparseable):
        parse(atom("<entry><title>t</title><br></entry>"), Patience(3))


def test_a_deadline_that_never_passes_changes_nothing() -> None:
    body = BODIES["lenient"].encode()
    with_one = parse_feed(body, url=URL, content_type=None, now=NOW, deadline=lambda: False)
    assert with_one == parse_feed(body, url=URL, content_type=None, now=NOW)


def test_a_slow_clock_is_asked_at_the_first_and_then_at_each_sixteenth_question_until_it_is_late() -> None:
    patience = Patience(3)
    ask = seldom(patience)
    answers = [ask() for _ in range(60)]
    assert patience.left == 3 - 4 - 11  # at questions 1, 17, 33, 49, and from then on
    assert answers == [False] * 48 + [True] * 12
