// Which sentences of the state carry the answers: the request is asked again without each of them.

import { askAll } from "./asking.js";
import { h } from "./element.js";
import { parse } from "./json-tree.js";
import { Refusal } from "./service.js";
import { percent } from "./values.js";

const MOST_CALLS = 60;
const STRONGEST = 5;
const NOTICEABLE = 0.005;

/** The view for a run that was answered; null where the state is one sentence. `detailed(request)` gives the tree that
 *  asks for `x_detail` too. */
export function whatIf({ request, reply }, service, detailed) {
  const tree = parse(request);
  const pieces = piecesOf(tree.get("state"));
  const known = Object.entries(reply.body.answers ?? {}).filter(([, answer]) => answer.x_detail);
  if (pieces.length < 2 || known.length === 0) return null;
  const each = pieces[0].length === 1 ? "each sentence" : `each ${pieces[0].length} sentences`;
  const status = h("p", { class: "hint", role: "status" });
  const result = h("div");
  const button = h("button", { type: "button", class: "quiet" });
  let running = null;
  label();
  button.addEventListener("click", () => (running === null ? run() : running.abort()));

  function label() {
    button.textContent = running === null ? `Ask without ${each} (${pieces.length} calls)` : "Stop";
  }

  async function run() {
    running = new AbortController();
    label();
    const found = new Map();
    let refused = null;
    try {
      await askAll(pieces, {
        service,
        signal: running.signal,
        requestOf: (piece) => new Map([...detailed(tree), ["state", without(tree.get("state"), piece)]]),
        done(piece, { answers, error }) {
          if (answers) found.set(piece, answers);
          else refused = error;
          status.textContent = `${found.size} of ${pieces.length}`;
        },
      });
      status.textContent =
        refused === null ? "" : `${pieces.length - found.size} calls were refused, the last one with: ${refused}`;
      result.replaceChildren(resultView(tree.get("state"), pieces, found, known));
    } catch (error) {
      status.textContent = error.name === "AbortError" ? "Stopped." : error.message;
      if (error.name !== "AbortError" && !(error instanceof Refusal)) reportError(error);
    } finally {
      running = null;
      label();
    }
  }

  return h(
    "section",
    { class: "card what-if" },
    h("h3", {}, "What carries the answers?"),
    h("p", { class: "hint" }, "The same questions about the state without one part at a time show what moves them."),
    button,
    status,
    result,
  );
}

/** The sentences of a state in reading order, each as `{ path, start, end }`, in groups of which one is left out at a time:
 *  alone, or several together where there are many. */
function piecesOf(state) {
  const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });
  const sentences = textsOf(state, []).flatMap(({ path, text }) =>
    [...segmenter.segment(text)]
      .filter(({ segment }) => segment.trim() !== "")
      .map(({ segment, index }) => ({ path: key(path), start: index, end: index + segment.length })),
  );
  const size = Math.ceil(sentences.length / MOST_CALLS);
  const groups = [];
  for (let at = 0; at < sentences.length; at += size) groups.push(sentences.slice(at, at + size));
  return groups;
}

function key(path) {
  return JSON.stringify(path);
}

/** The texts of a state that a person wrote: of a message its content, of other objects every string. */
function textsOf(tree, path) {
  if (typeof tree === "string") return [{ path, text: tree }];
  if (Array.isArray(tree)) return tree.flatMap((one, index) => textsOf(one, [...path, index]));
  if (!(tree instanceof Map)) return [];
  const names = tree.has("role") ? ["content"] : tree.get("type") === "text" ? ["text"] : [...tree.keys()];
  return names.filter((name) => tree.has(name)).flatMap((name) => textsOf(tree.get(name), [...path, name]));
}

/** A state without some sentences. */
function without(tree, cuts, path = []) {
  if (typeof tree === "string")
    return cuts
      .filter((cut) => cut.path === key(path))
      .reduceRight((text, { start, end }) => text.slice(0, start) + text.slice(end), tree);
  if (Array.isArray(tree)) return tree.map((one, index) => without(one, cuts, [...path, index]));
  if (tree instanceof Map) return new Map([...tree].map(([name, one]) => [name, without(one, cuts, [...path, name])]));
  return tree;
}

/** What an answer says first: its name, its number, and the size that a number of its kind may have. */
function leading(answer, readout, option) {
  if (typeof answer.noul === "number") return { name: "P(yes)", number: answer.noul, size: 1 };
  if (typeof answer.score === "number" && answer.type === "score")
    return { name: "expected level", number: answer.score, size: answer.x_detail[0].options.length - 1 };
  const { options, probabilities } = answer.x_detail[readout];
  return { name: `P(${options[option]})`, number: probabilities[option], size: 1 };
}

/** How an answer moves when a part of the state is left out: `{ name, was, now, share }`, `share` of all that it could move;
 *  null where the two are not alike. Of several readouts, the one that moves most. */
function move(before, after) {
  if (after?.type !== before.type || after.x_detail?.length !== before.x_detail.length) return null;
  const moves = before.x_detail.map(({ probabilities }, readout) => {
    const option = probabilities.indexOf(Math.max(...probabilities));
    if (after.x_detail[readout].probabilities.length !== probabilities.length) return null;
    const was = leading(before, readout, option);
    const now = leading(after, readout, option);
    return { name: was.name, was, now, share: (was.number - now.number) / Math.max(1, was.size) };
  });
  if (moves.includes(null)) return null;
  return moves.reduce((most, one) => (Math.abs(one.share) > Math.abs(most.share) ? one : most));
}

function resultView(state, pieces, found, known) {
  const view = h("div");
  const select = h(
    "select",
    { "aria-label": "The answer that is looked at" },
    known.map(([id]) => h("option", { value: id }, id)),
  );
  const show = () => {
    const before = Object.fromEntries(known)[select.value];
    const moves = new Map(pieces.map((piece) => [piece, found.has(piece) ? move(before, found.get(piece)[select.value]) : null]));
    view.replaceChildren(shadedView(state, moves), strongestView(state, moves));
  };
  select.addEventListener("change", show);
  show();
  return h("div", {}, known.length > 1 ? select : null, view);
}

/** The state's texts, each part shaded by how far leaving it out moves the answer. */
function shadedView(state, moves) {
  const texts = textsOf(state, []).map(({ path, text }) => {
    const mine = [...moves].flatMap(([piece, moved]) =>
      piece.filter((one) => one.path === key(path)).map((one) => ({ ...one, moved })),
    );
    const marks = mine.map(({ start, end, moved }) => {
      const mark = h("mark", { title: moved === null ? "not known" : words(moved) }, text.slice(start, end));
      mark.classList.toggle("against", moved !== null && moved.share < 0);
      mark.style.setProperty("--share", Math.abs(moved?.share ?? 0));
      return mark;
    });
    return h(
      "p",
      { dir: "auto" },
      path.length > 0 ? h("span", { class: "hint" }, `${path.filter((part) => part !== "content").join(" › ")} `) : null,
      marks,
    );
  });
  return h("div", { class: "shaded" }, texts);
}

function words({ name, was, now, share }) {
  const shown = ({ number, size }) => (size === 1 ? percent(number) : number.toFixed(2));
  const way = share > 0 ? "lower" : "higher";
  return `without it ${name} is ${way}: ${shown(now)}, not ${shown(was)}`;
}

function strongestView(state, moves) {
  const texts = new Map(textsOf(state, []).map(({ path, text }) => [key(path), text]));
  const strongest = [...moves]
    .filter(([, moved]) => moved !== null && Math.abs(moved.share) >= NOTICEABLE)
    .sort(([, a], [, b]) => Math.abs(b.share) - Math.abs(a.share))
    .slice(0, STRONGEST);
  if (strongest.length === 0) return h("p", { class: "hint" }, "No part of the state moves this answer alone.");
  const items = strongest.map(([piece, moved]) => {
    const text = piece.map(({ path, start, end }) => texts.get(path).slice(start, end)).join("").trim();
    return h("li", {}, h("q", { dir: "auto" }, text), ` – ${words(moved)}`);
  });
  return h("ol", { class: "strongest" }, items);
}
