"""Log lines on standard error, for people or for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from openjev_core.api.request_log import REQUESTS
from openjev_core.cli.terminal import shown


class TextLines(logging.Formatter):
    """``2026-01-31 12:00:00 INFO message``; a traceback goes on below."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname:<7} {message}", "%Y-%m-%d %H:%M:%S", style="{")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line, with nothing in it that a terminal would obey."""
        record.message = shown(record.message)
        return super().formatMessage(record)


class JsonLines(logging.Formatter):
    """One JSON object a line, with time and level; a request's record is already JSON and joins them."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        head = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        message = record.getMessage()
        body = json.loads(message) if record.name == REQUESTS else {"logger": record.name, "message": message}
        if record.exc_info:
            body["traceback"] = self.formatException(record.exc_info)
        return json.dumps(head | body)


def write_logs(style: Literal["text", "json"]) -> None:
    """Write openjev's log lines to standard error. Other libraries' are shown from warnings up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("openjev").setLevel(logging.INFO)
