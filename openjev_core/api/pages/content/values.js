// The values of an answer, by what they mean: distributions as bars, records as tables, numbers rounded for reading.

import { h, prose } from "./element.js";

const MANY = 12;
const WHOLE = 0.005;

export function isProbability(value) {
  return typeof value === "number" && value >= 0 && value <= 1;
}

/** A probability for reading; the exact number stays in the answer's JSON. */
export function percent(probability) {
  if (probability > 0 && probability < 0.001) return "< 0.1%";
  if (probability < 1 && probability > 0.999) return "> 99.9%";
  return `${(probability * 100).toFixed(1)}%`;
}

/** A number for reading: four digits that count, and no fraction where it has none. */
export function rounded(number) {
  return Number.isInteger(number) ? String(number) : String(Number(number.toPrecision(4)));
}

/** The entries of an object of probabilities; null for anything else. */
export function distributionOf(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  const entries = Object.entries(value);
  return entries.length > 0 && entries.every(([, number]) => isProbability(number)) ? entries : null;
}

/** Bars, the longest first. `marked` is the name of the one that is the answer; `others` are names that stand for no option. */
export function barList(entries, marked, others = new Set()) {
  const sorted = entries.map((entry, index) => [...entry, index]).sort((a, b) => b[1] - a[1] || a[2] - b[2]);
  const items = sorted.map(([name, probability]) => {
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", probability);
    const classes = ["bar-row", name === marked ? "best" : null, others.has(name) ? "other" : null];
    return h(
      "li",
      { class: classes.filter(Boolean).join(" ") },
      h("span", { class: "bar-name", dir: "auto" }, others.has(name) ? spaced(name) : name === "" ? "(empty)" : name),
      h("span", { class: "bar-number", title: String(probability) }, percent(probability)),
      h("span", { class: "bar-track" }, bar),
    );
  });
  const first = h("ol", { class: "bars" }, items.slice(0, MANY));
  if (items.length <= MANY) return h("div", { class: "picture" }, first);
  const rest = h(
    "details",
    { class: "more" },
    h("summary", {}, `${items.length - MANY} more`),
    h("ol", { class: "bars" }, items.slice(MANY)),
  );
  return h("div", { class: "picture" }, first, rest);
}

/** `none_of_these` as a person would say it. */
export function spaced(name) {
  return name.replaceAll(/[_-]+/g, " ").trim();
}

/** Any answer. `help` has the description of each field, where its type gives one. */
export function valuesView(answer, help) {
  const fields = Object.entries(answer).filter(([name]) => !["type", "confidence"].includes(name) && !name.startsWith("x_"));
  const texts = new Set(Object.values(answer).filter((value) => typeof value === "string"));
  const taken = new Set();
  const parts = fields.map(([name, value]) => {
    const entries = distributionOf(value);
    if (entries === null) return [name, () => plain(value)];
    // Probabilities beside a distribution that make it whole, as those of a refusal do, are read with it.
    const beside = fields.filter(([other, one]) => other !== name && isProbability(one));
    const missing = 1 - sum(entries);
    const complete = missing > WHOLE && beside.length > 0 && Math.abs(sum(beside) - missing) < WHOLE;
    if (complete) for (const [other] of beside) taken.add(other);
    const marked = entries.map(([key]) => key).find((key) => texts.has(key));
    const all = complete ? [...entries, ...beside] : entries;
    return [name, () => barList(all, marked, new Set(complete ? beside.map(([other]) => other) : []))];
  });
  const shown = parts.filter(([name]) => !taken.has(name));
  return h(
    "dl",
    { class: "picture values" },
    shown.map(([name, view]) =>
      h(
        "div",
        { class: "value" },
        h("dt", {}, name),
        help?.has(name) ? h("dd", { class: "hint" }, prose(help.get(name))) : null,
        h("dd", {}, view()),
      ),
    ),
  );
}

function sum(entries) {
  return entries.reduce((total, [, one]) => total + one, 0);
}

function plain(value) {
  if (Array.isArray(value) && value.length > 0) {
    if (value.every((one) => typeof one !== "object"))
      return h(
        "ul",
        { class: "pills" },
        value.map((one) => h("li", { dir: "auto" }, scalar(one))),
      );
    if (value.every(isRecord)) return table(value.map((one, index) => [String(index + 1), one]));
  }
  if (isRecord(value) && Object.keys(value).length > 0 && Object.values(value).every(isRecord))
    return table(Object.entries(value));
  if (isRecord(value) && Object.keys(value).length > 0 && Object.values(value).every((one) => !isObject(one)))
    return table(Object.entries(value).map(([name, one]) => [name, { "": one }]));
  if (isObject(value)) return h("pre", { class: "code" }, JSON.stringify(value, null, 2));
  return h("span", { class: typeof value === "number" ? "number" : "text", dir: "auto", title: String(value) }, scalar(value));
}

function scalar(value) {
  return typeof value === "number" ? rounded(value) : String(value);
}

function isObject(value) {
  return value !== null && typeof value === "object";
}

function isRecord(value) {
  return isObject(value) && !Array.isArray(value);
}

/** Records of a name each, a column per field. */
function table(rows) {
  const columns = [...new Set(rows.flatMap(([, record]) => Object.keys(record)))];
  const cell = (value) =>
    value === undefined ? "" : isObject(value) ? JSON.stringify(value) : scalar(value);
  const head = h("tr", {}, h("td", {}), columns.map((name) => h("th", { scope: "col", dir: "auto" }, name)));
  const lines = rows.map(([name, record]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", dir: "auto" }, name),
      columns.map((column) => h("td", { title: cellTitle(record[column]), dir: "auto" }, cell(record[column]))),
    ),
  );
  const named = columns.some((name) => name !== "");
  return h(
    "div",
    { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Table" },
    h("table", { class: "records" }, named ? h("thead", {}, head) : null, h("tbody", {}, lines)),
  );
}

function cellTitle(value) {
  return typeof value === "number" ? String(value) : null;
}
