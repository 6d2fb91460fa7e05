"""SGLang's command line: the profile's flags, the caller's flags over them, and the flags that are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from openjev_core.errors import SettingsError
from openjev_core.launch.profiles import Profile, model_source
from openjev_core.settings import Settings, is_loopback

CONTEXT_SLACK = 8
"""SGLang's longest prompt is its context length less 7; the branch limit counts the output token too."""

OWN_SETTING = {
    "--model-path": "set OPENJEV_MODEL: the tokenizer has to be the model's own",
    "--model": "set OPENJEV_MODEL: the tokenizer has to be the model's own",
    "--tokenizer-path": "set OPENJEV_MODEL: prompts are tokenized on this side, with the tokenizer found there",
    "--revision": "set OPENJEV_REVISION: the tokenizer has to be of the same revision",
    "--served-model-name": "set OPENJEV_SERVED_MODEL_NAME: the API reports it too",
    "--config": "give the flags themselves: the config file is used to keep keys out of the process list",
}
BREAKS_READING = {
    "--disable-radix-cache": "every branch would compute the whole prefix again",
    "--prefill-only-disable-kv-cache": "every branch would compute the whole prefix again",
    "--skip-tokenizer-init": "the server's tokenizer could not be compared with the one that makes the prompts",
    "--speculative-": "draft and verify steps do not return the logprobs of selected tokens",
    "--allow-auto-truncate": "a prompt that is too long would be cut without a word",
    "--preferred-sampling-params": "sampling parameters that are not asked for change the logprobs",
    "--is-embedding": "an embedding server generates nothing",
    "--encoder-only": "an encoder server generates nothing",
    "--language-only": "it waits for a separate encoder server; --language-model-only leaves out the vision tower",
    "--disaggregation-mode": "half a server answers no prompt",
    "--grpc-mode": "answers are read over HTTP",
    "--smg-grpc-mode": "answers are read over HTTP",
    "--use-ray": "workers on a cluster outlive a stop",
}
BREAKS_ON_RUST = {
    "--max-queued-requests": "on the Rust front end a rejected call is never answered; OPENJEV_FRONTEND=python has it",
}
SECRET_FLAGS = ("--api-key", "--admin-api-key", "--ssl-keyfile-password")
INTERPRETED = ("--host", "--port", "--context-length", *SECRET_FLAGS)
"""Flags whose values this module uses before it passes them on."""

Flags = dict[str, tuple[str, ...]]
"""From a flag to its values; a switch has none."""


@frozen
class SGLangCommand:
    """What to start.

    Attributes:
        argv: The command, without secrets.
        secrets: From flag to value, for a config file: these values must stay out of the process list.
        environment: Changes to the caller's environment. ``None`` removes a variable.
        url: The address at which SGLang will listen.
    """

    argv: tuple[str, ...]
    secrets: Mapping[str, str]
    environment: Mapping[str, str | None]
    url: str


def sglang_command(
    settings: Settings,
    profile: Profile,
    extra: Sequence[str],
    *,
    port: int,
    api_key: str | None,
    tokenizer_dir: str | None,
) -> SGLangCommand:
    """The command for ``settings.sglang_python``.

    Args:
        settings: Model, names, limits and front end.
        profile: Defaults.
        extra: The caller's flags; one of the same name replaces a default.
        port: To listen on, unless the caller says otherwise.
        api_key: The key that SGLang is to ask for. The Rust front end cannot, so it stays on loopback.
        tokenizer_dir: A local directory with the tokenizer; the Rust front end reads no other.

    Raises:
        SettingsError: A flag that would break the reading of logprobs, or that has a setting of its own.
    """
    given = parse_flags(extra)
    refuse(given, settings.frontend)
    model, revision = model_source(settings, profile)
    flags: Flags = {
        "--model-path": (model,),
        "--served-model-name": (settings.public_name or profile.public_name,),
        "--host": ("127.0.0.1",),
        "--port": (str(port),),
        "--context-length": (str(settings.max_input_tokens + CONTEXT_SLACK),),
    }
    if settings.frontend == "rust":
        # It answers before SGLang's own warm-up is over. That is a plain call, and together with a labelled call in
        # one batch it kills the scheduler. The Python front end's health page waits for the warm-up.
        flags["--skip-server-warmup"] = ()
    if revision is not None:
        flags["--revision"] = (revision,)
    if tokenizer_dir is not None:
        flags["--tokenizer-path"] = (tokenizer_dir,)
    flags |= {name: () if value is None else (value,) for name, value in profile.flags.items()}
    if api_key is not None and settings.frontend == "python":
        flags["--api-key"] = (api_key,)
    for name, values in given.items():
        # SGLang's parser takes the last of several, so a flag under another name wins over a default too.
        flags.pop(name, None)
        flags[name] = values
    secrets = {name: " ".join(flags.pop(name)) for name in SECRET_FLAGS if name in flags}
    host = "".join(flags["--host"])
    if settings.frontend == "rust" and not is_loopback(host):
        raise SettingsError(f"--host {host}: the Rust front end asks for no key, so it listens on loopback only")
    return SGLangCommand(
        argv=(
            str(settings.sglang_python),
            *("-m", "sglang.launch_server"),
            *(word for name, values in flags.items() for word in (name, *values)),
        ),
        secrets=secrets,
        environment={**profile.environment, "SGLANG_RUST_SERVER": "1" if settings.frontend == "rust" else None},
        url=f"http://{reachable_host(host)}:{''.join(flags['--port'])}",
    )


def parse_flags(words: Sequence[str]) -> Flags:
    """Flags and their values, from ``--flag value``, ``--flag=value`` and ``--flag``.

    Raises:
        SettingsError: A value without a flag, or a flag given twice.
    """
    flags: Flags = {}
    name = None
    for word in words:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            name = name.replace("_", "-")
            if name in flags:
                raise SettingsError(f"SGLang's flag {name} is given twice")
            flags[name] = (value,) if equals else ()
        elif name is None:
            raise SettingsError(f"expected SGLang's flags after --, found {word!r}, which is the value of none")
        else:
            flags[name] = (*flags[name], word)
    return flags


def refuse(given: Flags, frontend: str) -> None:
    """Raise :class:`~openjev_core.errors.SettingsError` for the first flag that cannot be passed on.

    SGLang accepts every beginning of a flag that is unambiguous, so a beginning of a refused one is refused too.
    """
    reasons = OWN_SETTING | BREAKS_READING | (BREAKS_ON_RUST if frontend == "rust" else {})
    for name in given:
        for refused, reason in reasons.items():
            if refused.startswith(name) or (refused.endswith("-") and name.startswith(refused)):
                raise SettingsError(f"{name} cannot be passed to SGLang: {reason}")
        for whole in INTERPRETED:
            if whole.startswith(name) and whole != name:
                raise SettingsError(f"{name}: write {whole} in full")


def reachable_host(host: str) -> str:
    """The host to connect to for a server that listens on ``host``."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared with, not bound to
        return "127.0.0.1"
    return f"[{host.strip('[]')}]" if ":" in host else host
