"""The playground as a person uses it: what a test writes, presses and reads there."""

from __future__ import annotations

import base64
import json

DROP = """([name, encoded]) => {
    const bytes = Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0));
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], name));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""

REFUSED = r"Failed to load resource: the server responded with a status of (4|5)\d\d"


class Playground:
    """A page that shows the playground."""

    def __init__(self, page):
        self.page = page

    def example(self, title):
        self.page.click("#examples")
        self.page.click(f".example:has-text('{title}')")
        self.page.wait_for_selector(f"#toast >> text=Started from “{title}”")

    def write_state(self, text, mode="text"):
        self.page.check(f"[name=state-mode][value={mode}]", force=True)
        self.page.fill(".state-text", text)

    def add(self, type_name):
        """Add a question; returns its card."""
        self.page.click(f".add-type:has(.add-type-name:text-is('{type_name}'))")
        return self.cards.last

    def drop(self, name, content):
        """Drop a file on the page."""
        encoded = base64.b64encode(content if isinstance(content, bytes) else content.encode()).decode()
        self.page.evaluate(DROP, [name, encoded])

    @property
    def cards(self):
        return self.page.locator("#questions > ol > .question")

    @property
    def answers(self):
        return self.page.locator("#evaluation .answer")

    def ids(self):
        return [field.input_value() for field in self.page.locator(".question-id").all()]

    def run(self):
        """Run; returns the request's text and the reply's JSON."""
        with self.page.expect_response("**/v1/systemone") as caught:
            self.page.keyboard.press("Control+Enter")
        reply = caught.value
        body = reply.json()
        assert reply.ok, body
        self.page.wait_for_selector("#run:not(.busy)")
        return reply.request.post_data, body

    def code(self, language):
        """The request as code, copied with the button."""
        self.page.click("#tab-code")
        self.page.check(f"[name=language][value={language}]", force=True)
        self.page.click("#copy")
        return self.page.evaluate("navigator.clipboard.readText()")

    def problems(self):
        """Every message at a field, with the label of the field that has it."""
        found = self.page.evaluate(
            """() => [...document.querySelectorAll("[aria-invalid]")].map((field) => [
                 field.getAttribute("aria-label") ?? field.labels[0]?.firstChild.textContent ?? field.id,
                 field.getAttribute("aria-describedby").split(" ")
                   .map((id) => document.getElementById(id)).filter((one) => one.className === "problem")
                   .map((one) => one.textContent).join(" "),
               ])"""
        )
        return dict(found)

    def stored(self):
        """What the browser keeps once the page is left."""
        self.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))")
        return json.loads(self.page.evaluate("localStorage.getItem('openjev.playground')"))


def percent(probability):
    """A probability as the page writes it."""
    if 0 < probability < 0.001:
        return "< 0.1%"
    return "> 99.9%" if 0.999 < probability < 1 else f"{probability * 100:.1f}%"
