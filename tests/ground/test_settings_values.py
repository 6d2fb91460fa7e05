"""Every setting is read from its variable, refused where it makes no sense, and told by its origin."""

from __future__ import annotations

import math

import attrs
import pytest

from openjev_core.errors import SettingsError
from openjev_core.settings import Settings, is_loopback, load_settings, setting_fields, variable

ACCEPTED = {
    "model": [("Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B")],
    "revision": [("main", "main")],
    "served_model_name": [("a/b", ("a/b",)), ("a/b,gpt-6-luna", ("a/b", "gpt-6-luna"))],
    "connect": [(url, url) for url in ("http://127.0.0.1:30000", "https://[::1]", "http://router/sglang/")],
    "frontend": [("rust", "rust"), ("python", "python")],
    "fanout": [("batch", "batch"), ("calls", "calls")],
    "threads": [("1", 1)],
    "host": [("::1", "::1")],
    "port": [("0", 0), ("65535", 65535)],
    "workers": [("64", 64)],
    "trusted_proxies": [("10.0.0.0/8, ::1", ("10.0.0.0/8", "::1"))],
    "max_questions": [("1", 1)],
    "max_answers": [("2", 2), ("255", 255)],
    "max_body_bytes": [("1024", 1024)],
    "max_input_tokens": [("64", 64)],
    "max_total_input_tokens": [("64", 64)],
    "max_concurrent_requests": [("1", 1)],
    "max_concurrent_branches": [("1", 1)],
    "request_timeout": [("0.5", 0.5), ("120", 120.0)],
    "temperature": [("0.001", 0.001), ("1000", 1000.0)],
    "confidence": [("entropy", "entropy"), ("jev", "jev")],
    "orders": [("1", 1), ("64", 64), ("full", "full")],
    "prior": [("off", "off"), ("contentless", "contentless")],
    "calibration": [("c.json", "c.json")],
    "api_key": [("one", ("one",)), ("one, two,", ("one", "two"))],
    "backend_api_key": [("k", "k"), ("a b!", "a b!")],
    "disable_plugins": [("openjev,other", ("openjev", "other"))],
    "log_format": [("json", "json")],
    "tracing": [("1", True), ("FALSE", False)],
    "cors_origins": [
        ("https://a.example", ("https://a.example",)),
        ("*", ("*",)),
        (
            "http://localhost:3000,chrome-extension://abc,null",
            ("http://localhost:3000", "chrome-extension://abc", "null"),
        ),
    ],
    "debug_prompts": [("on", True), ("no", False)],
}

NO_HOSTS = ["http://a..b", "http://.", f"http://{'a' * 64}.b", "http://1.2.3.999", "http://\u2603.com", "http://x/\x7f"]

REFUSED = {
    "model": [" "],
    "frontend": ["go", "Rust"],
    "fanout": ["all"],
    "threads": ["0", "x", "1.5"],
    "connect": [
        "127.0.0.1:30000",
        "sglang",
        "ftp://x",
        "http://",
        "http://x:port",
        "http://x?y=1",
        "http://x#y",
        "http://x y",
        "unix:///run/llama",
        *NO_HOSTS,
    ],
    "trusted_proxies": ["localhost", "10.0.0.0/99", "10.0.0.1/8", "::1,*"],
    "cors_origins": [
        "a.example",
        "https://a.example/",
        "https://a.example/x",
        "https://A.example",
        "https://a.example:443",
        "https://*.example/",
        "http://u@a",
        "https://a:b",
        "http://a,b",
    ],
    "host": [" "],
    "port": ["-1", "65536", "http", "8_000", "\u0668\u0660", "8000.0", "+1", " 80", "9" * 5000],
    "workers": ["0", "65"],
    "max_questions": ["0"],
    "max_answers": ["1", "1001"],
    "max_body_bytes": ["1023"],
    "max_input_tokens": ["63"],
    "max_total_input_tokens": ["0"],
    "max_concurrent_requests": ["0"],
    "max_concurrent_branches": ["-5"],
    "request_timeout": ["0", "-1", "inf", "nan", "soon", "1e-320", "1_0", "\uff11", ".5", "9" * 400],
    "startup_timeout": ["0"],
    "temperature": ["0", "-1", "nan", "inf", ""],
    "confidence": ["gini"],
    "orders": ["0", "-1", "some", "1.5"],
    "prior": ["on"],
    "api_key": [",", " , "],
    "backend_api_key": ["k\n", "k\r\nHost: other", " k", "k\x00", "\u00e9"],
    "disable_plugins": [","],
    "log_format": ["xml"],
    "tracing": ["maybe"],
    "debug_prompts": ["2"],
}


@pytest.mark.parametrize(("name", "text", "value"), [(n, t, v) for n, cases in ACCEPTED.items() for t, v in cases])
def test_values_are_read(name, text, value):
    loaded = load_settings({variable(name): text})
    assert value == getattr(loaded.settings, name)
    assert type(value) is type(getattr(loaded.settings, name))
    assert "environment" == loaded.origins[name]


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, cases in REFUSED.items() for t in cases if t])
def test_values_are_refused_by_name(name, text):
    with pytest.raises(SettingsError) as refused:
        load_settings({variable(name): text})
    message = str(refused.value)
    assert message.startswith(f"{variable(name)}: expected ")
    secret = attrs.fields_dict(Settings)[name].metadata["secret"]
    assert ("found the value given" if secret else f"found {text!r}") in message


@pytest.mark.parametrize("name", [field.name for field in setting_fields()])
def test_defaults_are_accepted_and_told_as_such(name):
    assert "default" == load_settings({}).origins[name]
    default = getattr(Settings(), name)
    if default not in (None, ()):
        text = ",".join(default) if isinstance(default, tuple) else str(default)
        given = "true" if default is True else "false" if default is False else text
        assert default == getattr(load_settings({variable(name): given}).settings, name)


def test_a_flag_wins_over_the_environment_and_that_over_a_preset():
    environ = {"OPENJEV_PORT": "1", "OPENJEV_MAX_ANSWERS": "10"}
    loaded = load_settings(environ, flags={"port": 2, "host": None}, preset={"port": 3, "max_answers": 4, "orders": 5})
    assert (2, 10, 5) == (loaded.settings.port, loaded.settings.max_answers, loaded.settings.orders)
    assert ["flag", "environment", "preset", "default"] == [
        loaded.origins[name] for name in ("port", "max_answers", "orders", "host")
    ]


def test_a_wrong_flag_is_named_as_it_was_given():
    with pytest.raises(SettingsError, match=r"--max-answers: expected an integer from 2 to 1000, found 1"):
        load_settings({"OPENJEV_MAX_ANSWERS": "7"}, flags={"max_answers": 1})


def test_an_empty_variable_counts_as_unset():
    assert "default" == load_settings({"OPENJEV_TEMPERATURE": ""}).origins["temperature"]


@pytest.mark.parametrize("flags", [("a", "b"), ["a", "b"]])
def test_lists_may_be_given_as_lists(flags):
    assert ("a", "b") == load_settings({}, flags={"disable_plugins": flags}).settings.disable_plugins


def test_a_variable_in_the_wrong_case_is_told_its_name():
    (warning,) = load_settings({"OPENJEV_model": "x"}).warnings
    assert warning.endswith("did you mean OPENJEV_MODEL?")


def test_unknown_variables_are_warned_about():
    environ = {
        "OPENJEV_MAX_ANSWRES": "1",
        "OPENJEV_XYZZY": "1",
        "OPENJEV_URLS": "x",
        "OPENJEV_URL": "x",
        "OPENJEV_TEST_SGLANG": "x",
        "OPENJEVY": "x",
        "PATH": "x",
    }
    first, second, third = load_settings(environ).warnings
    assert "OPENJEV_MAX_ANSWRES is not a setting and does nothing; did you mean OPENJEV_MAX_ANSWERS?" == first
    assert second.startswith("OPENJEV_URLS is not a setting")
    assert third.startswith("OPENJEV_XYZZY is not a setting")


def test_secrets_are_never_echoed():
    with pytest.raises(SettingsError) as refused:
        load_settings({}, flags={"backend_api_key": " \t"})
    assert "\t" not in str(refused.value)
    assert "the value given" in str(refused.value)


@pytest.mark.parametrize("url", ["http://user:hush@x", "https://hush@x:1/", "http://:hush@x"])
def test_a_password_in_an_address_is_neither_taken_nor_shown(url):
    with pytest.raises(SettingsError) as refused:
        load_settings({"OPENJEV_CONNECT": url})
    assert "without a user or password: OPENJEV_BACKEND_API_KEY takes the server's key" in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"temperature": 0}, "temperature: expected a finite number above 0, such as 0.5 or 120, found 0"),
        ({"temperature": math.nan}, "temperature: expected a finite number"),
        ({"max_answers": 1}, "max_answers: expected an integer from 2"),
        ({"port": "8000"}, "port: expected a value of type int, found one of type str"),
        ({"port": 8000.0}, "port: expected an integer from 0 to 65535, found 8000.0"),
        ({"orders": True}, "orders: expected an integer from 1 up, or full, found True"),
        ({"tracing": 0}, "tracing: expected a value of type bool, found one of type int"),
        ({"workers": None}, "workers: expected an integer"),
        ({"api_key": []}, "api_key: expected a value of type tuple, found one of type list"),
        ({"cors_origins": ("x",)}, "cors_origins: expected origins as browsers send them"),
        ({"orders": "some"}, "orders: expected an integer from 1 up, or full"),
        ({"api_key": "secret-key"}, "api_key: expected a value of type tuple, found one of type str"),
        ({"request_timeout": -1.0}, "request_timeout: expected"),
    ],
)
def test_settings_made_in_code_are_checked_too(values, said):
    with pytest.raises(SettingsError, match=said) as refused:
        Settings(**values)
    assert "secret-key" not in str(refused.value)


def test_settings_made_in_code_take_their_own_types():
    settings = Settings(
        port=0, orders="full", api_key=("a", "b"), debug_prompts=True, request_timeout=5, temperature=1e-7
    )
    assert settings == attrs.evolve(settings)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True), ("LOCALHOST", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("example.org", False), ("localhost.example", False)],
)  # fmt: skip
def test_loopback(host, expected):
    assert expected == is_loopback(host)
