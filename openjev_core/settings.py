"""Every setting, as one record: read from the environment, overridden by flags, validated once.

A field's variable is ``OPENJEV_`` and its name in capitals. Adding a setting is adding a field.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from decimal import Decimal
from ipaddress import ip_address
from typing import Any, Literal, cast

import attrs
from attrs import frozen

from openjev_core.distribution import ConfidenceFormula
from openjev_core.errors import SettingsError
from openjev_core.orders import Orders
from openjev_core.setting_values import (
    HiddenError,
    Parser,
    bearer_key,
    flag,
    integer,
    networks,
    not_negative,
    one_of,
    order_count,
    origins,
    positive,
    prompt_words,
    server_url,
    text,
    words,
)

PREFIX = "OPENJEV_"
CLIENT = "OPENJEV_URL"
"""A variable with the prefix that is no setting of a server: it belongs to clients."""
TESTS = "OPENJEV_TEST_"
"""The beginning of the variables that belong to the tests."""

Origin = Literal["default", "environment", "flag", "preset"]


def setting(default: Any, parse: Parser, meaning: str, *, secret: bool = False) -> Any:
    """An attrs field with its parser and its description."""
    metadata = {"parse": parse, "meaning": meaning, "secret": secret}
    return attrs.field(default=default, validator=_check_value, metadata=metadata)


def _check_value(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    """Check a value that code gives by the rules for values that are read from text."""
    if value is None and field.default is None:
        return
    parsed = parse_value(field, value, f"Settings.{field.name}")
    # 8000.0 is 8000 and True is 1 to Python, and neither is a port.
    if parsed != value or not (type(parsed) is type(value) or (type(parsed), type(value)) == (float, int)):
        raise SettingsError(
            f"Settings.{field.name}: expected a value of type {type(parsed).__name__}, found one of type "
            f"{type(value).__name__}"
        )


@frozen(kw_only=True)
class Settings:
    """The settings of one server or engine. Its fields are the variables that `openjev settings` prints.

    Raises:
        SettingsError: A value is not accepted. Names the field, the value and what is accepted.
    """

    model: str | None = setting(
        None, text, "weights and tokenizer source: a path or a Hugging Face name; the engine's own when unset"
    )
    revision: str | None = setting(None, text, "revision of a Hugging Face model; the profile's own when unset")
    served_model_name: tuple[str, ...] = setting(
        (),
        words,
        "public model ids, comma-separated; answers name the first, which a launched SGLang gets too; the profile's or "
        "the server's own when unset",
    )
    engine: str | None = setting(
        None,
        text,
        "engine to read with, by name; when unset, the one that recognises the server at connect, or llama.cpp",
    )
    connect: str | None = setting(
        None,
        server_url,
        "URL of a running server to read with: an SGLang, a vLLM, a router before several, a llama-server, or a "
        "service that decides by itself",
    )
    sglang_python: str | None = setting(None, text, "Python that has SGLang: start it as a child and serve from it")
    profile: str = setting("qwen36", text, "SGLang launch profile")
    frontend: Literal["rust", "python"] = setting(
        "rust", one_of("rust", "python"), "SGLang's HTTP front end, rust or python"
    )
    fanout: Literal["batch", "calls"] = setting(
        "batch", one_of("batch", "calls"), "batch: one SGLang or vLLM call for all branches; calls: one each"
    )
    skip_checks: bool = setting(False, flag, "serve from a connected SGLang or vLLM without checking it first")
    threads: int | None = setting(None, integer(1), "threads of the embedded engine; the physical cores when unset")
    host: str = setting("127.0.0.1", text, "address to listen on")
    port: int = setting(8000, integer(0, 65535), "port to listen on; 0 takes a free one")
    certfile: str | None = setting(None, text, "TLS certificate chain in PEM; with it the server speaks HTTPS")
    keyfile: str | None = setting(None, text, "the certificate's private key in PEM")
    workers: int = setting(1, integer(1, 64), "processes that serve, each with its share of the concurrency limits")
    trusted_proxies: tuple[str, ...] = setting(
        (), networks, "addresses or networks whose X-Forwarded-For is believed, comma-separated"
    )
    max_questions: int = setting(64, integer(1), "questions in a request")
    max_answers: int = setting(64, integer(2, 1000), "options in a readout")
    max_body_bytes: int = setting(2 * 1024 * 1024, integer(1024), "request body, after decompression")
    max_input_tokens: int = setting(32_768, integer(64), "tokens of a branch, its output token included")
    max_total_input_tokens: int = setting(262_144, integer(64), "tokens that a request submits, warm-up and branches")
    max_concurrent_requests: int = setting(16, integer(1), "evaluations at once; more wait, or get a 529")
    max_concurrent_branches: int = setting(64, integer(1), "backend calls at once")
    queue_timeout: float = setting(
        10.0,
        not_negative,
        "seconds in which an evaluation that has to wait must be answered, by what recent ones took, or it gets a 529; "
        "0: none waits",
    )
    request_timeout: float = setting(120.0, positive, "seconds for an evaluation, then a 504")
    body_timeout: float = setting(20.0, positive, "seconds for a request's body to arrive, then a 408")
    startup_timeout: float = setting(1200.0, positive, "seconds for the backend to become ready")
    keep_alive: float = setting(5.0, positive, "seconds that a connection may idle between requests")
    grace_period: float = setting(30.0, positive, "seconds that a stop leaves running evaluations")
    temperature: float = setting(1.0, positive, "divides the label logprobs before normalization")
    confidence: ConfidenceFormula = setting("entropy", one_of("entropy", "jev"), "confidence formula, entropy or jev")
    orders: Orders = setting(
        1,
        order_count,
        "orders of the options that each readout is read in and averaged over: a number, or full",
    )
    prompt_words: tuple[str, ...] = setting(
        ("Question:", "Options:", "Answer:"),
        prompt_words,
        "the prompt's fixed words in the language of the questions, comma-separated, for models that take prompts",
    )
    prior: Literal["off", "contentless"] = setting(
        "off", one_of("off", "contentless"), "contentless divides out what the model answers to an empty state"
    )
    calibration: str | None = setting(None, text, "calibration file to apply")
    api_key: tuple[str, ...] = setting((), words, "Bearer keys that are accepted, comma-separated", secret=True)
    backend_api_key: str | None = setting(
        None, bearer_key, "Bearer key for the server that --connect names", secret=True
    )
    plugins: tuple[str, ...] = setting(
        (), words, "Python files that are plugins, besides those installed, comma-separated"
    )
    disable_plugins: tuple[str, ...] = setting((), words, "distributions whose plugins are not loaded, comma-separated")
    log_format: Literal["text", "json"] = setting("text", one_of("text", "json"), "log lines, text or json")
    tracing: bool = setting(False, flag, "send OpenTelemetry traces; needs openjev[otel], and OTEL_* say where")
    cors_origins: tuple[str, ...] = setting((), origins, "origins that browsers may call from, comma-separated")
    mcp: bool = setting(False, flag, "offer tools to agents at /mcp, by the Model Context Protocol; needs openjev[mcp]")
    debug_prompts: bool | None = setting(None, flag, "serve POST /v1/prompts; when unset, on a loopback address only")
    own: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    """Own settings of engines and question types as text, such as ``{"similarity_model": "..."}``: they are read when
    an engine is opened."""

    @property
    def public_name(self) -> str | None:
        """The model id that answers name, where the settings say one."""
        return next(iter(self.served_model_name), None)


@frozen
class LoadedSettings:
    """Settings, and where each value came from.

    Attributes:
        settings: The values.
        origins: Field name to origin.
        warnings: Lines for a person: unknown ``OPENJEV_*`` variables.
    """

    settings: Settings
    origins: Mapping[str, Origin]
    warnings: tuple[str, ...] = ()


def setting_fields() -> tuple[attrs.Attribute[Any], ...]:
    """The fields that are settings."""
    return tuple(field for field in attrs.fields(Settings) if "parse" in field.metadata)


def variable(name: str) -> str:
    """The environment variable of the field ``name``."""
    return PREFIX + name.upper()


def load_settings(
    environ: Mapping[str, str],
    *,
    flags: Mapping[str, Any] | None = None,
    preset: Mapping[str, Any] | None = None,
    own: Collection[str] = (),
) -> LoadedSettings:
    """Read the settings: a flag wins over the environment, the environment over a preset, a preset over the default.

    Args:
        environ: ``os.environ`` or a stand-in. An empty variable counts as unset.
        flags: Field name to value, text or already of its type; ``None`` counts as not given.
        preset: Field name to value, of its type.
        own: Names of the own settings of engines and question types, whose values stay text.

    Raises:
        SettingsError: A value is not accepted. Names the variable or flag, the value and what is accepted.
    """
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    for field in setting_fields():
        if field.name in given:
            raw, origin, shown = given[field.name], "flag", "--" + field.name.replace("_", "-")
        elif environ.get(variable(field.name), "") != "":
            raw, origin, shown = environ[variable(field.name)], "environment", variable(field.name)
        elif preset and field.name in preset:
            raw, origin, shown = preset[field.name], "preset", "preset"
        else:
            origins[field.name] = "default"
            continue
        values[field.name] = parse_value(field, raw, shown)
        origins[field.name] = cast("Origin", origin)
    texts: dict[str, str] = {}
    for name in own:
        if name in given:
            texts[name], origins[name] = str(given[name]), "flag"
        elif environ.get(variable(name), "") != "":
            texts[name], origins[name] = environ[variable(name)], "environment"
        else:
            origins[name] = "default"
    return LoadedSettings(Settings(**values, own=texts), origins, unknown_variables(environ, own))


def parse_value(field: attrs.Attribute[Any], raw: Any, shown: str) -> Any:
    """``raw`` as the field's type, or :class:`SettingsError` in terms of ``shown``, the name that the user gave."""
    if isinstance(raw, (tuple, list)):
        raw = ",".join(raw)
    # Python writes floats with an exponent where that is shorter.
    written = f"{Decimal(repr(raw)):f}" if isinstance(raw, float) else str(raw)
    try:
        return field.metadata["parse"](written)
    except ValueError as error:
        hidden = field.metadata["secret"] or isinstance(error, HiddenError)
        found = "the value given" if hidden else repr(raw)
        raise SettingsError(f"{shown}: expected {error}, found {found}") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on ``host``."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def unknown_variables(environ: Mapping[str, str], own: Collection[str]) -> tuple[str, ...]:
    """A warning for each variable that looks like a setting but is none."""
    known = [variable(name) for name in (*(field.name for field in setting_fields()), *own)]
    warnings = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name.startswith(TESTS) or name in known or name == CLIENT:
            continue
        close = difflib.get_close_matches(name.upper(), known, n=1)
        hint = f"; did you mean {close[0]}?" if close else "; `openjev settings` lists them"
        warnings.append(f"{name} is not a setting and does nothing{hint}")
    return tuple(warnings)
