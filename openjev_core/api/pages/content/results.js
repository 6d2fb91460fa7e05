// What an evaluation answered, and what it took.

import { h } from "./element.js";
import { write } from "./json-tree.js";
import { differences } from "./compare.js";
import { ordersView } from "./orders-view.js";
import { confidenceOf, pictureOf, restOf } from "./pictures.js";
import { percent, spaced } from "./values.js";

const HALF = 0.5;
const PHASES = ["queue", "prepare", "prefill", "branches"];

/** The view of a finished evaluation. `questions` is the tree of those that were sent, `reply` what came back, `before` the
 *  pinned run's answers or null, `types` the installed types; `prompts(id)` resolves to a question's branches or null. */
export function evaluationView(questions, reply, before, types, prompts) {
  const answers = reply.body.answers ?? {};
  const cards = [...questions].map(([id, question]) => {
    const answer = own(answers, id);
    const help = types.get(question.get("type"))?.help;
    const beside = answer && [ordersView(id, answer, () => prompts(id)), before && differences(own(before, id), answer)];
    return answerCard(id, question, answer, help, beside);
  });
  return h("div", { class: "evaluation" }, summary(reply), h("ol", { class: "cards" }, cards));
}

// A question may be called "constructor".
function own(object, key) {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function answerCard(id, question, answer, help, beside) {
  const asked = question.get("instructions");
  const body =
    answer === undefined
      ? h("p", { class: "notice bad" }, "The server sent no answer to this question.")
      : answerBody(answer, help, beside);
  return h(
    "li",
    { class: "card answer" },
    h(
      "div",
      { class: "card-head" },
      h("h3", { class: "answer-id", dir: "auto" }, id),
      h("span", { class: "tag" }, question.get("type")),
      answer && confidenceOf(answer),
    ),
    asked === undefined || asked === null
      ? null
      : h("p", { class: "asked", dir: "auto" }, typeof asked === "string" ? asked : write(asked)),
    body,
  );
}

function answerBody(answer, help, beside) {
  if (answer.x_error) return h("p", { class: "notice bad" }, `${answer.x_error.error_type}: ${answer.x_error.message}`);
  const rest = restOf(answer).map(([name, value]) => extension(name, value, help));
  return [
    pictureOf(answer, help),
    rest.length > 0 ? h("dl", { class: "facts" }, rest) : null,
    beside,
    h(
      "details",
      { class: "more" },
      h("summary", {}, "JSON"),
      h("pre", { class: "code" }, JSON.stringify(answer, null, 2)),
    ),
  ];
}

/** What the fields beyond an answer's own say, in words; those of others than openjev are shown as they are. */
const EXTENSIONS = {
  x_order_spread: (spread) => [`${(spread * 100).toFixed(1)} points`, null],
  x_label_mass: (mass) => [percent(mass), mass < HALF ? "most of the probability went to other tokens" : null],
  x_calibration: (part) => [
    { question: "fitted on this question", type: "fitted on questions of its type", none: "none fits" }[part] ?? part,
    null,
  ],
  x_accept: (accepted) => [accepted ? "yes" : "no", accepted ? null : "beneath what the calibration promises"],
};

function extension(name, value, help) {
  const plain = typeof value === "object" ? JSON.stringify(value) : String(value);
  const [shown, doubt] = EXTENSIONS[name]?.(value) ?? [plain, null];
  return h(
    "div",
    { title: [help?.get(name), plain].filter(Boolean).join("\n") },
    h("dt", {}, spaced(name.replace(/^x_/, ""))),
    h("dd", { class: doubt === null ? null : "doubtful" }, doubt === null ? shown : `${shown}: ${doubt}`),
  );
}

function summary({ body, headers, milliseconds }) {
  const cached = headers["x-openjev-cached-tokens"];
  const prefix = headers["x-openjev-prefix-tokens"];
  const { input_tokens: input, output_tokens: output } = body.usage ?? {};
  const facts = [
    ["model", body.model],
    ["input tokens", count(input)],
    [
      "of them cached",
      cached === undefined ? "not reported" : `${count(Number(cached))} (${share(Number(cached), input)})`,
    ],
    ["shared prefix", prefix === undefined ? "not reported" : `${count(Number(prefix))} tokens`],
    ["output tokens", count(output)],
    ["request", headers["x-typesafe-request-id"]],
  ];
  return h(
    "section",
    { class: "summary", "aria-label": "Cost of the evaluation" },
    timing(headers["server-timing"] ?? "", milliseconds),
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
  return typeof number === "number" ? number.toLocaleString("en") : "not reported";
}

function share(part, whole) {
  return whole > 0 ? `${((part / whole) * 100).toFixed(0)}%` : "–";
}
