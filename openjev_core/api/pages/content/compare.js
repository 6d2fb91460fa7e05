// How an answer differs from that of the pinned run.

import { h } from "./element.js";
import { percent } from "./values.js";

const NOTICEABLE = 0.0005;

const BESIDE = new Set(["x_detail"]);

/** The numbers of an answer by where they stand, `["probabilities", "billing"]` say; what is no number is left out. */
function numbersOf(value, path = []) {
  if (typeof value === "number") return [[path, value]];
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, inner]) => (BESIDE.has(name) ? [] : numbersOf(inner, [...path, name])));
}

/** A table of what has changed from `before` to `now`, two answers to questions of one name. */
export function differences(before, now) {
  if (before === undefined || before.type !== now.type)
    return h("p", { class: "hint compared" }, "The pinned run has no answer to compare with.");
  const earlier = new Map(numbersOf(before).map(([path, number]) => [JSON.stringify(path), number]));
  const rows = numbersOf(now)
    .map(([path, number]) => ({ path, number, was: earlier.get(JSON.stringify(path)) }))
    .filter(({ number, was }) => was === undefined || Math.abs(number - was) >= NOTICEABLE);
  if (rows.length === 0) return h("p", { class: "hint compared" }, "As in the pinned run.");
  const lines = rows.map(({ path, number, was }) => {
    const probability = [number, was ?? 0].every((one) => one >= 0 && one <= 1);
    const shown = (one) => (probability ? percent(one) : one.toFixed(2));
    return h(
      "tr",
      {},
      h("th", { scope: "row", dir: "auto" }, path.at(-1)),
      h("td", {}, was === undefined ? "–" : shown(was)),
      h("td", {}, shown(number)),
      h("td", {}, was === undefined ? "–" : change(number - was, probability)),
    );
  });
  const heads = ["Pinned", "Now", "Change"].map((name) => h("th", { scope: "col" }, name));
  return h(
    "table",
    { class: "compared" },
    h("caption", {}, "Against the pinned run"),
    h("thead", {}, h("tr", {}, h("td", {}), heads)),
    h("tbody", {}, lines),
  );
}

function change(difference, probability) {
  const sign = difference > 0 ? "+" : "−";
  const size = Math.abs(difference);
  return probability ? `${sign}${(size * 100).toFixed(1)} points` : `${sign}${size.toFixed(2)}`;
}
