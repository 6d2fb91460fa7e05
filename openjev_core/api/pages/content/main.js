// The playground: what a person writes on one side, what the model makes of it on the other.

import { copy } from "./clipboard.js";
import { askForKey, chooseExample, say } from "./dialogs.js";
import { detailed, draftFrom, emptyDraft, requestOf, reviveDraft } from "./draft.js";
import { h } from "./element.js";
import { examplesFor } from "./examples.js";
import { parse, write } from "./json-tree.js";
import { failureNotice, stoppedNotice } from "./failures.js";
import { History } from "./history.js";
import { recognised, saveFile, takeDrops, textOf } from "./intake.js";
import { clearProblems, forgetProblem, problemNotice } from "./problems.js";
import { promptsView } from "./prompts-view.js";
import { showQuestions } from "./question-list.js";
import { evaluationView, milliseconds } from "./results.js";
import { runsView } from "./runs-view.js";
import { Refusal, Service } from "./service.js";
import { asCommand, asCurl, asJson, asOpenAI, asPython, asRow } from "./snippets.js";
import { showState } from "./state-editor.js";
import { forgetLink, linked, linkTo, store, stored } from "./storage.js";
import { Table } from "./table-view.js";
import { tabs } from "./tabs.js";
import { typesOf } from "./types.js";
import { whatIf } from "./what-if.js";

const PAUSE = 120;

const at = (id) => document.getElementById(id);
const form = at("request");
const service = new Service(askForKey);

class Playground {
  constructor(description, history) {
    this.history = history;
    this.types = typesOf(description);
    this.nodes = new Map([...this.types].map(([name, { node }]) => [name, node]));
    this.examples = examplesFor(this.types, description);
    this.draft = emptyDraft();
    this.running = null;
    this.shown = null;
    this.previewed = null;
    this.keeps = true;
    this.tabs = tabs("Results", [
      { id: "answers", name: "Answers", panel: at("answers") },
      { id: "prompts", name: "Prompts", panel: at("prompts"), shown: () => this.preview() },
      { id: "runs", name: "Runs", panel: at("runs"), shown: () => this.showRuns() },
      { id: "code", name: "Code", panel: at("code"), shown: () => this.showCode() },
    ]);
    at("results").prepend(this.tabs.list);
  }

  async start() {
    const fromLink = await this.load();
    this.showDraft();
    const last = this.history.entries.find(({ reply }) => reply !== null);
    if (last && !fromLink) this.showAnswers(last);
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
    at("open").addEventListener("click", () => at("file").click());
    at("file").addEventListener("change", () => this.openFile(at("file").files[0]));
    at("save").addEventListener("click", () => this.save());
    takeDrops((file) => this.openFile(file));
    addEventListener("hashchange", async () => {
      if (await this.openLink()) this.showDraft();
    });
    form.addEventListener("input", ({ target }) => forgetProblem(target));
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

  /** The request in the link, else what was stored, else the first example. Returns whether it is the link's. */
  async load() {
    const kept = stored();
    const { draft, lost } = reviveDraft(kept, this.nodes);
    if (kept === null && this.examples.length > 0) this.draft = draftFrom(this.examples[0].request, this.nodes);
    else this.draft = draft;
    if (lost > 0)
      say(`${lost} stored question${lost === 1 ? "" : "s"} could not be shown: the server’s types have changed`);
    return this.openLink();
  }

  async openLink() {
    let opened = false;
    try {
      const text = await linked();
      if (text === null) return false;
      this.replace(draftFrom(text, this.nodes), "Opened the request of the link");
      opened = true;
    } catch (error) {
      say(`The link’s request cannot be shown: ${error.message}`);
    }
    forgetLink();
    return opened;
  }

  /** Work on another draft. The one before stays among the runs, unless it is there or nobody wrote it. */
  replace(draft, message) {
    const before = this.draft;
    const request = write(requestOf(before, this.nodes).request);
    const known = [...this.history.entries, ...this.examples].map((one) => one.request);
    const written = before.questions.length > 0 || before.state.text !== "" || before.state.json !== "";
    if (written && !known.some((one) => write(parse(one)) === request))
      this.history.add({ draft: before, request, reply: null });
    this.draft = draft;
    say(message, () => {
      this.draft = before;
      this.showDraft();
    });
  }

  async openFile(file) {
    at("file").value = "";
    if (!file) return;
    try {
      const found = await recognised(await textOf(file), this.nodes, file.name);
      if (found.kind === "rows") this.showTable(found.file);
      else this.bring(found, `Opened ${file.name}`);
    } catch (error) {
      say(`${file.name} cannot be opened: ${error.message}`);
    }
  }

  /** Show what a person has brought. */
  bring(found, message) {
    this.replace(found.draft ?? { ...this.draft, state: found.state }, message);
    this.showDraft();
    if (found.kind !== "run") return;
    const entry = this.history.add(found);
    this.history.pin(entry);
    this.showAnswers(entry);
    this.tabs.select("answers");
  }

  showTable(file) {
    const place = at("table");
    const table = new Table(file, {
      service,
      say,
      questions: () => this.checked("questions")?.get("questions") ?? null,
      orders: () => requestOf(this.draft, this.nodes).request.get("x_orders"),
      open: (state, questions) => this.openRow(state, questions),
      close: () => {
        place.hidden = true;
        place.replaceChildren();
      },
    });
    place.replaceChildren(table.element);
    place.hidden = false;
    place.scrollIntoView({ block: "start" });
  }

  openRow(state, questions) {
    const request = new Map([
      ["state", state],
      ["questions", questions ?? requestOf(this.draft, this.nodes).request.get("questions")],
    ]);
    try {
      this.replace(draftFrom(write(request), this.nodes), "Opened the row");
    } catch (error) {
      say(`The row cannot be opened: ${error.message}`);
      return;
    }
    this.showDraft();
    form.scrollIntoView({ block: "start" });
  }

  /** A person who pastes a whole request into the state may mean to open it. */
  async pasted(text) {
    const found = await recognised(text, this.nodes).catch(() => null);
    if (found !== null && found.kind !== "state" && found.kind !== "rows")
      say("That is a whole request", () => this.bring(found, "Opened the request that was pasted"), "Open it");
  }

  showDraft() {
    clearProblems(form);
    const changed = () => this.changed();
    showState(at("state"), this.draft.state, { changed, say, pasted: (text) => this.pasted(text) });
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
    this.request = write(requestOf(this.draft, this.nodes).request);
    this.showStale();
    if (!at("code").hidden) this.showCode();
    if (!at("prompts").hidden) this.showPreview();
  }

  showStale() {
    at("stale").hidden = this.shown === null || this.shown.request === this.request;
  }

  /** Show the answers of a run, compared with the pinned one. */
  showAnswers(entry) {
    this.shown = entry;
    const pinned = this.history.pinned;
    const before = pinned === null || pinned.id === entry.id ? null : pinned.reply.body.answers;
    const prompts = async (id) => {
      const preview = await this.previewOf(entry.request).catch(() => null);
      return preview?.branches.filter(({ question_id }) => question_id === id) ?? null;
    };
    const questions = parse(entry.request).get("questions");
    const views = [
      evaluationView(questions, entry.reply, before, this.types, prompts),
      whatIf(entry, service, detailed),
    ];
    at("evaluation").replaceChildren(...views.filter((view) => view !== null));
    this.showStale();
  }

  /** Say something above the answers, which stay. */
  notify(notice) {
    at("evaluation").replaceChildren(notice, ...at("evaluation").querySelectorAll(".evaluation, .what-if"));
  }

  showRuns() {
    const view = runsView(this.history, {
      open: (entry) => this.openRun(entry),
      save: ({ request, reply }) => saveFile("run.json", runText(request, reply)),
      changed: () => {
        this.showRuns();
        if (this.shown !== null) this.showAnswers(this.shown);
      },
    });
    at("runs").replaceChildren(...view);
  }

  openRun(entry) {
    const { draft, lost } = reviveDraft(entry.draft, this.nodes);
    const some = lost === 0 ? "" : `, without ${lost} of its questions: the server’s types have changed`;
    this.replace(draft, `Opened an earlier run${some}`);
    this.showDraft();
    if (entry.reply === null) return;
    this.showAnswers(entry);
    this.tabs.select("answers");
  }

  save() {
    const request = this.checked();
    if (request !== null) saveFile("request.json", `${asJson(request)}\n`);
  }

  showCode() {
    const { request } = requestOf(this.draft, this.nodes);
    const language = document.querySelector("[name=language]:checked").value;
    const url = service.url("v1/systemone");
    const program = { curl: asCurl, python: asPython, openai: asOpenAI, ask: asCommand, row: asRow, json: asJson }[language];
    try {
      at("snippet").textContent = program(request, url, service.hasKey);
    } catch (error) {
      at("snippet").textContent = `# ${error.message}`;
    }
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

  /** The request, when nothing in it (or in one part of it) is known to be wrong; else null, with the problems shown. */
  checked(part = null) {
    clearProblems(form);
    const { request, problems: all } = requestOf(this.draft, this.nodes);
    const problems = all.filter(({ path }) => part === null || path[0] === part);
    if (problems.length === 0) return request;
    this.tabs.select("answers");
    this.notify(problemNotice(form, problems));
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
    const request = this.checked();
    if (request === null) return;
    const draft = structuredClone(this.draft);
    this.busy(new AbortController());
    panel.classList.add("waiting");
    try {
      const { body, headers, milliseconds: taken } = await service.post(
        "v1/systemone",
        write(detailed(request)),
        this.running.signal,
      );
      const reply = { body, headers: Object.fromEntries(headers), milliseconds: taken };
      this.showAnswers(this.history.add({ draft, request: write(request), reply }));
      tell(`Answered ${request.get("questions").size} questions in ${milliseconds(taken)}`);
      if (matchMedia("(max-width: 60rem)").matches) at("results").scrollIntoView({ block: "start" });
      if (at("model").dataset.status !== "ok") this.showHealth();
    } catch (error) {
      this.notify(error.name === "AbortError" ? stoppedNotice() : failureNotice(form, error));
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

  /** The prompts of a request's text. */
  async previewOf(text) {
    if (this.previewed?.text !== text)
      this.previewed = { text, preview: (await service.post("v1/prompts", text)).body };
    return this.previewed.preview;
  }

  async preview() {
    this.settle();
    const panel = at("prompt-list");
    const request = this.checked();
    if (request === null) return;
    const text = write(request);
    if (this.previewed?.text !== text) {
      try {
        await this.previewOf(text);
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
        } else panel.replaceChildren(failureNotice(form, error));
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
    const stale = this.previewed.text !== this.request;
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
    const request = this.checked();
    if (request !== null)
      await copy(await linkTo(write(request)), "Link copied. It holds the request, not the answers or the key");
  }
}

/** A run as a file. Digits and the order of keys are those of the request that was sent. */
function runText(request, reply) {
  return `{"request": ${request},\n"reply": ${JSON.stringify(reply)}}\n`;
}

/** For those who cannot see that something has changed. */
function tell(message) {
  at("spoken").textContent = message;
}

try {
  const [description, history] = await Promise.all([service.get("openapi.json"), History.open()]);
  await new Playground(description, history).start();
} catch (error) {
  at("evaluation").replaceChildren(failureNotice(form, error));
}
