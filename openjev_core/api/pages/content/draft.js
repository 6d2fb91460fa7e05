// What a person is writing: the state, the questions and the orders, as plain data that can be stored.
//
//   { state: { mode, text, json, messages: [{ role, text }] }, questions: [{ id, type, fields }], orders }

import { blank, fromTree, KINDS, parsed, toTree } from "./kinds.js";
import { Digits, parse, write } from "./json-tree.js";

export const ROLES = ["system", "user", "assistant", "tool"];
export const MODES = ["text", "json", "chat"];

/** A draft of nothing. */
export function emptyDraft() {
  return { state: emptyState(), questions: [], orders: "" };
}

function emptyState() {
  return { mode: "text", text: "", json: "", messages: [{ role: "user", text: "" }] };
}

/** A question of an installed type, with nothing in it. */
export function emptyQuestion(type, node, taken) {
  let id = type;
  for (let count = 2; taken.has(id); count += 1) id = `${type}-${count}`;
  return { id, type, fields: blank(node, true) };
}

/** The request of a draft as a JSON tree, and what is wrong with it as `{ path, message }`. */
export function requestOf(draft, nodes) {
  const problems = [];
  const report = (path, message) => problems.push({ path, message });
  const state = stateOf(draft.state, report);
  const questions = new Map();
  for (const [index, { id, type, fields }] of draft.questions.entries()) {
    // A question is addressed by its number, since two may have one name.
    const path = ["questions", index];
    if (id === "") report(path, "a name is needed here: the answer comes under it");
    else if (questions.has(id)) report(path, "two questions have this name; names must differ");
    questions.set(id, new Map([["type", type], ...toTree(nodes.get(type), fields, path, report, true)]));
  }
  if (draft.questions.length === 0) report(["questions"], "add a question first");
  const request = new Map([
    ["model", "jev-latest"],
    ["state", state],
    ["questions", questions],
  ]);
  if (draft.orders !== "")
    request.set("x_orders", /^\d+$/.test(draft.orders) ? new Digits(draft.orders) : draft.orders);
  return { request, problems };
}

/** A request that asks what each order gave, too. */
export function detailed(request) {
  return new Map([...request, ["x_detail", true]]);
}

function stateOf(state, report) {
  if (state.mode === "text") return state.text;
  if (state.mode === "chat") return messagesTree(state.messages);
  if (state.json.trim() === "") {
    report(["state"], "write the state as JSON first");
    return null;
  }
  return parsed(state.json, ["state"], report);
}

function messagesTree(messages) {
  return messages.map(
    ({ role, text }) =>
      new Map([
        ["role", role],
        ["content", text],
      ]),
  );
}

/** What the JSON or the chat editor holds, as JSON. */
export function jsonOf({ mode, json, messages }) {
  return mode === "chat" ? write(messagesTree(messages), 2) : json;
}

/** The messages that a JSON text holds; null when it is no chat, or one with more than the chat editor shows. */
export function messagesFrom(tree) {
  const items = tree instanceof Map && tree.size === 1 && tree.has("messages") ? tree.get("messages") : tree;
  if (!Array.isArray(items) || items.length === 0) return null;
  const messages = items.map((item) => {
    const simple =
      item instanceof Map &&
      item.size === 2 &&
      ROLES.includes(item.get("role")) &&
      typeof item.get("content") === "string";
    return simple ? { role: item.get("role"), text: item.get("content") } : null;
  });
  return messages.includes(null) ? null : messages;
}

/** The draft of a request in JSON. Throws an Error that says what this page cannot show. */
export function draftFrom(text, nodes) {
  const request = parse(text);
  if (!(request instanceof Map)) throw new Error("a request is a JSON object");
  const draft = emptyDraft();
  draft.state = stateFrom(request.get("state"));
  const questions = request.get("questions");
  if (!(questions instanceof Map)) throw new Error("a request has an object of questions");
  for (const [id, question] of questions) {
    const type = question instanceof Map ? question.get("type") : undefined;
    if (!nodes.has(type)) throw new Error(`this server has no question type ${JSON.stringify(type ?? null)}`);
    const rest = new Map(question);
    rest.delete("type");
    const fields = fromTree(nodes.get(type), rest);
    if (fields === undefined) throw new Error(`the question ${JSON.stringify(id)} has not the form of its type`);
    draft.questions.push({ id, type, fields });
  }
  const orders = request.get("x_orders");
  if (orders instanceof Digits) draft.orders = orders.text;
  else if (typeof orders === "string") draft.orders = orders;
  return draft;
}

function stateFrom(tree) {
  const state = emptyState();
  const messages = messagesFrom(tree);
  if (typeof tree === "string") state.text = tree;
  else if (messages !== null && Array.isArray(tree)) Object.assign(state, { mode: "chat", messages });
  else if (tree !== undefined) Object.assign(state, { mode: "json", json: write(tree, 2) });
  return state;
}

/** A stored draft, and how many of its questions are lost: of a type that is no longer installed or has changed. */
export function reviveDraft(stored, nodes) {
  const draft = emptyDraft();
  let lost = 0;
  const { mode, text, json, messages } = stored?.state ?? {};
  if (MODES.includes(mode)) draft.state.mode = mode;
  if (typeof text === "string") draft.state.text = text;
  if (typeof json === "string") draft.state.json = json;
  if (Array.isArray(messages) && messages.length > 0 && messages.every(isMessage)) {
    draft.state.messages = messages.map(({ role, text: words }) => ({ role, text: words }));
  }
  for (const { id, type, fields } of Array.isArray(stored?.questions) ? stored.questions.filter((one) => one) : []) {
    const node = nodes.get(type);
    const revived = node && KINDS[node.kind].revive(node, fields);
    if (typeof id === "string" && revived !== undefined) draft.questions.push({ id, type, fields: revived });
    else lost += 1;
  }
  if (typeof stored?.orders === "string" && /^(\d{1,4}|full|)$/.test(stored.orders))
    draft.orders = stored.orders;
  return { draft, lost };
}

function isMessage(message) {
  return ROLES.includes(message?.role) && typeof message.text === "string";
}
