"""Pure: the topics, as newsrooms call them (IPTC Media Topics, the 17 concepts at its top, CC BY 4.0)."""

from __future__ import annotations

ARTS = "arts, culture, entertainment and media"
CONFLICT = "conflict, war and peace"
CRIME = "crime, law and justice"
DISASTER = "disaster, accident and emergency incident"
ECONOMY = "economy, business and finance"
EDUCATION = "education"
ENVIRONMENT = "environment"
HEALTH = "health"
HUMAN_INTEREST = "human interest"
LABOUR = "labour"
LIFESTYLE = "lifestyle and leisure"
POLITICS = "politics and government"
RELIGION = "religion"
SCIENCE = "science and technology"
SOCIETY = "society"
SPORT = "sport"
WEATHER = "weather"

MEDIA_TOPICS = {
    "01000000": ARTS,
    "16000000": CONFLICT,
    "02000000": CRIME,
    "03000000": DISASTER,
    "04000000": ECONOMY,
    "05000000": EDUCATION,
    "06000000": ENVIRONMENT,
    "07000000": HEALTH,
    "08000000": HUMAN_INTEREST,
    "09000000": LABOUR,
    "10000000": LIFESTYLE,
    "11000000": POLITICS,
    "12000000": RELIGION,
    "13000000": SCIENCE,
    "14000000": SOCIETY,
    "15000000": SPORT,
    "17000000": WEATHER,
}
"""The concepts by their ids (`medtop:15000000`)."""
