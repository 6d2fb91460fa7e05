"""The playground against ``openjev serve`` on the embedded engine: a person's whole way through it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from playground_page import Playground, percent

pytestmark = pytest.mark.browser


def test_each_answer_is_a_picture(embedded, open_page, keep):
    page = open_page(f"{embedded}/playground")
    playground = Playground(page)
    keep(page, "playground-start")
    _, body = playground.run()
    assert ["wants_refund", "team", "frustration"] == playground.answers.locator("h3").all_text_contents()
    noul, choice, score = (playground.answers.nth(index) for index in range(3))
    answers = body["answers"]

    p_yes = answers["wants_refund"]["noul"]
    assert f"P(yes) is {percent(p_yes)}" == noul.get_by_role("img").get_attribute("aria-label")
    fill = noul.locator(".gauge-fill")
    drawn = fill.evaluate("arc => parseFloat(arc.style.strokeDasharray) / arc.getTotalLength()")
    assert pytest.approx(p_yes, abs=0.01) == drawn

    ranked = sorted(answers["team"]["probabilities"].items(), key=lambda pair: -pair[1])
    assert [name for name, _ in ranked] == choice.locator(".bar-name").all_text_contents()
    assert [percent(p) for _, p in ranked] == choice.locator(".bar-number").all_text_contents()
    assert [answers["team"]["choice"]] == choice.locator(".best .bar-name").all_text_contents()
    track = choice.locator(".bar-row .bar-track").first.bounding_box()["width"]
    bar = choice.locator(".bar-row .bar").first.bounding_box()["width"]
    assert pytest.approx(ranked[0][1], abs=0.01) == bar / track

    assert ["3", "2", "1", "0"] == score.locator(".rung-level").all_text_contents()
    assert f"{answers['frustration']['score']:.2f}" == score.locator(".figure strong").text_content()
    rail, marker = (score.locator(name).bounding_box() for name in (".rail", ".marker"))
    from_top = (marker["y"] + marker["height"] / 2 - rail["y"]) / rail["height"]
    assert pytest.approx((3 - answers["frustration"]["score"] + 0.5) / 4, abs=0.02) == from_top
    confidences = [f"{answers[name]['confidence']:.2f}" for name in ("team", "frustration")]
    assert confidences == page.locator(".confidence strong").all_text_contents()
    keep(page, "playground-answers")
    keep(page, "playground-answers-full", full_page=True)


def test_what_it_took(embedded, open_page):
    page = open_page(f"{embedded}/playground")
    with page.expect_response("**/v1/systemone") as caught:
        page.click("#run")
    page.wait_for_selector(".summary")
    headers, body = caught.value.headers, caught.value.json()
    phases = dict(part.strip().split(";dur=") for part in headers["server-timing"].split(","))
    legend = [
        (name, float(number) * {"ms": 1, "s": 1000}[unit])
        for name, number, unit in (item.split() for item in page.locator(".legend li").all_text_contents())
    ]
    assert ["queue", "prepare", "prefill", "branches", "transfer"] == [name for name, _ in legend]
    for name, shown in legend[:3]:
        assert pytest.approx(float(phases[name]), rel=0.05, abs=0.06) == shown
    widths = [part.bounding_box()["width"] for part in page.locator(".stack-part").all()]
    longest = max(range(3), key=lambda index: float(phases[legend[index][0]]))
    assert widths[longest] == max(widths[:3])
    facts = dict(
        zip(
            page.locator(".summary dt").all_text_contents(),
            page.locator(".summary dd").all_text_contents(),
            strict=True,
        )
    )
    assert f"{body['usage']['input_tokens']:,}" == facts["input tokens"]
    assert str(body["usage"]["output_tokens"]) == facts["output tokens"]
    assert facts["of them cached"].startswith(f"{int(headers['x-openjev-cached-tokens']):,} (")
    assert headers["x-typesafe-request-id"] == facts["request"]
    assert body["model"] == facts["model"] == page.locator("#model").text_content()


def test_the_demo_model_is_called_one(embedded, open_page):
    page = open_page(f"{embedded}/playground")
    assert httpx.get(f"{embedded}/health").json()["note"] in page.locator("#note").text_content()


def test_the_prompts_are_what_the_model_reads(embedded, open_page, keep):
    page = open_page(f"{embedded}/playground")
    with page.expect_response("**/v1/prompts") as caught:
        page.click("#tab-prompts")
    preview = caught.value.json()
    cards = page.locator("#prompt-list .prompt")
    page.wait_for_selector("#prompt-list .prompt >> nth=3")
    assert preview["prefix"] == cards.nth(0).locator("pre").text_content()
    for index, branch in enumerate(preview["branches"], start=1):
        assert branch["question_id"] == cards.nth(index).locator("h3").text_content()
        assert branch["prompt"] == preview["prefix"] + cards.nth(index).locator("pre").text_content()
        assert len(branch["labels"]) == cards.nth(index).locator(".labels li").count()
    keep(page, "playground-prompts")
    page.check("[name=prompt-form][value=tokens]", force=True)
    tokens = cards.nth(1).locator(".token")
    assert [f"token {token['id']}" for token in preview["branches"][0]["tokens"]] == [
        token.get_attribute("title") for token in tokens.all()
    ]
    keep(page, "playground-tokens")


def test_the_code_runs_as_it_is(embedded, open_page, keep, tmp_path):
    page = open_page(f"{embedded}/playground")
    playground = Playground(page)
    playground.write_state('It\'s a "test" with $HOME, `ticks`, \\n and Ünïcödé 🙂\nand a second line.')
    sent, body = playground.run()
    document = playground.code("json")
    assert json.loads(sent) == {**json.loads(document), "x_detail": True}

    curl = playground.code("curl")
    if shutil.which("curl"):
        run = subprocess.run(["sh", "-c", f"{curl} -s"], capture_output=True, text=True, timeout=60, check=True)
        assert body["answers"].keys() == json.loads(run.stdout)["answers"].keys()

    program = tmp_path / "program.py"
    program.write_text(playground.code("python"), encoding="utf-8")
    keep(page, "playground-code")
    run = subprocess.run(
        [sys.executable, program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    assert 0 == run.returncode, run.stderr
    assert "'wants_refund': NoulAnswer(" in run.stdout

    program.write_text(playground.code("openai"), encoding="utf-8")
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
    assert 0 == run.returncode, run.stderr
    assert "name='wants_refund'" in run.stdout

    command = playground.code("ask").replace("openjev ask", "openjev ask --json")
    commands = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, env=commands, check=False)
    assert 0 == run.returncode, run.stderr
    assert body["answers"].keys() == json.loads(run.stdout)["answers"].keys()

    row = json.loads(playground.code("row"))
    assert {"state", "questions", "labels"} == row.keys()
    assert (json.loads(sent)["state"], json.loads(sent)["questions"]) == (row["state"], row["questions"])
    assert dict.fromkeys(body["answers"]) == row["labels"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(embedded, open_page, keep, scheme):
    page = open_page(
        f"{embedded}/playground", width=390, height=844, scheme=scheme, has_touch=True, device_scale_factor=2
    )
    keep(page, f"playground-phone-{scheme}")
    page.tap("#run")
    page.wait_for_selector("#evaluation .answer")
    # The answers come into view by themselves.
    page.wait_for_function("document.querySelector('#results').getBoundingClientRect().top < 200")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = page.evaluate(
        """() => [...document.querySelectorAll("input[type=text], textarea, select")]
             .filter((one) => one.offsetParent && parseFloat(getComputedStyle(one).fontSize) < 13).length"""
    )
    assert 0 == small
    keep(page, f"playground-phone-{scheme}-answers")
    keep(page, f"playground-phone-{scheme}-full", full_page=True)
    lightness = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, b) => a + +b, 0)"
    )
    assert (lightness < 150) == (scheme == "dark")


def test_in_the_dark(embedded, open_page, keep):
    page = open_page(f"{embedded}/playground", scheme="dark")
    Playground(page).run()
    keep(page, "playground-dark")
    page.click("#tab-prompts")
    page.check("[name=prompt-form][value=tokens]", force=True)
    page.wait_for_selector(".token")
    keep(page, "playground-dark-tokens")
