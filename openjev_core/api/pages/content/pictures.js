// Answers as pictures. The three built-in types have one each; an answer of another type, or of a form that its picture
// does not know, gets a view made from its values.

import { h, svg } from "./element.js";
import { barList, distributionOf, isProbability, percent, valuesView } from "./values.js";

/** The picture of an answer. `help` has the descriptions of its fields. */
export function pictureOf(answer, help) {
  const draw = { noul: gauge, choice: bars, score: ladder }[answer.type];
  return (draw && draw(answer)) ?? valuesView(answer, help);
}

/** What a picture does not show. */
export function restOf(answer) {
  const shown = { noul: ["noul"], choice: ["choice", "probabilities"], score: ["score", "legend", "probabilities"] }[
    answer.type
  ];
  const rest = Object.entries(answer).filter(([name]) => !["type", "confidence", "x_detail"].includes(name));
  return rest.filter(([name]) => (shown ? !shown.includes(name) : name.startsWith("x_")));
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
