"""Which two articles are one story."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.enricher.similarity.sketching import sketch
from services.enricher.similarity.words import words_of
from services.writer.articles.similar import Match, decide
from services.writer.articles.sketched import Sketched

STORY = (
    "The European Central Bank raised its key interest rate by 0.25 points to 3.5 per cent on Thursday,"
    " saying inflation"
    " was projected to stay too high for too long. President Christine Lagarde told reporters in Frankfurt that another"
    " increase in July was very likely unless the outlook changed in a material way, while markets priced in two more"
    " moves before the end of the year. Economists at Danske Bank had expected the pause that Italy and Portugal asked"
    " for, and said that the pain for households with mortgages would grow. Shares in Milan and Madrid fell."
)
TITLE = "Central bank raises rates again and hints at more"
QUAKE = (
    "An earthquake with a magnitude of {} struck {} kilometres from {} on {}, the geological survey reported. The quake"
    " had a depth of 40 kilometres and was felt in several towns. No tsunami warning was issued, and there were no"
    " immediate reports of damage or casualties."
)
ALERT = (
    "The law firm of Green Partners reminds investors of {} that a class action lawsuit has been filed on behalf of all"
    " persons who purchased its securities. Investors who suffered a loss may ask the court to be appointed as lead"
    " plaintiff. The complaint alleges that the company made false and misleading statements about its business."
)
GERMAN = (
    "Die Europäische Zentralbank hat ihren Leitzins um 0,25 Punkte auf 3,5 Prozent erhöht, weil die"
    " Inflation nach ihrer"
    " Schätzung zu lange zu hoch bleibt. Präsidentin Christine Lagarde sagte in Frankfurt, eine weitere"
    " Erhöhung im Juli"
    " sei sehr wahrscheinlich. Die Märkte erwarten zwei weitere Schritte bis zum Ende des Jahres."
)
CHINESE = (
    "中国人民银行周四宣布下调金融机构存款准备金率，以支持实体经济发展，保持流动性合理充裕。央行表示，此次调整不改变稳健的货币政策取向。"
    "分析人士认为，这一举措将有助于降低银行资金成本，并促进社会综合融资成本稳中有降。"
)


ABOUT = (
    " About Tarn Instruments: Tarn Instruments makes sensors for dams and tunnels. Founded in Graz in 1974, it serves"
    " customers in thirty countries and is held by the family of its founder. Its engineers help operators to see a"
    " crack before it grows. Further information and photographs may be had from the press office at any time."
)
NEWS = (
    "A tunnel under the Karawanks is to be watched by light: glass fibres in the vault tell how far the rock has moved"
    " since spring, and an alarm closes both lanes if that is more than the width of a hair within an hour of the day.",
    "Apprentices of the workshop have repaired the carillon of the cathedral without pay, after the last clockmaker who"
    " knew it had died; on the evening before Easter it played a march that nobody in town had heard since the war.",
)
FRAME = (
    "Good evening, and welcome to our look at the day that was. {} We wish you a quiet night, wherever you are reading"
    " this, and would be glad if you told a friend about our letter, which costs nothing and comes each weekday."
)


def article(feed: int, body: str, title: str = "", host: int = 0) -> Sketched:
    found = sketch(title or "abcdefg"[feed], body)
    assert found
    return Sketched(feed, host or feed, found)


def is_one(one: str, other: str) -> bool:
    match = decide(article(1, one), article(2, other))
    assert bool(match) is bool(decide(article(2, other), article(1, one)))
    return match is not None


@pytest.mark.parametrize("text", [STORY, GERMAN, CHINESE])
def test_a_text_is_the_same_wherever_it_is_cut(text: str) -> None:
    assert is_one(text, text[: len(text) // 2])
    assert is_one(text[: len(text) // 2], f"(Agency) {text} Read more")


@pytest.mark.parametrize(
    "other",
    [
        f"FRANKFURT, 15 June (Agency) - {STORY}",
        f"By Ana Marić. {STORY[:300]} Sign up for our newsletter, and get the news of the day each morning.",
        STORY.upper(),
        STORY.replace("told reporters", "said").replace("projected", "expected").replace("households", "families"),
        ". ".join(sorted(STORY.split(". "))),
        STORY.replace("reporters", "reproters").replace("inflation", "inflaton").replace("Economists", "Econmists"),
    ],
)
def test_edits_of_an_agencys_client_leave_the_story(other: str) -> None:
    assert is_one(STORY, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("4 October 2026, 10:32. ", "5 October 2026, 9:47. "),
        ("Publié le 4 octobre 2026 à 10h32. ", "Publié le 4 octobre 2026 à 10h47. "),
        ("4 de octubre de 2026, 10:32. ", "5 de octubre de 2026, 10:47. "),
        ("Von Karin Meisel, 4. Oktober 2026, 10.32 Uhr. ", "Von Karin Meisel, 4. Oktober 2026, 11.05 Uhr. "),
        ("2026年10月4日 10時32分 ", "2026年10月5日 11時05分 "),
    ],
)
def test_when_a_site_published_it_is_no_number_of_the_story(one: str, other: str) -> None:
    assert is_one(one + STORY, other + STORY)


@pytest.mark.parametrize(
    "other",
    [
        STORY.replace("3.5", "3.75"),
        STORY.replace("Thursday", "Friday"),
        STORY.replace("July", "September"),
        STORY.replace("0.25", "0.5").replace("3.5", "4"),
        GERMAN,
    ],
)
def test_other_numbers_dates_and_languages_are_other_stories(other: str) -> None:
    assert not is_one(STORY, other)


def test_texts_of_a_template_are_other_stories() -> None:
    assert not is_one(QUAKE.format(5.4, 12, "Izmir", "Monday"), QUAKE.format(4.9, 30, "Lima", "Friday"))
    assert not is_one(QUAKE.format(5.4, 12, "Izmir", "Monday"), QUAKE.format(5.4, 12, "Izmir", "Friday"))
    assert not is_one(ALERT.format("Oslo Steel"), ALERT.format("Turin Foods"))
    assert is_one(ALERT.format("Oslo Steel"), ALERT.format("Oslo Steel"))


HOROSCOPE = (
    "{}: A conversation today brings clarity to something that has been on your mind for a while. Take your time with"
    " decisions about money and listen to a friend who means well. In the evening the stars favour rest and good food."
)
TEMPLATES = [
    ("{}: your day", HOROSCOPE, "Aries", "Taurus"),
    ("{} released", "{} is out. " + HOROSCOPE[4:], "Foo", "Bar"),
    (
        "{} wanted",
        "we are looking for a {} to join our friendly team. you will work with experienced colleagues in a modern"
        " office, enjoy flexible hours and a generous pension, and be able to work from home on some days.",
        "nurse",
        "gardener",
    ),
    (
        "{}の天気",
        "{}は今日、高気圧に覆われておおむね晴れるが、夕方は山沿いを中心ににわか雨の降る所がある見込み。朝晩は冷え込むため、体調の管理に注意してほしい。",
        "東京",
        "大阪",
    ),
    (
        "طقس {}",
        "يكون الطقس في {} اليوم غائما جزئيا مع رياح خفيفة غربية، وتتهيأ الفرصة لسقوط أمطار متفرقة مساء على المرتفعات."
        " وتنخفض درجات الحرارة ليلا، وينصح المواطنون بارتداء ملابس دافئة.",
        "القاهرة",
        "دمشق",
    ),
]


@pytest.mark.parametrize(("title", "text", "one", "other"), TEMPLATES)
def test_what_title_and_text_name_tells_two_texts_of_a_template(title: str, text: str, one: str, other: str) -> None:
    first = article(1, text.format(one), title.format(one))
    second = article(2, text.format(other), title.format(other))
    assert decide(first, second) is decide(second, first) is None
    assert decide(first, article(2, text.format(one), title.format(other))), "only one of them says so"
    assert decide(first, article(2, text.format(one)[:150], "Something else")), "a copy that was cut"


def test_kanji_and_arabic_number_words_count() -> None:
    fire = (
        "{}一处民房昨晚发生火灾，消防救援人员接到报警后迅速赶到现场处置。"
        "经过{}小时的扑救，明火被完全扑灭，人员均已送往医院治疗。"
    )
    assert not is_one(fire.format("朝阳区", "三"), fire.format("朝阳区", "五"))
    assert words_of("ثلاث خمس").texts == ["3", "5"]


def test_numbers_of_the_title_count() -> None:
    text = QUAKE.format(5.4, 12, "Izmir", "Monday")
    assert decide(article(1, text, "Magnitude 5.4 quake near Izmir"), article(2, text, "Izmir shaken on Monday"))
    assert not decide(article(1, text, "Storm kills 5 in Izmir"), article(2, text, "Storm kills 8 in Izmir"))


def test_one_number_of_several_between_the_same_words_counts() -> None:
    table = (
        "The firm sold {} cars in spring, the rival sold {} cars in spring and the state sold {} cars in spring, all of"
        " them to buyers abroad who had waited for most of the year because the harbour was closed by ice and storms."
    )
    assert is_one(table.format(40, 50, 60), table.format(40, 50, 60))
    assert not is_one(table.format(40, 50, 60), table.format(40, 55, 60))


def test_half_a_story_may_lack_numbers_and_names_of_the_other_half() -> None:
    ends = (
        " Ana Marić of the union in Turin said that 40 of 300 members would strike on 5 May, and Tom Okafor agreed.",
        " Meanwhile Danske Bank sold 12 of its offices in Oslo, and Juan Robles left after 9 years with Nordea.",
    )
    shared = STORY[300:]
    assert is_one(shared + ends[0], shared + ends[1])


@pytest.mark.parametrize(
    ("title", "text", "one", "other"),
    [
        (
            "{}, 새 대표이사 선임",
            "{}은 오늘 이사회를 열고 새 대표이사를 선임했다고 밝혔다."
            " 신임 대표는 영업과 전략 분야에서 오랜 경험을 쌓아 왔으며 앞으로 해외 사업 확대를 이끌 것으로 기대된다."
            " 회사 측은 이번 인사를 통해 조직에 활력을 불어넣겠다고 설명했다.",
            "한빛건설",
            "새롬전기",
        ),
        (
            "สภาพอากาศ {} วันนี้",
            "กรมอุตุนิยมวิทยารายงานสภาพอากาศ{}วันนี้ มีเมฆบางส่วนกับมีฝนฟ้าคะนองเป็นแห่งๆ ในช่วงบ่ายถึงค่ำ"
            " ขอให้ประชาชนดูแลสุขภาพและระมัดระวังในการเดินทาง",
            "เชียงใหม่",
            "ภูเก็ต",
        ),
    ],
)
def test_particles_and_signs_hide_no_template(title: str, text: str, one: str, other: str) -> None:
    first, second = article(1, text.format(one), title.format(one)), article(2, text.format(other), title.format(other))
    assert decide(first, second) is None
    assert decide(first, article(2, text.format(one), title.format(other)))


def test_a_short_text_tells_nothing() -> None:
    assert not is_one("The ferry will not sail today.", "The ferry will not sail today.")


def test_a_feed_has_no_duplicates_of_its_own() -> None:
    assert decide(article(1, STORY), article(1, STORY)) is None


def test_sketches_of_two_versions_are_not_compared() -> None:
    one, other = article(1, STORY), article(2, STORY)
    older = replace(other, sketch=other.sketch.model_copy(update={"version": 1}))
    assert decide(one, older) is None


def test_two_addresses_of_one_host_need_more() -> None:
    changed = STORY[:300] + GERMAN
    assert decide(article(1, STORY[:420]), article(2, changed)) is not None
    assert decide(article(1, STORY[:420], host=9), article(2, changed, host=9)) is None
    assert decide(article(1, STORY, host=9), article(2, STORY, host=9)) is not None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("", "", Match("title", 1.0)),
        ("Read more.", STORY, Match("title", 1.0)),
        (STORY[:400], GERMAN, None),
        ("", "The bank has done it again. " * 2, Match("title", 1.0)),
        ("Oil is up, gold is down.", "The bank has done it again.", None),
    ],
)
def test_a_long_title_counts_unless_the_texts_are_others(one: str, other: str, expected: Match | None) -> None:
    assert decide(article(1, one, TITLE), article(2, other, TITLE)) == expected


@pytest.mark.parametrize("title", ["Weather for Monday", "Morning briefing", "The most important news of Monday 3 May"])
def test_the_title_of_a_series_counts_nothing(title: str) -> None:
    assert decide(article(1, "", title), article(2, "", title)) is None


def test_boilerplate_behind_two_stories_makes_them_not_one() -> None:
    one, other = (article(feed, text + ABOUT, "Proud moments") for feed, text in enumerate(NEWS))
    assert decide(one, replace(other, sketch=other.sketch.model_copy(update={"title": b""}))) is None
    assert is_one(NEWS[0] + ABOUT, NEWS[0] + " Read more")
    assert is_one(f"A lead that an editor wrote anew for the readers of his paper. {STORY[200:]}", STORY)


@pytest.mark.parametrize("host", [0, 9])
def test_the_frame_of_a_series_makes_two_days_not_one(host: int) -> None:
    one, other = (article(feed, FRAME.format(text), "Evening letter", host) for feed, text in enumerate(NEWS))
    assert decide(one, other) is None
    assert decide(one, replace(one, feed_id=7, host=7)) == Match("text", 1.0)


def test_articles_that_are_one_story_share_keys() -> None:
    one, other = article(1, STORY[:250]), article(2, f"(Agency) {STORY}")
    assert set(one.held) & set(other.wanted)
    assert set(other.held) & set(one.wanted)
    assert all(-(1 << 31) <= key < 1 << 31 for key in one.wanted)
