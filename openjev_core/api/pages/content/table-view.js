// A file's rows with their answers: asked, sorted, filtered, measured, downloaded.

import { h } from "./element.js";
import { Digits, parse, write } from "./json-tree.js";
import { saveFile } from "./intake.js";
import { percent } from "./values.js";
import { asCsv, labelOf, stateColumnOf } from "./rows.js";
import { brief } from "./runs-view.js";
import { askAll } from "./asking.js";
import { measuresView } from "./table-measures.js";
import { meantBy, verdictOf } from "./verdicts.js";

const PAGE = 100;
const WORDS = 200;

/** The table of one file. `questions()` gives the tree of the questions to ask, or null with what is wrong shown; `orders()`
 *  the tree of `x_orders` or undefined; `open(state, questions)` takes a row to the form; `close` ends the table. */
export class Table {
  constructor(file, { service, questions, orders, open, close, say }) {
    Object.assign(this, { file, service, asked: questions, orders, open, close, say });
    this.stateColumn = stateColumnOf(file);
    this.forget();
    this.sort = { key: null, descending: true };
    this.page = 0;
    this.running = null;
    this.element = h("div", { class: "table" });
    this.show();
  }

  /** The tree of the questions about a row; null where there are none. */
  questionsOf({ fields }) {
    const own = fields.get("questions");
    return own instanceof Map ? own : typeof own === "string" && own.startsWith("{") ? parse(own) : this.questions;
  }

  stateOf({ fields }) {
    const state = fields.get(this.stateColumn) ?? "";
    return state instanceof Digits || typeof state === "boolean" ? write(state) : state;
  }

  /** The ids of all questions that are asked, in the order in which they come up. */
  get ids() {
    return [...new Set(this.file.rows.flatMap((row) => [...(this.questionsOf(row)?.keys() ?? [])]))];
  }

  async run() {
    const own = this.file.columns.includes("questions");
    this.questions = own ? null : this.asked();
    if (!own && this.questions === null) return;
    this.forget();
    this.running = new AbortController();
    this.show();
    try {
      await askAll(this.file.rows, {
        service: this.service,
        signal: this.running.signal,
        requestOf: (row) => this.requestOf(row),
        done: (row, result) => this.answered(row, result),
      });
      this.say(`Answered ${this.results.size} rows`);
    } catch (error) {
      if (error.name !== "AbortError") this.say(`The rows cannot be asked: ${error.message}`);
      this.running.abort();
    }
    this.running = null;
    this.show();
  }

  forget() {
    this.results = new Map();
    this.refused = 0;
  }

  requestOf(row) {
    const request = new Map([
      ["model", "jev-latest"],
      ["state", this.stateOf(row)],
      ["questions", this.questionsOf(row) ?? new Map()],
    ]);
    const orders = this.orders();
    if (orders !== undefined) request.set("x_orders", orders);
    return request;
  }

  answered(row, result) {
    this.results.set(row.number, result);
    if (result.error !== undefined) this.refused += 1;
    const shown = this.body.querySelector(`[data-row="${row.number}"]`);
    shown?.replaceWith(this.rowView(row));
    this.progress.value = this.results.size;
    this.count.textContent = this.countText();
  }

  countText() {
    const words = `${this.results.size.toLocaleString("en")} of ${this.file.rows.length.toLocaleString("en")} rows answered`;
    return this.refused === 0 ? words : `${words}, ${this.refused} of them refused`;
  }

  show() {
    const running = this.running !== null;
    this.progress = h("progress", { max: this.file.rows.length, value: this.results.size, "aria-label": "Rows answered" });
    this.count = h("p", { class: "hint", role: "status" }, this.countText());
    const go = h(
      "button",
      {
        type: "button",
        class: "primary",
        on: { click: () => (this.running === null ? this.run() : this.running.abort()) },
      },
      running ? "Stop" : "Ask about each row",
    );
    const quiet = (name, click, attributes = {}) =>
      h("button", { type: "button", class: "quiet", on: { click }, ...attributes }, name);
    const none = { disabled: this.results.size === 0 };
    const column = h(
      "select",
      {
        disabled: running,
        on: {
          change: () => {
            this.stateColumn = column.value;
            this.forget();
            this.show();
          },
        },
      },
      this.file.columns.map((name) => h("option", { value: name, selected: name === this.stateColumn }, name)),
    );
    const filter = h("input", {
      type: "text",
      value: this.filter ?? "",
      placeholder: "Words in a row or its answers",
      "aria-label": "Filter",
      on: {
        input: () => {
          this.filter = filter.value;
          this.page = 0;
          this.showRows();
        },
      },
    });
    const wrong = h("input", {
      type: "checkbox",
      checked: this.onlyWrong === true,
      on: {
        change: () => {
          this.onlyWrong = wrong.checked;
          this.page = 0;
          this.showRows();
        },
      },
    });
    this.body = h("tbody");
    this.pages = h("div", { class: "pages" });
    this.element.replaceChildren(
      h(
        "div",
        { class: "section-head" },
        h("h2", {}, this.file.name),
        h(
          "div",
          { class: "run-links" },
          quiet("Save as CSV", () => this.save("csv"), none),
          quiet("Save as JSONL", () => this.save("jsonl"), none),
          quiet("Close", () => this.close(), { disabled: running }),
        ),
      ),
      h(
        "div",
        { class: "table-bar" },
        go,
        h("label", { class: "check" }, "Column of the state", column),
        h("div", { class: "grow" }, filter),
        h("label", { class: "check" }, wrong, "Only wrong or refused"),
      ),
      this.progress,
      this.count,
      h(
        "div",
        { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Rows and answers" },
        h("table", { class: "rows-table" }, h("thead", {}, this.headView()), this.body),
      ),
      this.pages,
      measuresView(this.ids.map((id) => ({ id, judged: this.judged(id) })).filter(({ judged }) => judged.length > 0)),
    );
    this.showRows();
  }

  headView() {
    const sortable = (key, name) => {
      const { key: sorted, descending } = this.sort;
      const order = key === sorted ? (descending ? "descending" : "ascending") : "none";
      const click = () => {
        this.sort = { key, descending: key === sorted ? !descending : key !== "number" };
        this.element.querySelector("thead").replaceChildren(this.headView());
        this.showRows();
      };
      const arrow = { descending: " ↓", ascending: " ↑", none: "" }[order];
      const button = h("button", { type: "button", class: "sort", on: { click } }, name, arrow);
      return h("th", { scope: "col", "aria-sort": order }, button);
    };
    const questions = this.ids.map((id) => sortable(id, id));
    return h("tr", {}, sortable("number", "Row"), h("th", { scope: "col" }, "State"), questions);
  }

  /** The rows that the filter leaves, in the order that was asked for. */
  get chosen() {
    const words = (this.filter ?? "").toLowerCase();
    const rows = this.file.rows.filter(
      (row) =>
        (words === "" || this.textOf(row).includes(words)) && (this.onlyWrong !== true || this.isWrong(row)),
    );
    const { key, descending } = this.sort;
    if (key === null) return rows;
    const rank = (row) => (key === "number" ? row.number : (this.rankOf(row, key) ?? -Infinity));
    return rows.sort((a, b) => (descending ? rank(b) - rank(a) : rank(a) - rank(b)) || a.number - b.number);
  }

  textOf(row) {
    const result = this.results.get(row.number);
    const answers = this.ids.map((id) => this.cellText(result?.answers?.[id]));
    return [write(row.fields.get(this.stateColumn) ?? ""), ...answers, result?.error ?? ""].join("\n").toLowerCase();
  }

  isWrong(row) {
    if (this.results.get(row.number)?.error !== undefined) return true;
    return this.ids.some((id) => this.judgement(row, id)?.right === false);
  }

  /** What a question's column is sorted by: a yes/no answer's P(yes), a score's expectation, else the probability. */
  rankOf(row, id) {
    const answer = this.results.get(row.number)?.answers?.[id];
    return answer?.noul ?? answer?.score ?? verdictOf(answer)?.probability ?? null;
  }

  judgement(row, id) {
    const answer = this.results.get(row.number)?.answers?.[id];
    const label = labelOf(row, id);
    const verdict = verdictOf(answer);
    if (label === null || verdict === null) return null;
    const meant = meantBy(label, answer);
    return meant === null ? null : { ...verdict, meant, right: verdict.value === meant };
  }

  judged(id) {
    return this.file.rows.map((row) => this.judgement(row, id)).filter((one) => one !== null);
  }

  showRows() {
    const rows = this.chosen;
    const last = Math.max(0, Math.ceil(rows.length / PAGE) - 1);
    this.page = Math.min(this.page, last);
    const first = this.page * PAGE;
    this.body.replaceChildren(...rows.slice(first, first + PAGE).map((row) => this.rowView(row)));
    const turn = (name, by, disabled) =>
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          disabled,
          on: {
            click: () => {
              this.page += by;
              this.showRows();
            },
          },
        },
        name,
      );
    const shown = rows.length === 0 ? "No rows" : `Rows ${first + 1} to ${Math.min(rows.length, first + PAGE)} of ${rows.length}`;
    this.pages.replaceChildren(
      turn("Previous", -1, this.page === 0),
      h("span", { class: "hint" }, shown),
      turn("Next", 1, this.page === last),
    );
  }

  rowView(row) {
    const state = this.stateOf(row);
    const text = typeof state === "string" ? state : write(state);
    const open = h(
      "button",
      {
        type: "button",
        class: "row-open",
        dir: "auto",
        title: "Open this row in the form",
        on: { click: () => this.open(state, this.questionsOf(row)) },
      },
      text.length > WORDS ? `${text.slice(0, WORDS)} …` : text || "(empty)",
    );
    const result = this.results.get(row.number);
    const cells =
      result?.error === undefined
        ? this.ids.map((id) => this.answerCell(row, id, result?.answers?.[id]))
        : [h("td", { class: "bad", colspan: Math.max(1, this.ids.length) }, result.error)];
    return h("tr", { data: { row: row.number } }, h("th", { scope: "row" }, String(row.number)), h("td", {}, open), cells);
  }

  answerCell(row, id, answer) {
    if (answer === undefined) return h("td", {});
    const judgement = this.judgement(row, id);
    const verdict = verdictOf(answer);
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", verdict?.probability ?? 0);
    const mark = judgement === null ? null : h("span", { class: "mark" }, judgement.right ? "right" : `label: ${judgement.meant}`);
    return h(
      "td",
      { class: judgement === null ? null : judgement.right ? "right" : "wrong", title: JSON.stringify(answer) },
      h("span", { class: "cell-text", dir: "auto" }, this.cellText(answer)),
      verdict === null ? null : h("span", { class: "bar-track" }, bar),
      mark,
    );
  }

  cellText(answer) {
    if (answer === undefined) return "";
    if (answer.x_error) return answer.x_error.message;
    const verdict = verdictOf(answer);
    if (verdict === null) return brief(answer);
    const expected = typeof answer.score === "number" ? ` (${answer.score.toFixed(2)} expected)` : "";
    return `${verdict.value} ${percent(verdict.probability)}${expected}`;
  }

  save(ending) {
    const lines = this.file.rows.filter((row) => this.results.has(row.number)).map((row) => this.lineOf(row));
    const columns = [...new Set(lines.flatMap((line) => [...line.keys()]))];
    const name = `${this.file.name.replace(/\.[^.]*$/, "")}-answers.${ending}`;
    if (ending === "csv") saveFile(name, asCsv(columns, lines), "text/csv");
    else saveFile(name, lines.map((line) => `${write(line)}\n`).join(""), "application/jsonl");
  }

  /** A row with its answers, in the columns that `openjev batch --out` writes. */
  lineOf(row) {
    const { answers, error } = this.results.get(row.number);
    const line = new Map(row.fields);
    const tree = (value) => parse(JSON.stringify(value));
    for (const [id, answer] of Object.entries(answers ?? {})) {
      for (const [field, value] of Object.entries(answer)) {
        if (value !== null && typeof value === "object" && !Array.isArray(value)) {
          for (const [member, inner] of Object.entries(value)) line.set(`${id}.${field}.${member}`, tree(inner));
        } else if (field !== "type") line.set(`${id}.${field}`, tree(value));
      }
    }
    if (error !== undefined) line.set("error", error);
    return line;
  }
}
