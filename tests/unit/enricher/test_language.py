"""Which language a text is in: by its words first, then by what its feed claims and what its other entries are in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.enricher.language import load_languages
from services.enricher.language.detecting import LEAST_CONFIDENCE
from services.enricher.language.labels import read_label
from services.enricher.parts import Label
from services.enricher.settings import EnrichSettings
from services.enricher.text import Text
from shared.errors import ConfigurationError

Detect = Callable[..., str]

SENTENCES = {
    "ar": "أعلنت الحكومة اليوم عن خطة جديدة لتطوير شبكة القطارات في البلاد خلال السنوات المقبلة",
    "bg": "Правителството обяви днес нов план за развитие на железопътната мрежа в страната",
    "ca": "El govern ha anunciat avui un pla nou per millorar la xarxa de trens del país",
    "cs": "Vláda dnes oznámila nový plán na rozvoj železniční sítě, který má být hotov příští rok",
    "da": "Regeringen har i dag fremlagt en ny plan for jernbanen, som skal være færdig næste år",
    "de": "Die Regierung hat heute einen neuen Plan für den Ausbau der Bahn vorgestellt",
    "el": "Η κυβέρνηση ανακοίνωσε σήμερα ένα νέο σχέδιο για τους σιδηροδρόμους",
    "en": "The government announced a new plan today to extend the railway before next year",
    "es": "El gobierno anunció hoy un nuevo plan para ampliar la red de trenes del país",
    "et": "Valitsus tutvustas täna uut kava, mille järgi raudtee saab järgmisel aastal valmis",
    "fa": "دولت امروز از برنامه‌ای تازه برای گسترش راه‌آهن کشور در سال آینده خبر داد",
    "fi": "Hallitus esitteli tänään uuden suunnitelman rautateiden laajentamisesta ensi vuonna",
    "fr": "Le gouvernement a annoncé aujourd'hui un nouveau plan pour étendre le réseau ferré",
    "he": "הממשלה הודיעה היום על תוכנית חדשה להרחבת רשת הרכבות בשנה הבאה",
    "hi": "सरकार ने आज रेल नेटवर्क के विस्तार के लिए एक नई योजना की घोषणा की है",
    "hu": "A kormány ma új tervet jelentett be a vasúthálózat bővítésére a következő évre",
    "it": "Il governo ha annunciato oggi un nuovo piano per ampliare la rete ferroviaria",
    "ja": "政府は本日、来年までに鉄道網を拡大する新しい計画を発表した",
    "ko": "정부는 오늘 내년까지 철도망을 확장하는 새로운 계획을 발표했다",
    "lt": "Vyriausybė šiandien paskelbė naują planą, kaip kitais metais plėsti geležinkelį",
    "lv": "Valdība šodien paziņoja par jaunu plānu dzelzceļa tīkla paplašināšanai nākamgad",
    "nl": "De regering heeft vandaag een nieuw plan voor de uitbreiding van het spoor voorgesteld",
    "no": "Regjeringen la i dag fram en ny plan for jernbanen, som skal være ferdig neste år",
    "pl": "Rząd ogłosił dziś nowy plan rozbudowy sieci kolejowej, która będzie gotowa za rok",
    "pt": "O governo anunciou hoje um novo plano para ampliar a rede ferroviária do país",
    "ro": "Guvernul a anunțat astăzi un nou plan pentru extinderea rețelei feroviare",
    "ru": "Правительство объявило сегодня о новом плане расширения железнодорожной сети",
    "sk": "Vláda dnes oznámila nový plán rozvoja železničnej siete, ktorý má byť hotový budúci rok",
    "sl": "Vlada je danes predstavila nov načrt za širitev železniškega omrežja v naslednjem letu",
    "sv": "Regeringen presenterade i dag en ny plan för järnvägen, som ska vara klar nästa år",
    "th": "รัฐบาลประกาศแผนใหม่ในวันนี้เพื่อขยายเครือข่ายรถไฟภายในปีหน้า",
    "tr": "Hükümet bugün demiryolu ağını gelecek yıla kadar genişletecek yeni bir plan açıkladı",
    "uk": "Уряд оголосив сьогодні про новий план розширення залізничної мережі країни",
    "vi": "Chính phủ hôm nay công bố kế hoạch mới để mở rộng mạng lưới đường sắt",
    "zh": "政府今天宣布了一项在明年之前扩建铁路网的新计划",
}

NO_LANGUAGE = {
    "nothing": "",
    "space": " \n\t ",
    "emoji": "🎉🔥🚂👍",
    "numbers": "3-1, 12:30, 1 234,50",
    "a mark": "OK",
    "an address": "https://news.example/the-government-announced-a-new-plan",
    "a mail address": "the.government@news.example",
    "hashtags": "#government #announces #railways",
    "one letter": "a" * 4000,
    "two letters": "x y " * 1000,
    "code": "for (let i = 0; i < rows.length; i++) { total += rows[i].price * rows[i].count; }",
    "JSON": '{"name": "value", "list": [1, 2, 3], "more": {"name": "other"}}',
    "scripts by turns": "The новый plan of the железных дорог was announced today",
    "a script without a language": "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᏂᏴᏫᏯ",
    "lone surrogates": "\ud800\udbff" * 20,
}


@pytest.fixture(scope="module")
def detect() -> Detect:
    detector = load_languages(EnrichSettings().languages)

    def language_of(title: str, body: str = "", label: str | None = None) -> str:
        return detector([Text(title, body, (), label)])[0].name

    return language_of


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_told_without_a_label_and_against_a_wrong_one(detect: Detect, language: str) -> None:
    wrong = "en-US" if language != "en" else "fr"
    assert [detect(SENTENCES[language], label=label) for label in (None, language, wrong)] == [language] * 3


@pytest.mark.parametrize("text", NO_LANGUAGE.values(), ids=NO_LANGUAGE)
def test_what_is_in_no_language_gets_none_whatever_the_feed_claims(detect: Detect, text: str) -> None:
    assert [detect(text), detect(text, label="en"), detect("", text, "de")] == ["und"] * 3


def test_a_short_title_is_told_by_the_feeds_label(detect: Detect) -> None:
    assert detect("Ny plan for tog") == "und"
    assert [detect("Ny plan for tog", label=label) for label in ("nb-NO", "da_DK")] == ["no", "da"]


def test_a_short_title_is_told_by_the_feeds_other_entries() -> None:
    detector = load_languages("da,no,en,de")
    short = Text("Ny plan for tog", "", (), "en-us")
    for language in ("da", "no"):
        others = [Text(SENTENCES[language], "", (), "en-us") for _ in range(5)]
        assert [label.name for label in detector([short, *others])] == [language] * 6


def test_one_entry_in_another_language_keeps_it() -> None:
    detector = load_languages("da,no,en,de")
    others = [Text(SENTENCES["en"], SENTENCES["en"], (), "en") for _ in range(40)]
    assert detector([*others, Text(SENTENCES["de"], "", (), "en")])[-1].name == "de"


def test_a_language_that_is_not_asked_for_gets_no_label() -> None:
    detector = load_languages("en,de,ja,ru")
    for language in ("fr", "pl", "sv", "th", "ko", "el", "hi", "uk"):
        assert detector([Text(SENTENCES[language], "", ())])[0].name == "und", language


def test_confidence_is_a_share_and_grows_with_the_text() -> None:
    detector = load_languages("da,no,sv,en")
    labels: list[Label] = detector([Text(SENTENCES["da"][:size], "", ()) for size in (30, 80)])
    short, long = (label.confidence for label in labels)
    assert short == 0 or short >= LEAST_CONFIDENCE
    assert short < long <= 1


def test_a_text_in_two_languages_is_in_neither(detect: Detect) -> None:
    french, english = SENTENCES["fr"] + ". ", SENTENCES["en"] + ". "
    assert detect("", french * 2 + english * 2, "fr") == "und"
    assert detect("", french * 5 + english, "fr") == "fr", "a quotation"


def test_left_overs_addresses_and_capitals_do_not_hide_a_language(detect: Detect) -> None:
    wrapped = f'&lt;p class="the-news-of-the-day"&gt;{SENTENCES["de"]}<br/>&nbsp;<a href="https://the.news.example">'
    assert detect(wrapped) == "de"
    assert (
        detect(f"{SENTENCES['it']} https://news.example/the-new-plan-of-the-government @the_news #breakingnews") == "it"
    )
    assert detect(SENTENCES["de"].upper()) == "de"


def test_latin_names_in_a_text_of_another_script_are_passed_over(detect: Detect) -> None:
    assert detect("iPhone 16 Pro Max 오늘 국내 출시") == "ko"
    assert detect("Компания OpenAI представила модель ChatGPT Enterprise для бизнеса") == "ru"


def test_foreign_words_in_latin_text_do_not_name_its_language(detect: Detect) -> None:
    assert detect("The government announced сегодня a new plan of the railways Москва") == "en"


def test_japanese_without_kana_is_not_chinese(detect: Detect) -> None:
    assert (detect("日経平均株価、続落で始まる"), detect("経済対策、与党が決定")) == ("ja", "ja")


@pytest.mark.parametrize(
    ("label", "language"),
    [
        ("en-US", "en"),
        ("pt_BR", "pt"),
        (" DE ", "de"),
        ("English", "en"),
        ("français", "fr"),
        ("deu", "de"),
        ("ger", "de"),
        ("zh-Hans-CN", "zh"),
        ("nb", "no"),
        ("nn-NO", "no"),
        ("iw", "he"),
        ("in", "id"),
        ("", None),
        (None, None),
        ("klingon", None),
        ("?" * 10_000, None),
    ],
)
def test_a_feeds_label_is_read(label: str | None, language: str | None) -> None:
    assert read_label(label) == language


def test_an_unknown_language_of_the_settings_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ConfigurationError, match=r"FEEDMILL_LANGUAGES: tlh, xx can't be told; there are af, .*zu"):
        load_languages("en, xx, tlh")
