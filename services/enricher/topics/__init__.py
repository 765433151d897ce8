"""What an article is about: a topic of IPTC's, told by its words, by its feed's categories and by its address."""

from __future__ import annotations

from pathlib import Path

from services.enricher.parts import Missing, Topics
from shared.errors import ConfigurationError

DEFAULT_MODEL = Path(__file__).with_name("model.npz")


def load_topics(path: Path | None = None) -> Topics:
    """Return the part that tells topics, with the model that feedmill brings or that of a file.

    Raises:
        ImportError: numpy is not installed.
        Missing: feedmill's own model is not there.
        ConfigurationError: the file is no model.
    """
    from services.enricher.topics.classifier import TITLE, Classifier
    from services.enricher.topics.model import BadModel, Model

    try:
        title = 0.0 if path else TITLE  # other models' confidence was measured without
        return Classifier(Model.load(path or DEFAULT_MODEL), title)
    except (BadModel, OSError) as error:
        reason = str(error) if isinstance(error, BadModel) else error.strerror
        if path is None:
            raise Missing(f"the model of topics is not installed ({reason}): install feedmill again") from error
        raise ConfigurationError(f"FEEDMILL_TOPICS_MODEL: {path} is no model of topics: {reason}") from error
