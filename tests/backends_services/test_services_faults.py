"""What a service answers that is no answer: a 502 that names it. What it refuses is passed on; that it is full, too."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import httpx
import pytest
from live_server import live_server
from lying_server import lying_server
from toy_model import ToyBackend
from until import until

from openjev_core import Settings, open_engine
from openjev_core.address import Address, Page
from openjev_core.api.app import create_app
from openjev_core.backends.services.opening import check_key, limits_of, model_of
from openjev_core.backends.services.reader import ServiceLimits
from openjev_core.engine.discovery import recognised
from openjev_core.errors import AtCapacity, BackendError, BackendUnavailable, SettingsError, StartupError
from openjev_core.plugins.registry import load_registry

pytestmark = pytest.mark.anyio

TRUTH: list[str] = []
QUESTIONS = {
    "late": {"type": "noul", "instructions": "Is it late?"},
    "team": {"type": "choice", "criteria": {"billing": "Payments", "sales": None, "none": None}},
    "mood": {"type": "score", "criteria": ["calm", "angry"]},
}


@pytest.fixture(scope="module", autouse=True)
def truthful():
    """One server that tells the truth, for all lies."""
    with live_server() as server:
        TRUTH.append(server.url)
        yield
    TRUTH.clear()


@asynccontextmanager
async def lied_to(lie, engine="systemone", **settings):
    """An engine on a service that tells the truth at the start, and what the lie makes of it from then on."""
    started = asyncio.Event()
    with lying_server(TRUTH[0], lambda heard: lie(heard) if started.is_set() else None) as url:
        async with open_engine(Settings(connect=url, engine=engine, **settings)) as outer:
            started.set()
            yield outer


async def refusal_of(lie, kind=BackendError, engine="systemone", **settings):
    """The error that an evaluation ends with."""
    async with lied_to(lie, engine, **settings) as outer:
        with pytest.raises(kind) as refused:
            await outer.evaluate(state="It is midnight.", questions=QUESTIONS)
    return refused.value


def changed(change):
    """A lie that changes the reply's JSON."""

    def lie(heard):
        found = heard.json
        change(found)
        heard.json = found

    return lie


def replied(status=200, body=b"", **headers):
    """A lie that is another reply."""

    def lie(heard):
        heard.status, heard.body = status, body if isinstance(body, bytes) else json.dumps(body).encode()
        heard.headers.update({name.replace("_", "-"): value for name, value in headers.items()})

    return lie


def answers(change):
    return changed(lambda reply: change(reply["answers"]))


def probabilities(**values):
    return answers(lambda found: found["q1"]["probabilities"].update(values))


BAD = {
    "a redirect": (
        replied(302, location="http://elsewhere/"),
        "answered 302, a redirect to 'http://elsewhere/'. It is not",
    ),
    "a proxy's page": (replied(200, b"<html>Welcome</html>", content_type="text/html"), "answer is not JSON"),
    "an array": (replied(200, []), "not what /v1/systemone returns: Expected `object`, got `array`"),
    "nothing": (replied(200, b""), "answer is not JSON"),
    "no answers": (changed(lambda reply: reply.pop("answers")), "answered without 'answers'"),
    "no usage": (changed(lambda reply: reply.pop("usage")), "answered without 'usage'"),
    "a usage below zero": (changed(lambda reply: reply["usage"].update(input_tokens=-1)), "a count of -1 input_tokens"),
    "a usage in words": (changed(lambda reply: reply["usage"].update(output_tokens="1")), "without 'output_tokens'"),
    "no model": (changed(lambda reply: reply.update(model=None)), "answered without 'model'"),
    "another question": (
        answers(lambda found: found.update({"other": found.pop("q1")})),
        "was asked q0, q1, q2 and answered 'q0', 'q2', 'other'",
    ),
    "an answer too few": (answers(lambda found: found.pop("q2")), "was asked q0, q1, q2 and answered 'q0', 'q1'"),
    "an answer too many": (answers(lambda found: found.update(x={})), "and answered 'q0', 'q1', 'q2', 'x'"),
    "another type": (
        answers(lambda found: found["q0"].update(type="score")),
        "was asked a noul and answered a 'score'",
    ),
    "no object": (answers(lambda found: found.update(q0=3)), "answered without 'type'"),
    "no probability": (answers(lambda found: found["q0"].pop("noul")), "answered without 'noul'"),
    "a probability in words": (answers(lambda found: found["q0"].update(noul="0.5")), "answered without 'noul'"),
    "a probability that is true": (answers(lambda found: found["q0"].update(noul=True)), "answered without 'noul'"),
    "a noul above 1": (answers(lambda found: found["q0"].update(noul=1.5)), "'1.5' where a probability belongs"),
    "a noul that is no number": (
        answers(lambda found: found["q0"].update(noul=float("nan"))),
        "'nan' where a probability belongs",
    ),
    "ten options": (
        answers(lambda found: found["q1"].update(probabilities={str(n): 0.1 for n in range(10)})),
        "was asked for 3 options, 'billing', 'sales', 'none', and answered 10: '0', '1'",
    ),
    "another option": (
        answers(lambda found: found["q1"].update(probabilities={"billing": 0.5, "sales": 0.25, "other": 0.25})),
        "and answered 3: 'billing', 'sales', 'other'",
    ),
    "levels by another name": (
        answers(lambda found: found["q2"].update(probabilities={"1": 0.5, "2": 0.5})),
        "was asked for 2 options, '0', '1', and answered 2: '1', '2'",
    ),
    "a sum of 2": (probabilities(billing=1.0, sales=0.5, none=0.5), "add up to 2, not to 1"),
    "a sum of 0": (probabilities(billing=0, sales=0, none=0), "add up to 0, not to 1"),
    "NaN": (probabilities(billing=float("nan")), "'nan' where a probability belongs"),
    "infinity": (probabilities(billing=float("inf")), "'inf' where a probability belongs"),
    "below zero": (probabilities(billing=-0.25), "'-0.25' where a probability belongs"),
    "a null": (probabilities(billing=None), "'None' where a probability belongs"),
    "a mass of 2": (answers(lambda found: found["q1"].update(x_label_mass=2)), "'2' as x_label_mass"),
    "a refusal of ours": (
        replied(422, {"detail": [{"loc": ["body", "state"], "msg": "too long for me"}]}),
        "answered 422: [{'loc': ['body', 'state'], 'msg': 'too long for me'}]",
    ),
    "no such model": (replied(404, {"error": {"message": "no model toy"}}), "answered 404: no model toy"),
    "a refused key": (
        replied(401, {"error": {"message": "who are you?"}}),
        "answered 401: who are you?. OPENJEV_BACKEND",
    ),
    "its own fault": (replied(500, b"Internal Server Error"), "answered 500: Internal Server Error"),
}


@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_answer_is_refused_by_name(name):
    lie, said = BAD[name]
    error = await refusal_of(lie)
    assert (502, BackendError) == (error.status, type(error))
    assert str(error).startswith("the systemone service")
    assert said in str(error)


DECISIONS_BAD = {
    "an answer too few": (changed(lambda r: r["answers"].pop()), "was asked 3 questions and answered 2"),
    "another order": (changed(lambda r: r["answers"].reverse()), "was asked a predicate and answered a 'score'"),
    "another name": (changed(lambda r: r["answers"][0].update(name="q7")), "was asked 'q0' and answered 'q7'"),
    "a refusal": (changed(lambda r: r["answers"][0].update(type="refusal")), "a predicate and refuses to answer it"),
    "ten options": (
        changed(
            lambda r: r["answers"][1].update(probabilities=[{"value": str(n), "probability": 0.1} for n in range(10)])
        ),
        "was asked for 3 options, ['billing', 'sales', 'none'], and answered 10: ['0', '1'",
    ),
    "another order of options": (
        changed(lambda r: r["answers"][1]["probabilities"].reverse()),
        "and answered 3: ['none'",
    ),
    "a level by its name": (
        changed(lambda r: r["answers"][2]["probabilities"][0].update(value="0")),
        "was asked for 2 options, [0, 1], and answered 2: ['0', 1]",
    ),
    "a sum of 2": (
        changed(lambda r: [one.update(probability=1.0) for one in r["answers"][2]["probabilities"]]),
        "add up to 2, not to 1",
    ),
    "NaN": (changed(lambda r: r["answers"][0].update(probability=float("nan"))), "'nan' where a probability belongs"),
    "missing": (changed(lambda r: r["answers"][1].pop("probabilities")), "answered without 'probabilities'"),
    "half missing": (
        changed(lambda r: r["answers"][1]["probabilities"][0].pop("probability")),
        "'None' where a probability belongs",
    ),
    "no object": (changed(lambda r: r["answers"].__setitem__(1, None)), "answered without 'type'"),
}


@pytest.mark.parametrize("name", DECISIONS_BAD)
async def test_what_is_no_decision_is_refused_by_name(name):
    lie, said = DECISIONS_BAD[name]
    error = await refusal_of(lie, engine="decisions")
    assert 502 == error.status
    assert str(error).startswith("the decisions service ")
    assert said in str(error)


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "7", "retry_after_ms": "250"}, 0.25),
        ({"retry_after": "99999"}, 600.0),
    ],
)
async def test_a_service_without_room_is_passed_on_with_its_pause(status, headers, pause):
    error = await refusal_of(replied(status, {"error": {"message": "busy"}}, **headers), AtCapacity)
    assert (529, pause) == (error.status, error.retry_after)
    assert f"has no room now: it answered {status}: busy" in str(error)


@pytest.mark.parametrize(
    ("lie", "status", "pause", "kind"),
    [
        (replied(429, {"error": {"message": "busy"}}, retry_after="7"), 529, "7", "at_capacity"),
        (probabilities(billing=float("nan")), 502, None, "backend_error"),
        (replied(422, {"detail": "no"}), 502, None, "backend_error"),
        (replied(504, b"late"), 503, "2", "backend_unavailable"),
    ],
)
async def test_a_client_is_told_by_status(lie, status, pause, kind):
    body = {"model": "jev-latest", "state": "It is midnight.", "questions": QUESTIONS}
    async with lied_to(lie) as outer:
        transport = httpx.ASGITransport(create_app(outer))
        async with httpx.AsyncClient(transport=transport, base_url="http://outer") as client:
            reply = await client.post("/v1/systemone", json=body)
    detail = reply.json()["detail"]
    assert (status, pause, kind) == (reply.status_code, reply.headers.get("retry-after"), detail["error_type"])
    assert ("the systemone service " in detail["message"]) == (status != 503)
    assert "127.0.0.1" not in reply.text  # where the service is, is nobody else's business


@pytest.mark.parametrize("status", [429, 529])
async def test_one_that_names_no_pause_gets_a_second(status):
    assert 1.0 == (await refusal_of(replied(status, {}), AtCapacity)).retry_after
    said_by_date = replied(status, {}, retry_after="Wed, 21 Oct 2026 07:28:00 GMT")
    assert 1.0 == (await refusal_of(said_by_date, AtCapacity)).retry_after


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_service_that_does_not_work_is_unavailable(status):
    error = await refusal_of(replied(status, b"Bad gateway"), BackendUnavailable)
    assert 503 == error.status
    assert f"answered {status}: Bad gateway" in str(error)


async def test_a_broken_answer_is_unavailable():
    broken = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"
    assert "broke off" in str(await refusal_of(lambda _: broken, BackendUnavailable))


async def test_one_call_that_fails_ends_the_others():
    held = []

    def lie(heard):
        if "late" in json.dumps(heard.sent):
            heard.status, heard.body = 400, b"no"
        else:
            held.append(heard)
            heard.over.wait(10)

    async with lied_to(lie) as outer:
        outer.reader.limits = ServiceLimits(questions=1, body_bytes=10_000, calls=3)
        with pytest.raises(BackendError, match="answered 400: no"):
            async with asyncio.timeout(8):
                await outer.evaluate(state="It is midnight.", questions=QUESTIONS)


async def test_cancelling_reaches_the_service():
    backend = ToyBackend()
    with live_server(backend=backend) as server:
        async with open_engine(Settings(connect=server.url, engine="systemone")) as outer:
            backend.seconds = 30.0
            asking = asyncio.create_task(outer.evaluate(state="x", questions=QUESTIONS))
            await until(lambda: backend.running)
            asking.cancel()
            await until(lambda: not backend.running)
            assert backend.cancelled


class Pages:
    """The pages of a service; it shows others to nobody."""

    url = "http://pages"

    def __init__(self, pages):
        self.pages = pages

    async def page(self, path):
        if path not in self.pages:
            raise StartupError("refuses the key")
        body = self.pages[path]
        return Page(200, body if isinstance(body, dict) else {})


class TestHealth:
    """What ``/health`` asks of a service."""

    @pytest.mark.parametrize("status", [429, 529])
    async def test_a_full_one_is_well(self, status):
        async with lied_to(replied(status, {})) as outer:
            await outer.check()

    @pytest.mark.parametrize("lie", [replied(503, {}, retry_after="1"), replied(200, b"<html>"), replied(404, {})])
    async def test_one_that_does_not_answer_is_not(self, lie):
        async with lied_to(lie) as outer:
            with pytest.raises(BackendError):
                await outer.check()


class TestStart:
    """Connecting."""

    async def test_an_openjev_is_found_by_its_limits(self):
        lines = []
        with live_server() as server:
            async with open_engine(Settings(connect=server.url), progress=lines.append) as outer:
                assert ("systemone", 64) == (outer.model.engine, outer.limits.max_answers_per_question)
        assert [
            f"connect: found systemone at {server.url}, by GET /v1/limits",
            f"probe: toy/Toy-1 answers a first question (the systemone service at {server.url})",
        ] == lines

    async def test_limits_are_lowered_to_the_services(self):
        with live_server(max_answers=5, max_input_tokens=500) as server:
            async with open_engine(Settings(connect=server.url)) as outer:
                assert (5, 500) == (outer.limits.max_answers_per_question, outer.limits.max_input_tokens)

    async def test_a_first_question_that_is_not_answered_ends_the_start(self):
        def lie(heard):
            if heard.method == "POST":
                replied(500, b"out of order")(heard)

        said = r"probe: expected an answer to a first question from the systemone service at .*out of order"
        with live_server() as server, lying_server(server.url, lie) as url, pytest.raises(StartupError, match=said):
            async with open_engine(Settings(connect=url)):
                pass

    async def test_the_named_model_is_asked_for(self):
        heard = []
        with live_server() as server, lying_server(server.url, lambda one: heard.append(one.sent)) as url:
            async with open_engine(Settings(connect=url, engine="systemone", model="jev-1.0")):
                pass
        assert ["jev-1.0"] == [sent["model"] for sent in heard if sent]

    @pytest.mark.parametrize(
        ("page", "asked"),
        [
            ({"data": [{"id": "one"}]}, "one"),
            ({"models": [{"name": "two"}]}, "two"),
            ({"data": [{"id": "other"}, {"id": "jev-latest"}]}, "jev-latest"),
            ({"data": []}, "jev-latest"),
            ({"data": [3, {"id": None}, {"id": ""}]}, "jev-latest"),
            ([], "jev-latest"),
        ],
    )
    async def test_the_listed_model_is_asked_for(self, page, asked):
        assert asked == await model_of(Pages({"/v1/models": page}))

    async def test_one_of_several_models_has_to_be_named(self):
        several = {"data": [{"id": f"m{number}"} for number in range(12)]}
        said = r"^OPENJEV_MODEL: the service at http://pages has several models: .*--model: m0, .*, m9, \.\.\.$"
        with pytest.raises(SettingsError, match=said):
            await model_of(Pages({"/v1/models": several}))

    async def test_a_page_that_others_may_see_is_none(self):
        assert {} == await limits_of(Pages({}))

    async def test_a_key_is_sent(self):
        with live_server(api_key=("secret",)) as server:
            async with open_engine(Settings(connect=server.url, backend_api_key="secret")) as outer:
                await outer.evaluate(state="x", questions=QUESTIONS)
            with pytest.raises(StartupError, match="refuses the key"):
                async with open_engine(Settings(connect=server.url, backend_api_key="wrong")):
                    pass

    @pytest.mark.parametrize("url", ["http://example.org", "http://10.0.0.1:8000", "http://[2001:db8::1]"])
    def test_a_key_does_not_travel_in_the_clear(self, url):
        with pytest.raises(
            SettingsError, match="OPENJEV_BACKEND_API_KEY: expected a service at an https address, found http"
        ):
            check_key(url, Settings(backend_api_key="secret"))
        check_key(url, Settings())

    @pytest.mark.parametrize(
        "url", ["https://example.org", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"]
    )
    def test_a_key_may_travel_where_nobody_listens(self, url):
        check_key(url, Settings(backend_api_key="secret"))

    async def test_a_decision_service_is_found_by_its_route(self):
        def hide(heard):
            if not heard.path.startswith("/v1/decisions"):
                heard.status, heard.body = 404, b"{}"

        with live_server() as server, lying_server(server.url, hide) as url:
            async with Address(url, None) as address:
                engine, how = await recognised(address, load_registry().engines.values())
            async with open_engine(Settings(connect=url)) as outer:
                assert "toy/Toy-1" == outer.model.public_name
        assert ("decisions", "GET /v1/decisions (405)") == (engine.name, how)
