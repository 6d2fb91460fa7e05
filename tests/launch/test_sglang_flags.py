"""SGLang's command line."""

from __future__ import annotations

import pytest

from openjev_core.errors import SettingsError
from openjev_core.launch.profiles import PROFILES, Profile, find_profile, model_source
from openjev_core.launch.sglang_flags import parse_flags, sglang_command
from openjev_core.launch.sglang_secrets import hidden_values, redacted
from openjev_core.settings import Settings, load_settings

PROFILE = Profile(
    name="test",
    summary="",
    model="org/model",
    revision="abc",
    public_name="org/public",
    flags={"--mem-fraction-static": "0.8", "--language-model-only": None},
    environment={"OMP_NUM_THREADS": "1"},
)


def command(extra=(), *, port=30000, api_key=None, tokenizer_dir=None, profile=PROFILE, **settings):
    made = Settings(sglang_python="/opt/python", **settings)
    return sglang_command(made, profile, extra, port=port, api_key=api_key, tokenizer_dir=tokenizer_dir)


def flags_of(made):
    return parse_flags(made.argv[3:])


def test_the_defaults():
    made = command(tokenizer_dir="/tokenizer")
    assert made.argv[:3] == ("/opt/python", "-m", "sglang.launch_server")
    assert flags_of(made) == {
        "--model-path": ("org/model",),
        "--revision": ("abc",),
        "--served-model-name": ("org/public",),
        "--tokenizer-path": ("/tokenizer",),
        "--host": ("127.0.0.1",),
        "--port": ("30000",),
        "--context-length": ("32776",),
        "--skip-server-warmup": (),
        "--mem-fraction-static": ("0.8",),
        "--language-model-only": (),
    }
    assert made.environment == {"OMP_NUM_THREADS": "1", "SGLANG_RUST_SERVER": "1"}
    assert made.url == "http://127.0.0.1:30000"


def test_the_python_front_end_is_switched_by_the_environment_and_warms_up_itself():
    made = command(frontend="python")
    assert made.environment["SGLANG_RUST_SERVER"] is None
    assert "--skip-server-warmup" not in flags_of(made)


def test_settings_name_the_model_and_what_clients_see():
    made = flags_of(command(model="/weights", served_model_name=("mine", "more"), max_input_tokens=1000))
    assert made["--model-path"] == ("/weights",)
    assert "--revision" not in made
    assert made["--served-model-name"] == ("mine",)
    assert made["--context-length"] == ("1008",)


@pytest.mark.parametrize("extra", [["--mem-fraction-static", "0.5"], ["--mem-fraction-static=0.5"]])
def test_the_callers_flag_replaces_the_default_of_its_name(extra):
    made = command([*extra, "--tp", "2", "--json-model-override-args", '{"a": -1}'])
    assert made.argv.count("--mem-fraction-static") == 1
    assert flags_of(made)["--mem-fraction-static"] == ("0.5",)
    assert made.argv[-4:] == ("--tp", "2", "--json-model-override-args", '{"a": -1}')


def test_a_port_of_the_callers_is_where_it_is_found():
    assert command(["--port", "4000"]).url == "http://127.0.0.1:4000"
    assert command(["--host", "0.0.0.0"], frontend="python").url == "http://127.0.0.1:30000"


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("--disable-radix-cache", "whole prefix again"),
        ("--disable-radix", "whole prefix again"),
        ("--disable_radix_cache", "whole prefix again"),
        ("--skip-tokenizer-init", "tokenizer"),
        ("--speculative-algorithm", "selected tokens"),
        ("--speculative-num-steps=3", "selected tokens"),
        ("--spec", "selected tokens"),
        ("--max-queued-requests", "never answered"),
        ("--allow-auto-truncate", "without a word"),
        ("--preferred-sampling-params", "change the logprobs"),
        ("--model-path", "OPENJEV_MODEL"),
        ("--model", "OPENJEV_MODEL"),
        ("--tokenizer-path", "OPENJEV_MODEL"),
        ("--revision", "OPENJEV_REVISION"),
        ("--served-model-name", "OPENJEV_SERVED_MODEL_NAME"),
        ("--config", "process list"),
        ("--language-only", "--language-model-only"),
        ("--hos", "write --host in full"),
        ("--api", "write --api-key in full"),
    ],
)
def test_flags_that_are_refused_by_name(flag, reason):
    with pytest.raises(SettingsError, match=reason) as caught:
        command([flag, "1"])
    assert str(caught.value).startswith(flag.partition("=")[0].replace("_", "-"))


def test_a_bounded_queue_is_fine_on_the_python_front_end():
    assert flags_of(command(["--max-queued-requests", "100"], frontend="python"))["--max-queued-requests"] == ("100",)


def test_flags_that_only_look_like_refused_ones():
    made = command(["--language-model-only", "--disable-cuda-graph", "--model-impl", "auto"])
    assert made.argv[-4:] == ("--language-model-only", "--disable-cuda-graph", "--model-impl", "auto")


@pytest.mark.parametrize("extra", [["0.5", "--tp", "2"], ["--tp", "2", "--tp", "4"]])
def test_words_that_are_no_flags(extra):
    with pytest.raises(SettingsError):
        command(extra)


def test_the_rust_front_end_listens_on_loopback_only():
    with pytest.raises(SettingsError, match="loopback"):
        command(["--host", "0.0.0.0"])
    assert command(["--host", "::1"]).url == "http://[::1]:30000"


def test_keys_leave_the_command_line():
    made = command(["--admin-api-key", "admin"], frontend="python", api_key="key")
    assert made.secrets == {"--api-key": "key", "--admin-api-key": "admin"}
    assert not {"key", "admin", "--api-key"} & set(made.argv)
    assert command(api_key="key").secrets == {}


def test_every_profile_makes_a_command_and_its_preset_are_settings():
    for name in PROFILES:
        profile = find_profile(name)
        settings = load_settings({}, preset=profile.preset).settings
        made = sglang_command(settings, profile, [], port=1, api_key=None, tokenizer_dir=None)
        assert flags_of(made)["--context-length"] == (str(settings.max_input_tokens + 8),)


def test_the_production_profile():
    profile = PROFILES["qwen36"]
    assert (profile.model, profile.revision) == (
        "nvidia/Qwen3.6-35B-A3B-NVFP4",
        "1355db6a052410cfd62085d94b58866fd0f2c3c5",
    )
    assert (profile.public_name, profile.image) == ("Qwen/Qwen3.6-35B-A3B", "lmsysorg/sglang:v0.5.19-cu130")
    assert profile.flags["--mamba-radix-cache-strategy"] == "extra_buffer"
    assert profile.flags["--cuda-graph-backend-prefill"] == "breakable"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("org/model", "abc")),
        ({"revision": "def"}, ("org/model", "def")),
        ({"model": "org/model"}, ("org/model", "abc")),
        ({"model": "other/model"}, ("other/model", None)),
        ({"model": "other/model", "revision": "def"}, ("other/model", "def")),
    ],
)
def test_a_profiles_revision_goes_with_its_model_alone(settings, expected):
    assert model_source(Settings(**settings), PROFILE) == expected


def test_the_longest_secrets_are_hidden_first_and_words_are_left_alone():
    hidden = hidden_values(["secret", "secret-and-more", "a", ""], {"HF_TOKEN": "hub-secret", "HOME": "/home/me"})
    assert redacted("a secret-and-more, secret, hub-secret, a", hidden) == "a [hidden], [hidden], [hidden], a"
    assert redacted("/home/me", hidden) == "/home/me"
