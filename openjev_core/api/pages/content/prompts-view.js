// The prompts of a request, as text or token by token.

import { h } from "./element.js";

const FIRST_TOKENS = 1500;

/** The view of a preview. `form` is `text` or `tokens`. */
export function promptsView(preview, form) {
  const prefix = h(
    "details",
    { class: "card prompt", open: true },
    h(
      "summary",
      { class: "card-head" },
      h("h3", {}, "Shared prefix"),
      h("span", { class: "tag" }, `${preview.prefix_tokens.length} tokens`),
    ),
    form === "tokens" ? tokens(preview.prefix_tokens) : h("pre", { class: "code" }, preview.prefix),
  );
  const intro = h(
    "p",
    { class: "hint" },
    "Read once. Each branch continues it, and the model’s first token after it is read over the branch’s labels.",
  );
  const further = preview.asks_on.map((id) =>
    h("p", { class: "hint" }, h("code", {}, id), " asks on once these are read; what, depends on what is read."),
  );
  return [intro, prefix, ...preview.branches.map((branch) => branchCard(branch, preview.prefix, form)), ...further];
}

function branchCard(branch, prefix, form) {
  const rest = branch.prompt.startsWith(prefix) ? branch.prompt.slice(prefix.length) : branch.prompt;
  const labels = Object.entries(branch.labels).map(([label, text]) => h("li", {}, h("code", {}, label), ` ${text}`));
  return h(
    "section",
    { class: "card prompt" },
    h(
      "div",
      { class: "card-head" },
      h("h3", {}, branch.question_id),
      h("span", { class: "tag" }, `readout ${branch.readout + 1}`),
      h("span", { class: "tag" }, `${branch.tokens.length} tokens`),
    ),
    form === "tokens" ? tokens(branch.tokens) : h("pre", { class: "code" }, rest),
    h("details", { class: "more" }, h("summary", {}, `${labels.length} labels`), h("ul", { class: "labels" }, labels)),
  );
}

function tokens(list) {
  const body = h("p", { class: "tokens" }, list.slice(0, FIRST_TOKENS).map(token));
  if (list.length <= FIRST_TOKENS) return body;
  const more = h(
    "button",
    { type: "button", class: "quiet", on: { click: all } },
    `Show the other ${list.length - FIRST_TOKENS} tokens`,
  );
  function all() {
    body.append(...list.slice(FIRST_TOKENS).map(token));
    more.remove();
  }
  return h("div", {}, body, more);
}

function token({ id, text }) {
  const shown = text === "" ? "␀" : text.replaceAll("\n", "⏎\n").replaceAll("\t", "⇥\t");
  return h("span", { class: "token", title: `token ${id}` }, shown);
}
