// What a person brings: a file that is opened or dropped, a text that is pasted.

import { draftFrom, emptyDraft } from "./draft.js";
import { parse, write } from "./json-tree.js";
import { rowsOf } from "./rows.js";
import { linked } from "./storage.js";

export const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** What a text holds, as `{ kind, ... }`:
 *
 *    request   { draft }            a request, a labelled row, or the link of a playground
 *    run       { draft, request, reply }   a run that was saved
 *    rows      { file }             the rows of a file, `name` says of which form
 *    state     { state }            anything else: the draft's state that shows it
 *
 *  Throws an Error that says why a request, rows or a link cannot be shown. */
export async function recognised(text, nodes, name = "") {
  const file = rowsOf(text, name);
  if (file !== null) return { kind: "rows", file };
  const fromLink = /^https?:\/\/\S+$/.test(text.trim()) ? await linked(text.trim()) : null;
  if (fromLink !== null) return { kind: "request", draft: draftFrom(fromLink, nodes) };
  let tree;
  try {
    tree = parse(text);
  } catch {
    return { kind: "state", state: { ...emptyDraft().state, text } };
  }
  if (tree instanceof Map && tree.get("questions") instanceof Map)
    return { kind: "request", draft: draftFrom(write(tree), nodes) };
  if (isRun(tree)) {
    const request = write(tree.get("request"));
    const { body, headers, milliseconds } = JSON.parse(text).reply;
    return { kind: "run", draft: draftFrom(request, nodes), request, reply: { body, headers, milliseconds } };
  }
  const request = new Map([
    ["state", tree],
    ["questions", new Map()],
  ]);
  return { kind: "state", state: draftFrom(write(request), nodes).state };
}

function isRun(tree) {
  if (!(tree instanceof Map)) return false;
  const [request, reply] = [tree.get("request"), tree.get("reply")];
  return (
    request instanceof Map &&
    request.get("questions") instanceof Map &&
    reply instanceof Map &&
    reply.get("body") instanceof Map &&
    reply.get("headers") instanceof Map
  );
}

/** Take the files that are dropped anywhere on the page; `take` gets the first. */
export function takeDrops(take) {
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) document.body.classList.remove("dropping");
  });
  addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (!holdsFiles(event)) return;
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
}

/** The text of a file. Throws an Error that says why it cannot be read. */
export async function textOf(file) {
  if (file.size > MAX_FILE_BYTES) throw new Error("it is larger than the 64 MB that this page takes");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error("it is no text in UTF-8");
  }
}

/** Have the browser save a text as a file. */
export function saveFile(name, text, type = "application/json") {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  URL.revokeObjectURL(url);
}
