// The runs that are kept: open one again, pin one to compare others with it, forget them.

import { h, iconButton } from "./element.js";
import { parse } from "./json-tree.js";
import { percent } from "./values.js";

const WORDS = 120;

/** The view of a history. `open`, `save` are called with an entry; `changed` after what is pinned or kept has changed. */
export function runsView(history, { open, save, changed }) {
  const keep = h("input", {
    type: "checkbox",
    checked: history.on,
    on: {
      change: () => {
        history.on = keep.checked;
        changed();
      },
    },
  });
  const clear = h(
    "button",
    {
      type: "button",
      class: "quiet",
      disabled: history.entries.length === 0,
      on: {
        click: () => {
          history.clear();
          changed();
        },
      },
    },
    "Clear",
  );
  const head = h("div", { class: "panel-head" }, h("label", { class: "check" }, keep, "Keep runs in this browser"), clear);
  const note = history.persists
    ? "The last 50, on this machine alone. Pin one, and later answers show how they differ from it."
    : "This browser keeps nothing: the runs go when the page is left.";
  const items = history.entries.map((entry) => runRow(entry, { history, open, save, changed }));
  const list = items.length > 0 ? h("ol", { class: "cards" }, items) : h("p", { class: "empty" }, "No runs yet.");
  return [head, h("p", { class: "hint" }, note), list];
}

function runRow(entry, { history, open, save, changed }) {
  const { state, answers } = described(entry);
  const when = new Date(entry.at);
  const name = `the run of ${when.toLocaleTimeString()}`;
  const pin = h(
    "button",
    {
      type: "button",
      class: "toggle",
      "aria-pressed": String(entry.pinned),
      "aria-label": `Compare with ${name}`,
      on: {
        click: () => {
          history.pin(entry.pinned ? null : entry);
          changed();
        },
      },
    },
    entry.pinned ? "Pinned" : "Pin",
  );
  const remove = iconButton("remove", `Forget ${name}`, () => {
    history.remove(entry);
    changed();
  });
  return h(
    "li",
    { class: "card run" },
    h(
      "div",
      { class: "card-head" },
      h("h3", {}, h("time", { datetime: when.toISOString() }, when.toLocaleString())),
      h("span", { class: "tag" }, entry.reply === null ? "draft" : entry.reply.body.model),
      h("div", { class: "row-tools" }, entry.reply === null ? null : pin, remove),
    ),
    h("p", { class: "asked", dir: "auto" }, state),
    answers.length > 0 ? h("dl", { class: "facts" }, answers) : null,
    h(
      "div",
      { class: "run-buttons" },
      h("button", { type: "button", class: "quiet", on: { click: () => open(entry) } }, "Open"),
      h("button", { type: "button", class: "quiet", on: { click: () => save(entry) } }, "Save"),
    ),
  );
}

function described({ request, reply }) {
  const { state } = JSON.parse(request);
  const text = typeof state === "string" ? state : JSON.stringify(state ?? null);
  const ids = reply === null ? [] : [...parse(request).get("questions").keys()];
  return {
    state: text.length > WORDS ? `${text.slice(0, WORDS)} …` : text || "(empty state)",
    answers: ids
      .filter((id) => Object.hasOwn(reply.body.answers, id))
      .map((id) => h("div", {}, h("dt", { dir: "auto" }, id), h("dd", { dir: "auto" }, brief(reply.body.answers[id])))),
  };
}

/** An answer in a few words. */
export function brief(answer) {
  if (typeof answer.noul === "number") return percent(answer.noul);
  if (typeof answer.choice === "string") return `${answer.choice} ${percent(answer.probabilities?.[answer.choice] ?? 0)}`;
  if (typeof answer.score === "number") return answer.score.toFixed(2);
  const first = Object.entries(answer).find(([name]) => name !== "type" && name !== "confidence");
  return first === undefined ? "–" : `${first[0]} ${JSON.stringify(first[1]).slice(0, WORDS)}`;
}
