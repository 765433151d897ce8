"""The errors that cross packages, each named for what the consumer loop does about it.

    FeedmillError
    ├── Unprocessable        this message can never be handled: to the dead queue, with the reason
    │   ├── DecodeError          the body is not the message that it claims to be
    │   └── MessageTooLarge      larger than the broker or a service accepts
    ├── Unavailable          a server that we need is away: keep the message, wait, try again
    │   ├── BrokerUnavailable
    │   │   ├── Unroutable           no queue took it: a new session declares the missing queue
    │   │   └── Unconfirmed          it was sent, and the broker has not said whether a queue has it
    │   └── DatabaseUnavailable
    │       └── DatabaseBusy         it answers, but the work took too long or waited for a lock
    ├── ConfigurationError   a person must act: say what to do and exit
    │   └── TopologyMismatch     a queue exists with other arguments
    ├── Blocked              the work waits for a lock that somebody else holds: try again later, any number of times
    └── NackAndRequeue       the handler did not begin the message: back to its queue, for another consumer

Any other exception is a bug: the message is tried again later, a few times, and then dead-lettered with the exception's
text. An error that never leaves its package is defined there.
"""

from __future__ import annotations

from dataclasses import dataclass


class FeedmillError(Exception):
    """Root of all errors that Feedmill raises on purpose."""


class Unprocessable(FeedmillError):
    """This message can never be handled, however often it is tried."""


class DecodeError(Unprocessable):
    """The body is not a message of the kind and version that its routing key names."""


class MessageTooLarge(Unprocessable):
    """The message exceeds what the broker accepts, or unfolds to more than a service may take."""


class Unavailable(FeedmillError):
    """A server that this work needs is away; the work itself is fine."""


class BrokerUnavailable(Unavailable):
    """RabbitMQ is away, refused a publish, or closed the channel."""


class Unroutable(BrokerUnavailable):
    """A publish reached no queue. Nothing is lost (`mandatory`); the topology has to be declared again."""


class Unconfirmed(BrokerUnavailable):
    """A publish that may have reached its queue: no confirm came in time, or the session ended before it came."""


class DatabaseUnavailable(Unavailable):
    """PostgreSQL is away, shutting down, or out of connections."""


class DatabaseBusy(DatabaseUnavailable):
    """PostgreSQL cancelled a statement: it took too long, or waited too long for a lock."""


class ConfigurationError(FeedmillError):
    """A setting or an installation is wrong; the message says which, why, and the way out."""


class TopologyMismatch(ConfigurationError):
    """A queue or exchange exists with arguments other than the topology's."""


class Blocked(FeedmillError):
    """This work waits for a lock that somebody else holds. Neither the message nor the server is at fault."""


class NackAndRequeue(FeedmillError):
    """The handler did not begin this message (it is shutting down): the message goes back to its queue."""


@dataclass(frozen=True)
class TryLater:
    """The message goes to the retry queue, with this number in the header `failures`."""

    failures: int


@dataclass(frozen=True)
class DeadLetter:
    """The message goes to the dead queue, for a person to look at."""

    reason: str


def after_failure(error: Exception, *, failures: int, most: int) -> TryLater | DeadLetter:
    """Return what to do with a message that failed with `error` after `failures` earlier failures.

    A message that can never be handled is dead-lettered at once. After a bug it gets `most` more tries, since the cause
    may pass. A blocked message counts no failure.
    """
    match error:
        case Blocked():
            return TryLater(failures)
        case DecodeError():
            return DeadLetter("undecodable")
        case MessageTooLarge():
            return DeadLetter("too_large")
        case Unprocessable():
            return DeadLetter("unprocessable")
    return DeadLetter("exhausted") if failures >= most else TryLater(failures + 1)
