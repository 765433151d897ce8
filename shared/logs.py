"""One JSON object per log line, on standard error, with every credential masked."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from shared.secrets import mask_credentials

# What logging itself puts on a record; all else came in through `extra` and goes out as a field.
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
        line |= {key: value for key, value in vars(record).items() if key not in _OWN}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return mask_credentials(json.dumps(line, default=str, ensure_ascii=False))


def configure_logging(service: str, level: str) -> None:
    """Send all logging of this process to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(service))
    logging.basicConfig(handlers=[handler], level=level, force=True)
    quieten_libraries()


def quieten_libraries() -> None:
    """Silence libraries that report each request, or each lost connection with a traceback; we say both ourselves."""
    for chatty in ("httpx", "httpcore", "aio_pika", "aiormq"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL if chatty.startswith("aio") else logging.WARNING)
