"""The errors that cross rooms, named for what the consumer loop must do about them.

    FeedmillError
    ├── Unprocessable        this message can never work: to the dead queue, with the reason
    │   ├── DecodeError          the body is not the message that it says it is
    │   └── MessageTooLarge      larger than the broker or a service takes
    ├── Unavailable          a server that we need is away: keep the message, wait, try again
    │   ├── BrokerUnavailable
    │   │   ├── Unroutable           no queue took it: connecting anew declares the missing one
    │   │   └── Unconfirmed          it was sent, and the broker has not said whether a queue has it
    │   └── DatabaseUnavailable
    │       └── DatabaseBusy         it answers, but this took too long, or somebody holds the rows
    ├── ConfigurationError   a person must act: say what to do and exit
    │   └── TopologyMismatch     a queue stands there with other arguments
    ├── Blocked              it needs what somebody else holds: later, as often as it takes; others go on
    └── NackAndRequeue             not begun and not wanted here any more: another consumer may have it

Any other exception is a bug: the message is tried again later, a few times, then buried with its traceback's
last line. An error that never leaves its room is defined in that room.
"""

from __future__ import annotations


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
    """This work waits for a lock that somebody else holds. It is at no fault, and nor is the server for other work."""


class NackAndRequeue(FeedmillError):
    """The handler did not begin this message (it is shutting down): back to its queue with it."""
