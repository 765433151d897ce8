"""The settings in force, as people see them."""

from __future__ import annotations

import pytest

from services.admin.doctor.in_force import SERVICES, settings_in_force
from services.api.settings import ApiSettings
from shared.errors import ConfigurationError
from shared.settings import FeedmillSettings

CLASSES: list[type[FeedmillSettings]] = [*SERVICES, ApiSettings]


def test_each_setting_is_there_once_with_its_value_and_without_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", "postgresql://me:geheim@db.example/feeds")
    monkeypatch.setenv("FEEDMILL_MAX_RETRIES", "0")
    found = [setting for group in settings_in_force(CLASSES) for setting in group.settings]
    names = {f"FEEDMILL_{name.upper()}" for cls in CLASSES for name in cls.model_fields}
    assert sorted(setting.variable for setting in found) == sorted(names)
    by_name = {setting.variable: setting for setting in found}
    assert "geheim" not in str(found)
    assert by_name["FEEDMILL_DATABASE_URL"].value == "postgresql://***@db.example/feeds"
    retries = by_name["FEEDMILL_MAX_RETRIES"]
    assert (retries.value, retries.default, retries.is_set) == ("0", "12", True)
    assert not by_name["FEEDMILL_CLAIM_SECONDS"].is_set
    assert all(setting.description for setting in found)


def test_a_wrong_value_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_MAX_RETRIES", "many")
    with pytest.raises(ConfigurationError, match="FEEDMILL_MAX_RETRIES"):
        settings_in_force(CLASSES)
