// What an evaluation answered, and what it took.

import { h } from "./element.js";
import { write } from "./json-tree.js";
import { confidenceOf, pictureOf, restOf } from "./pictures.js";

const PHASES = ["prepare", "prefill", "branches"];

/** The view of a finished evaluation. `request` is the tree that was sent, `reply` what came back. */
export function evaluationView(request, reply) {
  const questions = [...request.get("questions")];
  const cards = questions.map(([id, question]) => answerCard(id, question, own(reply.body.answers, id)));
  return h("div", { class: "evaluation" }, summary(reply), h("ol", { class: "cards" }, cards));
}

// A question may be called "constructor".
function own(object, key) {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function answerCard(id, question, answer) {
  const asked = question.get("instructions");
  const body =
    answer === undefined
      ? h("p", { class: "notice bad" }, "The server sent no answer to this question.")
      : answerBody(answer);
  return h(
    "li",
    { class: "card answer" },
    h(
      "div",
      { class: "card-head" },
      h("h3", { class: "answer-id" }, id),
      h("span", { class: "tag" }, question.get("type")),
      answer && confidenceOf(answer),
    ),
    asked === undefined || asked === null
      ? null
      : h("p", { class: "asked" }, typeof asked === "string" ? asked : write(asked)),
    body,
  );
}

function answerBody(answer) {
  if (answer.x_error) return h("p", { class: "notice bad" }, `${answer.x_error.error_type}: ${answer.x_error.message}`);
  const rest = restOf(answer).map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value))),
  );
  return [
    pictureOf(answer),
    rest.length > 0 ? h("dl", { class: "facts" }, rest) : null,
    h(
      "details",
      { class: "more" },
      h("summary", {}, "JSON"),
      h("pre", { class: "code" }, JSON.stringify(answer, null, 2)),
    ),
  ];
}

function summary({ body, headers, milliseconds }) {
  const cached = headers.get("x-openjev-cached-tokens");
  const facts = [
    ["model", body.model],
    ["input tokens", count(body.usage.input_tokens)],
    [
      "of them cached",
      cached === null ? "not reported" : `${count(Number(cached))} (${share(Number(cached), body.usage.input_tokens)})`,
    ],
    ["shared prefix", `${count(Number(headers.get("x-openjev-prefix-tokens")))} tokens`],
    ["output tokens", count(body.usage.output_tokens)],
    ["request", headers.get("x-typesafe-request-id")],
  ];
  return h(
    "section",
    { class: "summary", "aria-label": "Cost of the evaluation" },
    timing(headers.get("server-timing") ?? "", milliseconds),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))),
    ),
  );
}

function timing(header, total) {
  const durations = new Map();
  for (const entry of header.split(",")) {
    const found = /^\s*([\w-]+)\s*;.*?dur=([\d.]+)/.exec(entry);
    if (found && PHASES.includes(found[1])) durations.set(found[1], Number(found[2]));
  }
  const known = [...durations.values()].reduce((sum, one) => sum + one, 0);
  // The browser's clock also counts the way there and back.
  const parts = [...durations, ["transfer", Math.max(0, total - known)]];
  const whole = Math.max(total, known);
  const bar = h(
    "div",
    {
      class: "stack",
      role: "img",
      "aria-label": parts.map(([name, duration]) => `${name} ${duration.toFixed(1)} ms`).join(", "),
    },
    parts.map(([name, duration]) => {
      const part = h("span", { class: `stack-part ${name}` });
      part.style.setProperty("--share", whole > 0 ? duration / whole : 0);
      return part;
    }),
  );
  const legend = parts.map(([name, duration]) =>
    h(
      "li",
      { class: name },
      h("span", { class: "swatch", "aria-hidden": "true" }),
      `${name} `,
      h("strong", {}, `${milliseconds(duration)}`),
    ),
  );
  return h(
    "div",
    { class: "timing" },
    h("p", { class: "figure" }, h("strong", {}, milliseconds(whole)), " in all"),
    bar,
    h("ul", { class: "legend" }, legend),
  );
}

/** A duration for reading. */
export function milliseconds(duration) {
  if (duration >= 1000) return `${(duration / 1000).toFixed(2)} s`;
  return duration >= 100 ? `${duration.toFixed(0)} ms` : `${duration.toFixed(1)} ms`;
}

function count(number) {
  return number.toLocaleString("en");
}

function share(part, whole) {
  return whole > 0 ? `${((part / whole) * 100).toFixed(0)}%` : "–";
}
