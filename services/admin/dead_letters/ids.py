"""Finds dead letters by their ids, or the beginnings of these."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from services.admin.dead_letters.letters import DeadLetter, read_letters
from services.admin.errors import NotFound
from services.admin.ids import PREFIX_CHARACTERS, the_one
from shared.broker.port import Broker
from shared.broker.topology import Stage, Topology


async def read_letter(
    broker: Broker, topology: Topology, stages: list[Stage], message_id: str, most: int
) -> DeadLetter:
    """Return the letter with this id, or beginning of one, and its body.

    Raises:
        NotFound: it fits none of the oldest `most` of a queue.
        Conflict: it fits several.
    """
    letters = await read_letters(
        broker, topology, stages, most, lambda delivery: delivery.message_id.startswith(message_id)
    )
    (found,) = match_ids([message_id], [letter.delivery.message_id for letter in letters])
    return next(letter for letter in letters if letter.delivery.message_id == found)


async def choose_letters(
    broker: Broker, topology: Topology, stages: list[Stage], given: Sequence[str], most: int
) -> list[str]:
    """Return the ids of the letters that are meant: of all that were looked at if none is given.

    Raises:
        NotFound: one of the ids, or beginnings of ids, fits none of the oldest `most` of a queue.
        Conflict: one fits several.
    """
    found = [letter.delivery.message_id for letter in await read_letters(broker, topology, stages, most)]
    chosen = set(match_ids(given, found)) if given else set(found)
    return [id_ for id_ in found if id_ in chosen]


def match_ids(given: Sequence[str], found: Collection[str]) -> list[str]:
    """Return for each id, or beginning of one, the id that was found.

    Raises:
        NotFound: one fits none of them.
        Conflict: one fits several.
    """
    return [_match(prefix, set(found)) for prefix in given]


def _match(prefix: str, found: Collection[str]) -> str:
    fitting = (
        [prefix]
        if prefix in found
        else sorted(id_ for id_ in found if id_.startswith(prefix) and len(prefix) >= PREFIX_CHARACTERS)
    )
    match = the_one(prefix, fitting)
    if match is None:
        raise NotFound(
            f"there is no dead letter {prefix} among those that were looked at: see `feedmill dead list`"
            f" (give its id, or at least {PREFIX_CHARACTERS} characters of the beginning)"
        )
    return match
