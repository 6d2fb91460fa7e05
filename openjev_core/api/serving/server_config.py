"""hypercorn's configuration, from the settings."""

from __future__ import annotations

import logging
import time
from email.utils import formatdate
from pathlib import Path

from hypercorn.config import Config

from openjev_core.errors import SettingsError
from openjev_core.settings import Settings

MAX_HEAD_BYTES = 32 * 1024
"""Request line and headers, together; more is a 431."""

MAX_REQUESTS_PER_CONNECTION = 1_000_000


class ServerConfig(Config):
    """hypercorn's configuration with a date header that is formatted once a second, not once a response."""

    def __init__(self) -> None:
        super().__init__()
        self._date: tuple[int, list[tuple[bytes, bytes]]] = (0, [])

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:  # noqa: ARG002 - the same for all
        """The headers that every response gets."""
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, [(b"date", formatdate(now, usegmt=True).encode())])
        return self._date[1]


def server_config(settings: Settings) -> ServerConfig:
    """What hypercorn's protocols need to know.

    Raises:
        SettingsError: One of certificate and key is missing, or a file is not there.
    """
    config = ServerConfig()
    config.accesslog = None
    config.errorlog = logging.getLogger("openjev.server")
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    config.h2_max_header_list_size = MAX_HEAD_BYTES
    config.keep_alive_max_requests = MAX_REQUESTS_PER_CONNECTION
    if (settings.certfile is None) != (settings.keyfile is None):
        given, missing = ("CERTFILE", "KEYFILE") if settings.certfile else ("KEYFILE", "CERTFILE")
        raise SettingsError(f"OPENJEV_{given} is set and OPENJEV_{missing} is not; TLS needs both")
    for name, path in (("CERTFILE", settings.certfile), ("KEYFILE", settings.keyfile)):
        if path is not None and not Path(path).is_file():
            raise SettingsError(f"OPENJEV_{name}: expected a PEM file, found none at {path!r}")
    config.certfile, config.keyfile = settings.certfile, settings.keyfile
    return config
