// Answers as pictures. The three built-in types have one each; an answer of another type, or of a form that its picture
// does not know, gets a view made from its values.

import { h, svg } from "./element.js";

const MANY = 12;

/** The picture of an answer. */
export function pictureOf(answer) {
  const draw = { noul: gauge, choice: bars, score: ladder }[answer.type];
  return (draw && draw(answer)) ?? generic(answer);
}

/** What a picture does not show. */
export function restOf(answer) {
  const shown = { noul: ["noul"], choice: ["choice", "probabilities"], score: ["score", "legend", "probabilities"] }[
    answer.type
  ];
  if (!shown) return [];
  return Object.entries(answer).filter(([name]) => !["type", "confidence", ...shown].includes(name));
}

/** A probability for reading; the exact number stays in the answer's JSON. */
export function percent(probability) {
  if (probability > 0 && probability < 0.001) return "< 0.1%";
  if (probability < 1 && probability > 0.999) return "> 99.9%";
  return `${(probability * 100).toFixed(1)}%`;
}

function isProbability(value) {
  return typeof value === "number" && value >= 0 && value <= 1;
}

function distributionOf(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  const entries = Object.entries(value);
  return entries.length > 0 && entries.every(([, number]) => isProbability(number)) ? entries : null;
}

function gauge({ noul }) {
  if (!isProbability(noul)) return null;
  const arc = "M 16 100 A 84 84 0 0 1 184 100";
  const length = Math.PI * 84;
  const fill = svg("path", { d: arc, class: "gauge-fill" });
  fill.style.strokeDasharray = `${noul * length} ${length}`;
  if (noul === 0) fill.style.stroke = "none";
  const drawing = svg(
    "svg",
    { viewBox: "0 0 200 126", class: "gauge", role: "img", "aria-label": `P(yes) is ${percent(noul)}` },
    svg("path", { d: arc, class: "gauge-track" }),
    fill,
    svg("text", { x: 100, y: 88, class: "gauge-number" }, percent(noul)),
    svg("text", { x: 100, y: 107, class: "gauge-caption" }, "P(yes)"),
    svg("text", { x: 16, y: 122, class: "gauge-end" }, "no"),
    svg("text", { x: 184, y: 122, class: "gauge-end" }, "yes"),
  );
  return h("div", { class: "picture" }, drawing);
}

function bars({ choice, probabilities }) {
  const entries = distributionOf(probabilities);
  if (entries === null || typeof choice !== "string") return null;
  return barList(entries, choice);
}

function barList(entries, marked) {
  const sorted = entries.map((entry, index) => [...entry, index]).sort((a, b) => b[1] - a[1] || a[2] - b[2]);
  const items = sorted.map(([name, probability]) => {
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", probability);
    return h(
      "li",
      { class: name === marked ? "bar-row best" : "bar-row" },
      h("span", { class: "bar-name", dir: "auto" }, name === "" ? "(empty)" : name),
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

function ladder({ score, legend, probabilities }) {
  const entries = distributionOf(probabilities);
  if (entries === null || typeof score !== "number" || legend === null || typeof legend !== "object") return null;
  const top = entries.length - 1;
  const highest = Math.max(...entries.map(([, probability]) => probability));
  const deviation = Math.sqrt(entries.reduce((sum, [level, p]) => sum + p * (Number(level) - score) ** 2, 0));
  const rungs = entries
    .map(([level, probability]) => {
      const bar = h("span", { class: "bar", "aria-hidden": "true" });
      bar.style.setProperty("--share", probability);
      return h(
        "li",
        { class: probability === highest ? "rung best" : "rung" },
        h("span", { class: "rung-level" }, level),
        h("span", { class: "rung-name", dir: "auto" }, shown(legend[level])),
        h("span", { class: "bar-number", title: String(probability) }, percent(probability)),
        h("span", { class: "bar-track" }, bar),
      );
    })
    .reverse();
  const fromTop = (level) => (top - Math.min(top, Math.max(0, level)) + 0.5) / entries.length;
  const range = h("span", { class: "range" });
  range.style.setProperty("--from-top", fromTop(score + deviation));
  range.style.setProperty("--to-top", fromTop(score - deviation));
  const marker = h("span", { class: "marker" });
  marker.style.setProperty("--from-top", fromTop(score));
  return h(
    "div",
    { class: "picture" },
    h(
      "p",
      { class: "figure" },
      h("strong", { title: String(score) }, score.toFixed(2)),
      ` expected, of 0 to ${top}; `,
      h("span", { title: "One standard deviation to either side" }, `± ${deviation.toFixed(2)}`),
    ),
    h(
      "div",
      { class: "ladder" },
      h("div", { class: "rail", "aria-hidden": "true" }, range, marker),
      h("ol", { class: "rungs" }, rungs),
    ),
  );
}

/** Any answer: distributions as bars, probabilities as meters, everything else as itself. */
function generic(answer) {
  const texts = new Set(Object.values(answer).filter((value) => typeof value === "string"));
  const parts = Object.entries(answer)
    .filter(([name]) => name !== "type" && name !== "confidence")
    .map(([name, value]) => {
      const entries = distributionOf(value);
      const marked = entries?.map(([key]) => key).find((key) => texts.has(key));
      return h(
        "div",
        { class: "value" },
        h("dt", {}, name),
        h("dd", {}, entries ? barList(entries, marked) : plain(value)),
      );
    });
  return h("dl", { class: "picture values" }, parts);
}

function plain(value) {
  if (Array.isArray(value) && value.length > 0 && value.every((one) => typeof one !== "object")) {
    return h(
      "ul",
      { class: "pills" },
      value.map((one) => h("li", { dir: "auto" }, String(one))),
    );
  }
  if (value === null || typeof value === "object") return h("pre", { class: "code" }, JSON.stringify(value, null, 2));
  return h("span", { class: typeof value === "number" ? "number" : "text", dir: "auto" }, String(value));
}

function shown(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** How sure the answer is, as a number and a short bar. */
export function confidenceOf(answer) {
  if (!isProbability(answer.confidence)) return null;
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--share", answer.confidence);
  return h(
    "div",
    { class: "confidence", title: `confidence ${answer.confidence}` },
    h("span", {}, "confidence ", h("strong", {}, answer.confidence.toFixed(2))),
    h("span", { class: "bar-track" }, bar),
  );
}
