// How good the answers are, where a file says what is right.

import { h } from "./element.js";
import { covered, measured } from "./verdicts.js";

const MOST_VALUES = 20;

/** The view of each question's measures, `{ id, judged }` each. */
export function measuresView(questions) {
  if (questions.length === 0) return null;
  return h(
    "section",
    { class: "measures", "aria-label": "How good the answers are" },
    h("h2", {}, "Against the labels"),
    h("div", { class: "measure-cards" }, questions.map(card)),
  );
}

function card({ id, judged }) {
  const { count, right, values, counts } = measured(judged);
  return h(
    "div",
    { class: "card" },
    h("h3", { dir: "auto" }, id),
    h(
      "p",
      { class: "figure" },
      h("strong", {}, `${((right / count) * 100).toFixed(1)}%`),
      ` right: ${right} of ${count}`,
    ),
    threshold(id, judged),
    values.length <= MOST_VALUES ? confusion(id, values, counts) : null,
  );
}

/** A threshold to slide: act on answers that are at least so probable. */
function threshold(id, judged) {
  const said = h("p", { class: "hint", role: "status" });
  const slider = h("input", {
    type: "range",
    min: "0",
    max: "1",
    step: "0.01",
    value: "0",
    "aria-label": `Least probability of ${id} to act on`,
    on: { input: show },
  });
  function show() {
    const least = Number(slider.value);
    const { count, wrong } = covered(judged, least);
    const share = ((count / judged.length) * 100).toFixed(0);
    const errors = count === 0 ? "no answer is left" : `${wrong} of them wrong (${((wrong / count) * 100).toFixed(1)}%)`;
    said.textContent = `From ${(least * 100).toFixed(0)}% on: ${count} of ${judged.length} answers (${share}%), ${errors}`;
  }
  show();
  return h("div", { class: "threshold" }, slider, said);
}

function confusion(id, values, counts) {
  const head = h("tr", {}, h("td", {}), values.map((value) => h("th", { scope: "col", dir: "auto" }, value)));
  const lines = values.map((meant) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", dir: "auto" }, meant),
      values.map((value) => {
        const number = counts.get(meant).get(value);
        const kind = number === 0 ? null : value === meant ? "right" : "wrong";
        return h("td", { class: kind }, String(number));
      }),
    ),
  );
  return h(
    "div",
    { class: "table-frame", tabindex: "0", role: "region", "aria-label": `Confusion of ${id}` },
    h(
      "table",
      { class: "confusion" },
      h("caption", {}, "Rows: the label. Columns: the answer."),
      h("thead", {}, head),
      h("tbody", {}, lines),
    ),
  );
}
