"""Entity tags: an editor may say which edition of a thing was seen, so that nobody undoes another's change."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Header

from services.api.problems import ProblemError

IfMatch = Annotated[
    str | None,
    Header(
        max_length=1000,
        description="The `ETag` of the edition that was seen; 412 if there is a newer one. Without it the last writer"
        " wins.",
    ),
]


def quote(edition: str) -> str:
    """Return the strong entity tag of an edition."""
    return f'"{edition}"'


def check_match(if_match: str | None, edition: str, what: str) -> None:
    """Return if the edition is one that the caller names, or if none is named.

    Call it with the row locked, so that nothing changes between check and write.

    Raises:
        ProblemError: 412; `what` was changed in between. It has the present entity tag.
    """
    if if_match is None:
        return
    named = {tag.strip() for tag in if_match.split(",")}
    if not named & {"*", quote(edition)}:
        raise ProblemError(
            HTTPStatus.PRECONDITION_FAILED,
            f"{what} was changed since you read it: read it again, and make your change to that",
            {"ETag": quote(edition)},
        )
