// The playground: what a person writes on one side, what the model makes of it on the other.

import { copy } from "./clipboard.js";
import { askForKey, chooseExample, say } from "./dialogs.js";
import { draftFrom, emptyDraft, requestOf, reviveDraft } from "./draft.js";
import { h } from "./element.js";
import { examplesFor } from "./examples.js";
import { write } from "./json-tree.js";
import { clearProblems, showProblems } from "./problems.js";
import { promptsView } from "./prompts-view.js";
import { showQuestions } from "./question-list.js";
import { evaluationView, milliseconds } from "./results.js";
import { Refusal, Service } from "./service.js";
import { asCurl, asJson, asPython } from "./snippets.js";
import { showState } from "./state-editor.js";
import { forgetLink, linked, linkTo, store, stored } from "./storage.js";
import { tabs } from "./tabs.js";
import { typesOf } from "./types.js";

const PAUSE = 120;

const at = (id) => document.getElementById(id);
const form = at("request");
const service = new Service(askForKey);

class Playground {
  constructor(description) {
    this.types = typesOf(description);
    this.nodes = new Map([...this.types].map(([name, { node }]) => [name, node]));
    this.examples = examplesFor(this.types, description);
    this.draft = emptyDraft();
    this.running = null;
    this.shownRequest = null;
    this.previewed = null;
    this.keeps = true;
    this.tabs = tabs("Results", [
      { id: "answers", name: "Answers", panel: at("answers") },
      { id: "prompts", name: "Prompts", panel: at("prompts"), shown: () => this.preview() },
      { id: "code", name: "Code", panel: at("code"), shown: () => this.showCode() },
    ]);
    at("results").prepend(this.tabs.list);
  }

  async start() {
    await this.load();
    this.showDraft();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.runOrStop();
    });
    addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
        event.preventDefault();
        if (this.running === null) this.run();
      }
    });
    if (/Mac|iPhone|iPad/.test(navigator.platform)) at("run").lastElementChild.textContent = "⌘ ⏎";
    addEventListener("pagehide", () => this.settle());
    at("examples").addEventListener("click", () => this.offerExamples());
    at("link").addEventListener("click", () => this.copyLink());
    at("key").addEventListener("click", () => service.changeKey().then(() => this.showKey()));
    at("orders").addEventListener("change", () => {
      this.draft.orders = at("orders").value;
      this.changed();
    });
    for (const one of form.ownerDocument.querySelectorAll("[name=prompt-form]"))
      one.addEventListener("change", () => this.showPreview());
    for (const one of form.ownerDocument.querySelectorAll("[name=language]"))
      one.addEventListener("change", () => this.showCode());
    at("copy").addEventListener("click", () => copy(at("snippet").textContent, "Copied"));
    this.showHealth();
  }

  /** The request in the link, else what was stored, else the first example. */
  async load() {
    const kept = stored();
    const { draft, lost } = reviveDraft(kept, this.nodes);
    if (kept === null && this.examples.length > 0) this.draft = draftFrom(this.examples[0].request, this.nodes);
    else this.draft = draft;
    if (lost > 0)
      say(`${lost} stored question${lost === 1 ? "" : "s"} could not be shown: the server’s types have changed`);
    let text;
    try {
      text = await linked();
      if (text === null) return;
      this.replace(draftFrom(text, this.nodes), "Opened the request of the link");
    } catch (error) {
      say(`The link’s request cannot be shown: ${error.message}`);
    }
    forgetLink();
  }

  replace(draft, message) {
    const before = this.draft;
    this.draft = draft;
    say(message, () => {
      this.draft = before;
      this.showDraft();
    });
  }

  showDraft() {
    clearProblems(form);
    const changed = () => this.changed();
    showState(at("state"), this.draft.state, changed);
    showQuestions(at("questions"), this.draft.questions, this.types, changed, say);
    const orders = at("orders");
    if (![...orders.options].some(({ value }) => value === this.draft.orders))
      orders.append(h("option", { value: this.draft.orders }, this.draft.orders));
    orders.value = this.draft.orders;
    this.settle();
  }

  /** After every edit. A state may be megabytes long, so that what follows waits for a pause in the typing. */
  changed() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.settle(), PAUSE);
  }

  /** Store the draft, and bring up to date what is made from it. */
  settle() {
    clearTimeout(this.settling);
    if (!store(this.draft) && this.keeps) {
      this.keeps = false;
      say("This browser does not keep the request: a reload will lose it");
    }
    this.requestText = write(requestOf(this.draft, this.nodes).request);
    this.showStale();
    if (!at("code").hidden) this.showCode();
    if (!at("prompts").hidden) this.showPreview();
  }

  showStale() {
    at("stale").hidden = this.shownRequest === null || this.shownRequest === this.requestText;
  }

  showCode() {
    const { request } = requestOf(this.draft, this.nodes);
    const language = document.querySelector("[name=language]:checked").value;
    const url = service.url("v1/systemone");
    const code = { curl: asCurl, python: asPython, json: asJson }[language](request, url, service.hasKey);
    at("snippet").textContent = code;
  }

  showKey() {
    at("key").textContent = service.hasKey ? "Key set" : "Key";
    at("key").classList.toggle("on", service.hasKey);
    this.showCode();
  }

  async showHealth() {
    const health = await service.health();
    const chip = at("model");
    chip.dataset.status = health?.status ?? "unavailable";
    const name = health ? `${health.model}${health.status === "ok" ? "" : " (unavailable)"}` : "server unreachable";
    chip.title = name;
    chip.replaceChildren(h("span", { class: "dot", "aria-hidden": "true" }), h("span", { class: "model-name" }, name));
    if (health?.note) {
      at("note").replaceChildren(h("strong", {}, health.model), ` is ${health.note}.`);
      at("note").hidden = false;
    }
  }

  /** The request, when nothing in it is known to be wrong; else null, with the problems shown. */
  checked(summary) {
    clearProblems(form);
    const { request, problems } = requestOf(this.draft, this.nodes);
    if (problems.length === 0) return request;
    showProblems(form, summary, problems);
    return null;
  }

  runOrStop() {
    if (this.running === null) this.run();
    else this.running.abort();
  }

  async run() {
    this.settle();
    this.tabs.select("answers");
    const panel = at("evaluation");
    const request = this.checked(panel);
    if (request === null) return;
    this.busy(new AbortController());
    panel.classList.add("waiting");
    try {
      const reply = await service.post("v1/systemone", write(request), this.running.signal);
      panel.replaceChildren(evaluationView(request, reply));
      this.shownRequest = write(request);
      tell(`Answered ${request.get("questions").size} questions in ${milliseconds(reply.milliseconds)}`);
      if (matchMedia("(max-width: 60rem)").matches) at("results").scrollIntoView({ block: "start" });
    } catch (error) {
      this.shownRequest = null;
      showFailure(panel, error);
      if (error instanceof Refusal && (error.status === null || error.status >= 500)) this.showHealth();
    } finally {
      panel.classList.remove("waiting");
      this.busy(null);
      this.showKey();
      this.showStale();
    }
  }

  busy(controller) {
    this.running = controller;
    const button = at("run");
    button.classList.toggle("busy", controller !== null);
    button.firstElementChild.textContent = controller === null ? "Run" : "Stop";
    if (controller !== null) tell("Running");
  }

  async preview() {
    this.settle();
    const panel = at("prompt-list");
    const request = this.checked(panel);
    if (request === null) return;
    const text = write(request);
    if (this.previewed?.text !== text) {
      try {
        this.previewed = { text, preview: (await service.post("v1/prompts", text)).body };
      } catch (error) {
        this.previewed = null;
        if (error instanceof Refusal && error.status === 404) {
          panel.replaceChildren(
            h(
              "p",
              { class: "notice" },
              "This server does not show prompts. Start it with ",
              h("code", {}, "OPENJEV_DEBUG_PROMPTS=on"),
              " to see them here.",
            ),
          );
        } else showFailure(panel, error);
        return;
      } finally {
        this.showKey();
      }
    }
    this.showPreview();
  }

  showPreview() {
    if (this.previewed === null) return;
    const form = document.querySelector("[name=prompt-form]:checked").value;
    const view = promptsView(this.previewed.preview, form);
    const stale = this.previewed.text !== this.requestText;
    const again = h(
      "p",
      { class: "notice" },
      "The request has changed since. ",
      h("button", { type: "button", class: "link", on: { click: () => this.preview() } }, "Show its prompts"),
    );
    at("prompt-list").replaceChildren(...(stale ? [again] : []), ...view);
  }

  async offerExamples() {
    const example = await chooseExample([
      ...this.examples,
      { title: "An empty page", about: "No state, no questions." },
    ]);
    if (example === null) return;
    this.replace(
      example.request ? draftFrom(example.request, this.nodes) : emptyDraft(),
      `Started from “${example.title}”`,
    );
    this.showDraft();
  }

  async copyLink() {
    const request = this.checked(at("evaluation"));
    if (request !== null)
      await copy(await linkTo(write(request)), "Link copied. It holds the request, not the answers or the key");
  }
}

function showFailure(panel, error) {
  if (error.name === "AbortError") {
    panel.replaceChildren(h("p", { class: "notice" }, "Stopped."));
  } else if (error instanceof Refusal && error.problems !== null) {
    showProblems(
      form,
      panel,
      error.problems.map(({ loc, msg }) => ({ path: loc.slice(1), message: msg })),
    );
  } else {
    const refused = error instanceof Refusal;
    const title = refused ? (error.status === null ? "No answer" : `Error ${error.status}`) : "This page has failed";
    const request = error.requestId ? h("p", {}, `request ${error.requestId}`) : null;
    panel.replaceChildren(
      h("div", { class: "notice bad", role: "alert" }, h("h3", {}, title), h("p", {}, error.message), request),
    );
    if (!refused) throw error;
  }
}

/** For those who cannot see that something has changed. */
function tell(message) {
  at("spoken").textContent = message;
}

try {
  await new Playground(await service.get("openapi.json")).start();
} catch (error) {
  showFailure(at("evaluation"), error);
}
