"""Settings as they come from the environment: what is empty, what is not encoded, what is a secret."""

from __future__ import annotations

import pytest

from services.cli.settings import CliSettings
from services.writer.settings import WriterSettings
from shared.errors import ConfigurationError
from shared.settings import read_settings


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_LOG_LEVEL", "")
    monkeypatch.setenv("FEEDMILL_WRITER_BATCH", "")
    settings = read_settings(WriterSettings)
    assert (settings.log_level, settings.writer_batch) == ("INFO", 500)


@pytest.mark.parametrize("settings", [WriterSettings, CliSettings])
@pytest.mark.parametrize("password", ["p@ss", "pa/ss", "pa#ss", "pa?s@s", "50%zz", "p@ss/w:rd#1%x"])
def test_a_password_that_is_not_encoded_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, settings: type[WriterSettings | CliSettings], password: str
) -> None:
    monkeypatch.setenv("FEEDMILL_AMQP_URL", f"amqp://feedmill:{password}@broker:5672/")
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", f"postgresql://feedmill:{password}@database:5432/feedmill")
    with pytest.raises(ConfigurationError) as caught:
        read_settings(settings)
    said = str(caught.value)
    assert "FEEDMILL_AMQP_URL" in said
    assert "FEEDMILL_DATABASE_URL" in said
    assert "percent-encoded" in said
    assert password not in said


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://feedmill:p%40ss%2Fw%3Ard%231%25x@database:5432/feedmill",
        "postgresql://database/feedmill?user=feedmill&options=-csearch_path%3Dx",
        "postgresql://u@a:5432,b:5432/feedmill",
    ],
)
def test_urls_as_libpq_takes_them(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", url)
    assert read_settings(WriterSettings).database_url
