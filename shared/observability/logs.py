"""Logging to standard error: a JSON object or a line of text per record, with credentials masked."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, Literal

from shared.observability.display import ascii_json, safe_to_show
from shared.observability.secrets import mask_within

LogFormat = Literal["json", "text"]

# The attributes that logging itself sets on a record. All others came through `extra` and are logged as fields.
_OWN = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formats a record as `{"at", "level", "service", "logger", "message", …extra fields, "traceback"}`."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its newline."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= _fields(record)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return ascii_json(mask_within(line))


class TextFormatter(logging.Formatter):
    """Formats a record as `date time LEVEL message field=value …`, in UTC; a traceback follows on lines of its own.

    A value with a blank, a quote, `=` or a line break is quoted, so that nobody takes a part of it for another field.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its newline."""
        at = datetime.fromtimestamp(record.created, UTC)
        time = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}"
        words = [f"{time} {record.levelname:<7} {safe_to_show(record.getMessage(), None)}"]
        fields = mask_within(_fields(record))
        words += [f"{safe_to_show(key)}={_quote(value)}" for key, value in fields.items() if value is not None]
        if record.exc_info:
            words.append("\n" + _safe_traceback(record.exc_info[1]))
        return " ".join(words)


def _quote(value: object) -> str:
    text = str(value)
    if {" ", '"', "="}.isdisjoint(text) and text.isprintable():
        return safe_to_show(text, None)
    return safe_to_show(json.dumps(text, ensure_ascii=False), None)


def _safe_traceback(error: BaseException | None) -> str:
    """Return the traceback on its lines; an error's own text, which may be a stranger's, stays on one line."""
    if error is None:
        return ""
    pieces = traceback.TracebackException.from_exception(error).format()
    return "\n".join(
        safe_to_show(piece.rstrip("\n"), None, lines=piece.startswith((" ", "\n", "Traceback "))) for piece in pieces
    )


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _OWN}


def configure_logging(service: str, level: str, log_format: LogFormat) -> None:
    """Send all logging of this process to standard error."""
    # Our lines show none of this, and looking it up is a quarter of a line's cost (Python's logging HOWTO).
    logging._srcfile = None  # noqa: SLF001
    logging.logThreads = logging.logMultiprocessing = logging.logProcesses = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter() if log_format == "text" else JsonFormatter(service))
    logging.basicConfig(handlers=[handler], level=level, force=True)
    quieten_libraries()


def quieten_libraries() -> None:
    """Silence libraries that log each request, or each lost connection with a traceback; we log both ourselves."""
    for chatty in ("httpx", "httpcore", "aio_pika", "aiormq"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL if chatty.startswith("aio") else logging.WARNING)
