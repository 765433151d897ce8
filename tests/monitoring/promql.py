"""Finds the metrics that a PromQL expression names. It knows just enough of the grammar."""

from __future__ import annotations

import re

WORDS = frozenset({"and", "or", "unless", "bool", "offset", "inf", "nan"})
"""Names that are no metrics, besides functions and aggregations: those are followed by a parenthesis."""

_LABEL_LISTS = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(\s*[\[(])?")


def metrics_in(expression: str) -> dict[str, set[str]]:
    """Return the metrics of an expression, each with the labels that its selectors name."""
    bare = _LABEL_LISTS.sub(" ", _STRINGS.sub('""', expression))
    bare = re.sub(r"\[[^\]]*\]", " ", bare)  # ranges
    bare = re.sub(r"(?<![\w:])[\d.]+(?:e[+-]?\d+)?[a-z]*", " ", bare)  # numbers and durations
    found: dict[str, set[str]] = {}
    for name, labels, behind in _SELECTOR.findall(bare):
        is_call = behind.strip() == "(" or name in {"sum", "max", "min", "avg", "count", "group"}
        if name not in WORDS and not is_call:
            found.setdefault(name, set()).update(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels))
    return found
