"""Entities are found where a text names them, and not where a common word only looks like one."""

from __future__ import annotations

import pytest

from services.enricher.entities import load_entities
from services.enricher.parts import Entities
from services.enricher.text import Text
from shared.wire.enrichment import Entity


@pytest.fixture(scope="module")
def find() -> Entities:
    return load_entities()


def found(find: Entities, title: str, body: str = "", language: str | None = "en") -> dict[str, Entity]:
    return {entity.name: entity for entity in find([Text(title, body)], [language])[0]}


@pytest.mark.parametrize(
    ("language", "text", "name", "kind", "id"),
    [
        ("en", "Ministers met in Berlin on Friday", "Berlin", "place", None),
        ("en", "The vote in Sweden was close", "Sweden", "place", "Q34"),
        ("de", "Der Gipfel in Frankreich beginnt", "France", "place", "Q142"),
        ("ru", "Переговоры в Китае завершились", "China", "place", "Q148"),
        ("ja", "日本で選挙", "Japan", "place", "Q17"),
        ("ar", "قمة في مصر اليوم", "Egypt", "place", "Q79"),
        ("he", "נתניהו בירושלים", "Jerusalem", "place", None),
        ("ko", "미국에서 열린 회의", "United States", "place", "Q30"),
        ("es", "La OTAN se reunirá el martes", "NATO", "organisation", "Q7184"),
        ("en", "A clinic run by the University of Zanzibar", "University of Zanzibar", "organisation", None),
        ("en", "She joined Zebulon Holdings in March", "Zebulon Holdings", "organisation", None),
        ("en", "They talked to Amelia Thornbury about it", "Amelia Thornbury", "person", None),
        ("en", "Senator Zorblatt disagreed", "Zorblatt", "person", None),
        ("en", "Clusters that run Kubernetes are affected", "Kubernetes", "technology", None),
    ],
)
def test_names_are_found(find: Entities, language: str, text: str, name: str, kind: str, id: str | None) -> None:  # noqa: A002
    entity = found(find, text, language=language)[name]
    assert (entity.kind, entity.id) == (kind, id)
    assert len(entity.mentions) == 1


@pytest.mark.parametrize(
    "text",
    [
        "A nice idea for reading in the bath",
        "Nice weather, and reading glasses",
        "How To Lead A Nice Life: Reading Tips",
        "the python ate an apple, rust and swift water",
        "Swift action is needed to rust-proof the bridge",
        "MAN TOLD US WHO WAS THERE",
        "Chinaware and Parisian and Malice",
        "On Monday in March the Province said so",
    ],
)
def test_common_words_are_no_names(find: Entities, text: str) -> None:
    assert not found(find, text)


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        *(
            ("ru", "Взрыв в Лондоне", "London"),
            ("ru", "Удары по Ирану", "Iran"),
            ("ru", "Встреча под Минском", "Minsk"),
        ),
        *(("uk", "Зустріч у Лондоні", "London"), ("uk", "Вибухи у Харкові", "Kharkiv"), ("uk", "У Києві тихо", "Kyiv")),
        *(("de", "Der Rat von München tagt", "Munich"), ("de", "Wahlen in Sachsen", "Saxony")),
        *(("it", "Il sindaco di Napoli", "Naples"), ("it", "Un museo a Firenze", "Florence")),
        *(("sv", "En man i Göteborg greps", "Gothenburg"), ("fr", "Le maire de Genève", "Geneva")),
        *(("nl", "De rechtbank in Den Haag", "The Hague"), ("es", "Un incendio en el País Vasco", "Basque Country")),
        *(
            ("zh", "广东今日有雨", "Guangdong"),
            ("ja", "北海道で大雪", "Hokkaidō"),
            ("ru", "Пожары в Сибири", "Siberia"),
        ),
        ("de", "Die Messe in Essen beginnt", "Essen"),
    ],
)
def test_places_are_found_by_their_own_names_and_with_endings(
    find: Entities, language: str, text: str, name: str
) -> None:
    assert found(find, text, language=language)[name].kind == "place"


@pytest.mark.parametrize(
    ("language", "text", "wrong"),
    [
        *(
            ("ja", "ワクチンの接種", "Kuching"),
            ("ja", "チリソースの作り方", "Chile"),
            ("ja", "日本航空の新路線", "Japan"),
        ),
        *(
            ("zh", "马里奥新游戏发售", "Mali"),
            ("zh", "内蒙古草原", "Mongolia"),
            ("zh", "上海交通大学的研究", "Shanghai"),
        ),
        *(("ko", "제주항공 여객기", "Jeju City"), ("ko", "서울대학교 연구", "Seoul")),
        *(("fr", "Selon Électricité-France ce matin", "France"), ("fr", "Une étape du Tour de France", "France")),
        *(("en", "Traders at Borsa Istanbul were calm", "Istanbul"), ("en", "The Lake Geneva shore", "Geneva")),
        *(("de", "Der Zug hält", "Zug"), ("de", "Das Essen im Zug war gut", "Essen")),
        *(
            ("en", "The study by Claude Opus was short", "Claude Opus"),
            ("en", "It ran on Mistral Small", "Mistral Small"),
        ),
        ("en", "Fans of the Boston Zebracks cheered", "Boston Zebracks"),
    ],
)
def test_what_stands_inside_a_longer_name_is_no_name(find: Entities, language: str, text: str, wrong: str) -> None:
    assert wrong not in found(find, text, language=language)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Trains from Paris-London to the US-China talks", {"Paris", "London", "United States", "China"}),
        ("Shelling hit East Jerusalem and Northern Syria on Monday", {"East Jerusalem", "Syria"}),
        (
            "The former head of Apple met with Jordan Henderson yesterday in Jordan",
            {"Apple", "Jordan Henderson", "Jordan"},
        ),
    ],
)
def test_neighbours_do_not_hide_names(find: Entities, text: str, names: set[str]) -> None:
    assert found(find, text).keys() == names


def test_a_german_noun_is_no_place_where_the_place_is_named(find: Entities) -> None:
    text = "Das Essen war gut. In Köln und in Essen."
    (mention,) = found(find, "", text, "de")["Essen"].mentions
    assert mention.start == text.rindex("Essen")


def test_ordinary_words_in_technical_texts_are_no_names(find: Entities) -> None:
    text = "The web app has a Files view, a Boost mode, Local storage, Spaces, a Task list, a Red button and a Kit."
    assert not found(find, "News for developers", text)


def test_a_word_in_the_middle_of_a_sentence_is_a_name_if_it_is_capitalised(find: Entities) -> None:
    said = found(find, "Nice mourns", "Thousands marched in Nice on Sunday.")
    assert [mention.field for mention in said["Nice"].mentions] == ["title", "body"]


def test_a_person_is_one_entity_by_full_and_by_last_name(find: Entities) -> None:
    title, body = "Thornbury resigns", "Amelia Thornbury said so. Friends of Thornbury's agreed."
    person = found(find, title, body)["Amelia Thornbury"]
    texts = {"title": title, "body": body}
    assert [texts[m.field][m.start : m.end] for m in person.mentions] == ["Thornbury", "Amelia Thornbury", "Thornbury"]


@pytest.mark.parametrize(
    ("language", "text", "name", "kind"),
    [
        ("en", "On Friday striker Zorblatt missed a penalty", "Zorblatt", "person"),
        ("en", "It was named by coach Xanthe Quillfeather", "Xanthe Quillfeather", "person"),
        ("de", "Das sagte Bundestrainer Zorblatt am Freitag", "Zorblatt", "person"),
        ("es", "El presidente Zorblatt viajó el martes", "Zorblatt", "person"),
        ("ru", "Об этом сообщил тренер Зигмунд Орблат", "Зигмунд Орблат", "person"),
        ("pl", "Spotkanie Andrzeja Zorblata z ministrami", "Andrzeja Zorblata", "person"),
        (
            "en",
            "Aid of the Zebulon Council for Quiet Seas (ZCQS) came",
            "Zebulon Council for Quiet Seas",
            "organisation",
        ),
        ("en", "Fans of Leeds Rovers cheered", "Leeds Rovers", "organisation"),
        ("de", "Der Trainer von Dynamo Dresden schweigt", "Dynamo Dresden", "organisation"),
        ("es", "Un fallo del Tribunal Zorblat de Justicia", "Tribunal Zorblat de Justicia", "organisation"),
        ("en", "LONDON (Reuters) - Shares fell", "London", "place"),
        ("de", "Die Regierung Japans tritt zurück", "Japan", "place"),
        ("pl", "Protesty w Warszawie", "Warsaw", "place"),
        ("pl", "Wybory w Niemczech", "Germany", "place"),
        ("cs", "Schůzka v Praze", "Prague", "place"),
        ("ko", "홍길순 대표가 말했다", "홍길순", "person"),
        ("ja", "佐々木花子容疑者を逮捕", "佐々木花子", "person"),
        ("zh", "外交部发言人周某平表示", "周某平", "person"),
        ("ko", "가나다은행 발표", "가나다은행", "organisation"),
        ("en", "Apple unveils a thinner phone", "Apple", "organisation"),
        ("en", "A compiler that is written in Go for servers", "Go", "technology"),
    ],
)
def test_what_stands_beside_a_name_tells_it(find: Entities, language: str, text: str, name: str, kind: str) -> None:
    assert found(find, text, language=language)[name].kind == kind


@pytest.mark.parametrize(
    ("language", "text"),
    [
        *(
            ("ko", "이를 위해 후에 저지했다"),
            ("ko", "메시지를 남겼다"),
            ("ko", "외국인 선수가 많다"),
            ("ko", "시중은행 금리"),
        ),
        *(
            ("ja", "気温は摂氏三十度"),
            ("zh", "国有银行的利率"),
            ("en", "Apple pie and cider"),
            ("en", "Go home and rest"),
        ),
        ("en", "Request for Proposal (RFP) rules"),
    ],
)
def test_what_only_looks_like_a_name_is_none(find: Entities, language: str, text: str) -> None:
    assert not found(find, text, language=language)


TRAPS = (
    ("ar", "سيول جارفة تقطع الطرق في صنعاء بعد أمطار غزيرة", "Seoul"),
    ("ar", "جدة الطفل تنقذه من الحريق", "Jeddah"),
    ("ko", "인도로 돌진한 승용차, 보행자 부상", "India"),
    ("ko", "화성 탐사선, 새 사진 전송", "Hwaseong-si"),
    ("ko", "겨울 별미 대구탕 인기. 대구는 살이 담백해", "Daegu"),
    ("ko", "노동자 연대 집회", "Yantai"),
    ("ja", "朝晩は大分涼しくなりました", "Ōita"),
    ("ja", "広島地方気象台が中国地方の梅雨入りを発表した", "China"),
    ("ja", "千葉百音は圧巻の演技を見せた", "Chiba"),
    ("ja", "福山さんは十年ぶりのアルバムを出す", "Fukuyama"),
    ("ja", "宮崎監督はコメントを出した", "Miyazaki"),
    ("zh", "小米粥怎么熬", "Xiaomi"),
    ("zh", "他夸下海口要拿冠军", "Haikou"),
    ("zh", "他高雄心壮志,参加比赛", "Kaohsiung"),
    ("zh", "球队取得胜利", "Dongying"),
    ("pt", "As vendas de Natal devem crescer 4%", "Natal"),
    ("tr", "Ordu sınırda tatbikat yaptı", "Ordu"),
    ("tr", "Son Batman filmi gişe rekoru kırdı", "Batman"),
    ("it", "Alla Scala trionfa Verdi", "Alla Scala"),
    ("en", "Fire at St James hospital", "St James"),
    ("en", "Fighting in eastern Congo killed 20", "Congo - Brazzaville"),
    ("en", "Researchers at the University of California, Santa Cruz, said so", "Santa Cruz de la Sierra"),
    ("en", "Chad Michaels wins drag contest. Later Chad thanked his mother", "Chad"),
    ("en", "Visa rules tightened for students", "Visa"),
    ("en", "Amazon fires reach ten-year high in the rainforest", "Amazon"),
)


@pytest.mark.parametrize(("language", "text", "wrong"), TRAPS)
def test_a_name_that_is_also_something_else_is_none_beside_that(
    find: Entities, language: str, text: str, wrong: str
) -> None:
    assert wrong not in found(find, text, language=language)


@pytest.mark.parametrize(
    ("language", "text", "name"),
    [
        ("ar", "قمة في سيول اليوم", "Seoul"),
        ("ar", "وصل الوفد إلى جدة اليوم", "Jeddah"),
        ("ko", "인도 총리가 방문했다", "India"),
        ("ko", "대구시 예산", "Daegu"),
        ("ja", "千葉県で地震", "Chiba"),
        ("ja", "中国政府が発表した", "China"),
        ("zh", "小米发布新手机", "Xiaomi"),
        ("pt", "O voo pousou em Natal na segunda", "Natal"),
        ("tr", "Dün Ordu'da sel oldu", "Ordu"),
        ("en", "Rebels took Goma in eastern Congo", "Congo - Kinshasa"),
        ("en", "Voters in Georgia, where Republican leaders met in Atlanta", "Georgia (US state)"),
        ("en", "Protests in Georgia spread across Tbilisi", "Georgia"),
        ("en", "Troops in Chad and in Niger", "Chad"),
        ("en", "Payments firm Visa and Mastercard agreed", "Visa"),
    ],
)
def test_such_a_name_is_found_where_it_is_meant(find: Entities, language: str, text: str, name: str) -> None:
    assert name in found(find, text, language=language)


def test_an_abbreviation_is_the_same_organisation_later(find: Entities) -> None:
    said = found(find, "Report", "The Zebulon Council for Quiet Seas (ZCQS) said so. The ZCQS meets in May.")
    assert len(said["Zebulon Council for Quiet Seas"].mentions) == 3


def test_the_longest_name_wins(find: Entities) -> None:
    said = found(find, "Jordan Henderson was in Washington, D.C. for Goldman Sachs")
    assert {(e.kind, name) for name, e in said.items()} == {
        ("person", "Jordan Henderson"),
        ("place", "Washington DC"),
        ("organisation", "Goldman Sachs"),
    }


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\ud800\udfff\ud800 Paris", "A" * 4_000, "Anna " * 800, "Anna de " * 500, "\u202eParis\u202c"),
        *("Bank of " * 500, "Бер" * 1_300, "京" * 4_000, "ال" * 2_000, "😀" * 4_000, "A.B." * 1_000, "İ" * 4_000),
    ],
)
def test_any_text_takes_bounded_room(find: Entities, text: str) -> None:
    entities = find([Text(text[:500], text)], [None])[0]
    assert len(entities) <= 50
    for entity in entities:
        assert len(entity.mentions) <= 10
        for mention in entity.mentions:
            assert 0 <= mention.start < mention.end <= len(text)


def test_many_names_are_cut(find: Entities) -> None:
    many = ", ".join(f"Anna Zebl{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200))
    assert len(found(find, "", many)) == 50
    assert len(found(find, "", "Sweden, " * 200)["Sweden"].mentions) == 10


def test_a_model_finds_what_no_list_has() -> None:
    pytest.importorskip("spacy")
    text = "The talks between Zarnak Industries and Berlin were led by Xanthe Quillfeather."
    by_list, by_model = (found(load_entities(mode), "Talks stall", text) for mode in ("list", "model"))
    assert by_list.keys() == {"Berlin"}
    assert by_model.keys() > by_list.keys()
    assert (by_model["Berlin"].kind, by_model["Berlin"].mentions) == ("place", by_list["Berlin"].mentions)
