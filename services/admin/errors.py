"""What a person asked for can't be done. Each error is a sentence that names the thing, the reason and the way out.

The HTTP API answers them with the status in `STATUSES`; the command prints the sentence and exits with 1.
"""

from __future__ import annotations

from shared.errors import ConfigurationError


class NotFound(ConfigurationError):
    """There is no such thing."""


class Conflict(ConfigurationError):
    """The state of the thing does not allow it, or somebody else was faster."""


class Invalid(ConfigurationError):
    """A value can't be used.

    Args:
        reason: a sentence.
        field: the field of the request that has the value.
    """

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field
