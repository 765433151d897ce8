"""Lists of feeds: the lines that an import answers with."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from services.admin.subscriptions.rules import Reason
from services.api.problems import Problem


class Warned(BaseModel):
    """Something wrong with the file that loses no feed."""

    line: int
    text: str
    count: int


class Opened(BaseModel):
    """The list, before anything is imported."""

    format: str
    encoding: str
    feeds: int
    warnings: list[Warned]


class SkippedLine(BaseModel):
    """A line of the list that adds no feed. Credentials are masked."""

    line: int
    reason: Reason
    detail: str
    url: str


class Progress(BaseModel):
    """After each chunk."""

    read: int
    added: int


class Imported(BaseModel):
    """The end of an import; of a dry run, what it would have done."""

    dry_run: bool
    listed: int
    added: int
    tagged: Annotated[int, Field(description="Feeds that were there already and got tags.")]
    refused: int
    reasons: Annotated[dict[str, int], Field(description="How many lines were skipped, by reason.")]
    first_polls_within_seconds: float


class ImportLine(BaseModel):
    """One line of the answer: an object with one of these members. The last line is `done` or `error`."""

    model_config = ConfigDict(json_schema_extra={"example": {"progress": {"read": 1000, "added": 998}}})

    opened: Opened | None = None
    skipped: SkippedLine | None = None
    progress: Progress | None = None
    done: Imported | None = None
    error: Problem | None = None
