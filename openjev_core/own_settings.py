"""Settings that a plugin brings for its engine or question type: read by the same rules as openjev's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from openjev_core.settings import parse_value, variable


class Configured(Protocol):
    """An engine or a question type.

    Attributes:
        name: Its name.
        settings: The attrs class of its own settings.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see above

    @property
    def settings(self) -> type: ...  # noqa: D102 - see above


def own_fields(configured: Configured) -> Mapping[str, attrs.Attribute[Any]]:
    """The fields of its own settings, by their names among all settings: the field ``x`` of ``e`` is ``e_x``."""
    prefix = re.sub(r"[.-]", "_", configured.name)
    return {f"{prefix}_{one.name}": one for one in attrs.fields(configured.settings)}


def told(own: Any) -> dict[str, Any]:
    """Own settings for anyone to see: those that are no secrets."""
    return attrs.asdict(own, filter=lambda field, _: not field.metadata["secret"])


def own_settings(configured: Configured, texts: Mapping[str, str]) -> Any:
    """Its own settings, an instance of their class.

    Args:
        configured: The engine or question type.
        texts: The values of all such settings that were given, by name.

    Raises:
        SettingsError: A value is not accepted.
    """
    fields = own_fields(configured).items()
    given = {one.name: parse_value(one, texts[name], variable(name)) for name, one in fields if name in texts}
    return configured.settings(**given)
