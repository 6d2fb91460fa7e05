"""Parsers for the texts of settings. Each returns the value, or says in a ``ValueError`` what is accepted.

They are stricter than Python's own. ``int`` and ``float`` take digits of any script, ``8_000`` for 8000, and
``1e-320``, by which a division gives infinity. And a mistyped address would show only at the first request.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from openjev_core.orders import Orders, checked_orders

Parser = Callable[[str], Any]

INTEGER = re.compile(r"-?[0-9]+")
COUNT = re.compile(r"[0-9]{1,4000}")
"""Digits that ``int`` reads: it refuses more than 4300."""
DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+")
BEARER_KEY = re.compile(r"[!-~]([ -~]*[!-~])?")
USUAL_PORTS = {"http": 80, "https": 443}


class HiddenError(ValueError):
    """Says what is accepted. The value that was given must not be shown."""


def text(value: str) -> str:
    """A string that is not blank."""
    if not value.strip():
        raise ValueError("a non-empty string")
    return value


def integer(low: int, high: int | None = None) -> Parser:
    """An integer in a closed range."""
    accepted = f"an integer from {low}" + (f" to {high}" if high is not None else " up")

    def parse(value: str) -> int:
        try:
            # Python refuses thousands of digits, with a ValueError of its own.
            number = int(value) if INTEGER.fullmatch(value) else None
        except ValueError:
            number = None
        if number is None or number < low or (high is not None and number > high):
            raise ValueError(accepted)
        return number

    return parse


def positive(value: str) -> float:
    """A finite number above 0, in decimal digits."""
    number = float(value) if DECIMAL.fullmatch(value) else math.nan
    if not (math.isfinite(number) and number > 0):
        raise ValueError("a finite number above 0, such as 0.5 or 120")
    return number


def not_negative(value: str) -> float:
    """A finite number from 0 up, in decimal digits."""
    number = float(value) if DECIMAL.fullmatch(value) else math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError("a finite number from 0 up, such as 0 or 2.5")
    return abs(number)


def one_of(*values: str) -> Parser:
    """One of a few words."""

    def parse(value: str) -> str:
        if value not in values:
            raise ValueError("one of " + ", ".join(values))
        return value

    return parse


def flag(value: str) -> bool:
    """On or off."""
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if value.lower() not in known:
        raise ValueError("1, true, yes, on, 0, false, no or off")
    return known[value.lower()]


def words(value: str) -> tuple[str, ...]:
    """A comma-separated list."""
    found = tuple(word.strip() for word in value.split(",") if word.strip())
    if value and not found:
        # An API key of "," must not open the server to everyone.
        raise ValueError("a comma-separated list of at least one entry")
    return found


def prompt_words(value: str) -> tuple[str, ...]:
    """The three fixed words of a prompt."""
    found = tuple(part.strip() for part in value.split(","))
    if len(found) != 3 or not all(part and part.isprintable() for part in found):  # noqa: PLR2004 - one for each
        raise ValueError("three texts of one line, comma-separated, such as Frage:,Optionen:,Antwort:")
    return found


def order_count(value: str) -> Orders:
    """The number of orders of its options in which a readout is read."""
    return checked_orders(int(value) if COUNT.fullmatch(value) else value)


def server_url(value: str) -> str:
    """The address of a server.

    One with a user or a password is refused: it would turn up in logs and in errors, and keys have their own setting.
    """
    from httpx import URL, InvalidURL  # noqa: PLC0415 - slow to import, and needed for addresses alone

    accepted = "an http or https URL such as http://127.0.0.1:30000"
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError(accepted) from None
    if parts.username is not None or parts.password is not None:
        raise HiddenError(f"{accepted}, without a user or password: OPENJEV_BACKEND_API_KEY takes the server's key")
    if parts.scheme not in USUAL_PORTS or not host or re.search(r"\s", value):
        raise ValueError(accepted)
    if parts.query or parts.fragment:
        raise ValueError(f"{accepted}, without a query or fragment")
    try:
        # The HTTP client and the name system accept less: no part of a name may be empty or have 64 letters.
        URL(value).raw_host.decode().encode("idna")
    except (InvalidURL, UnicodeError):
        raise ValueError(accepted) from None
    return value


def bearer_key(value: str) -> str:
    """A key that can be sent. A line end, such as the last of a file, would end the header and begin another."""
    if not BEARER_KEY.fullmatch(value):
        raise ValueError("printable ASCII characters without white space around them")
    return value


def networks(value: str) -> tuple[str, ...]:
    """Addresses and networks in CIDR notation."""
    found = words(value)
    for one in found:
        try:
            ip_network(one)
        except ValueError as error:
            raise ValueError(f"addresses or networks such as 10.0.0.0/8 ({error})") from None
    return found


def origins(value: str) -> tuple[str, ...]:
    """Origins as browsers send them, or ``*`` for all. They are compared character by character."""
    found = words(value)
    for one in found:
        if one not in ("*", "null") and not is_origin(one):
            raise ValueError(
                "origins as browsers send them, such as https://app.example or http://localhost:3000: scheme and host "
                f"in lower case, no path, no slash at the end, no usual port ({one!r} is none); * allows all"
            )
    return found


def is_origin(value: str) -> bool:
    """Whether a browser could send ``value`` as a page's origin."""
    if not ORIGIN.fullmatch(value) or value != value.lower():
        return False
    try:
        parts = urlsplit(value)
        return bool(parts.hostname) and (parts.port is None or parts.port != USUAL_PORTS.get(parts.scheme))
    except ValueError:
        return False
