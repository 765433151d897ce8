"""How the names of places end in Polish and Czech: `Warszawa`, `w Warszawie`, `Warszawą`."""

from __future__ import annotations

_PLURALS = {
    "Niemcy": "Niemiec Niemczech Niemcom Niemcami", "Włochy": "Włoch Włoszech Włochom Włochami",
    "Węgry": "Węgier Węgrzech Węgrom Węgrami", "Chiny": "Chin Chinach Chinom Chinami", "Indie": "Indii Indiach Indiami",
    "Czechy": "Czech Czechach Czechami", "Filipiny": "Filipin Filipinach", "Ateny": "Aten Atenach",
    "Stany Zjednoczone": "Stanów Zjednoczonych|Stanach Zjednoczonych|Stanami Zjednoczonymi|Stanom Zjednoczonym",
    "Wielka Brytania": "Wielkiej Brytanii|Wielką Brytanię|Wielką Brytanią",
    "Arabia Saudyjska": "Arabii Saudyjskiej|Arabię Saudyjską|Arabią Saudyjską",
    "Korea Północna": "Korei Północnej|Koreę Północną|Koreą Północną",
    "Korea Południowa": "Korei Południowej|Koreę Południową|Koreą Południową",
    "Nowy Jork": "Nowego Jorku|Nowym Jorku|Nowym Jorkiem",
    "Zjednoczone Emiraty Arabskie": "Zjednoczonych Emiratów Arabskich",
    "Německo": "Německa Německu Německem", "Spojené státy": "Spojených států|Spojených státech|Spojeným státům",
    "Spojené království": "Spojeného království|Spojeném království", "Čína": "Číny Číně Čínu Čínou",
    "Francie": "Francii Francií", "Česko": "Česka Česku Českem", "Slovensko": "Slovenska Slovensku Slovenskem",
    "Polsko": "Polska Polsku Polskem", "Rusko": "Ruska Rusku Ruskem", "Rakousko": "Rakouska Rakousku Rakouskem",
    "Maďarsko": "Maďarska Maďarsku Maďarskem", "Praha": "Prahy Praze Prahu Prahou",
}  # fmt: skip
"""Those that follow no rule; names of several words with `|` between."""
_SOFT = {
    "wa": "wie", "da": "dzie", "ka": "ce", "ga": "dze", "ra": "rze", "ta": "cie", "ła": "le", "na": "nie", "sa": "sie",
    "ma": "mie", "pa": "pie", "ba": "bie", "za": "zie",
}  # fmt: skip
_HARD = {
    "n": "nie", "w": "wie", "d": "dzie", "r": "rze", "t": "cie", "ł": "le", "s": "sie", "m": "mie", "p": "pie",
    "b": "bie", "z": "zie",
}  # fmt: skip


def inflected(name: str, language: str) -> list[str]:
    """Return the other forms that a name of a place has in sentences of the language; none if no rule is sure."""
    if language not in {"pl", "cs"}:
        return []
    if found := _PLURALS.get(name):
        return found.split("|" if " " in name else " ")
    if " " in name or "-" in name or len(name) < 4 or not name.isalpha():
        return []
    return _polish(name) if language == "pl" else _czech(name)


def _polish(name: str) -> list[str]:
    stem = name[:-1]
    if name.endswith(("ja", "ia")):
        return [stem + "i", stem + "ę", stem + "ą"]
    if name.endswith("a") and name[-2:] in _SOFT:
        genitive = stem + ("i" if name[-2] in "kg" else "y")
        return [genitive, name[:-2] + _SOFT[name[-2:]], stem + "ę", stem + "ą"]
    if name.endswith("ów"):
        return [name[:-2] + ending for ending in ("owa", "owie", "owem", "owowi")]
    if name.endswith("o"):
        return [stem + "a", stem + "em", *([name[:-2] + _HARD[name[-2]]] if name[-2] in _HARD else [])]
    return _polish_consonant(name)


def _polish_consonant(name: str) -> list[str]:
    if name[-1] in "kg":
        return [name + "u", name + "iem", *([name + "a"] if name[-1] == "k" else [])]
    if name[-1] in _HARD:
        return [name + "u", name + "em", name[:-1] + _HARD[name[-1]], name + "a"]
    if name[-1] in "żcjl":
        return [name + "a", name + "u", name + "em"]
    return []


def _czech(name: str) -> list[str]:
    stem = name[:-1]
    if name.endswith("ie"):
        return [stem + "i", stem + "í"]
    if name.endswith("o"):
        return [stem + "a", stem + "u", stem + "em"]
    if name.endswith("a"):
        soft = {"k": "ce", "h": "ze", "r": "ře", "g": "ze"}
        local = name[:-2] + soft[name[-2]] if name[-2] in soft else stem + ("ě" if name[-2] in "dtnbpvmf" else "e")
        return [stem + "y", local, stem + "u", stem + "ou"]
    if name[-1] in "nmdtkrvsplbz":
        return [name + "u", name + "em", name + "ě", name + "a"]
    return []
