// How a form's drafts and the request's JSON turn into each other.
//
// A draft is what the form holds for a node: plain data that can be stored, and that may be half written. Each kind of
// node knows
//   blank      a draft of nothing
//   isEmpty    whether a draft says nothing
//   toTree     draft to JSON tree; what is wrong is reported, at a path
//   fromTree   JSON tree to draft, or undefined when the tree is of another kind
//   revive     stored data to draft, or undefined when it is none

import { Digits, parse, write } from "./json-tree.js";

const isText = (value) => typeof value === "string";
const asText = (value) => (isText(value) ? value : undefined);

/** Reads JSON that a person wrote; what is wrong with it is reported at its path. */
export function parsed(text, path, report) {
  try {
    return parse(text);
  } catch (error) {
    report(path, error.message);
    return null;
  }
}

export const KINDS = {
  content: {
    blank: () => ({ json: false, text: "" }),
    isEmpty: (_, draft) => draft.text.trim() === "",
    toTree: (_, draft, path, report) => (draft.json ? parsed(draft.text, path, report) : draft.text),
    fromTree: (_, tree) => (isText(tree) ? { json: false, text: tree } : { json: true, text: write(tree, 2) }),
    revive: (_, value) => (isText(value?.text) ? { json: value.json === true, text: value.text } : undefined),
  },
  json: {
    blank: () => "",
    isEmpty: (_, draft) => draft.trim() === "",
    toTree: (_, draft, path, report) => parsed(draft, path, report),
    fromTree: (_, tree) => write(tree, 2),
    revive: (_, value) => asText(value),
  },
  text: {
    blank: () => "",
    isEmpty: (_, draft) => draft === "",
    toTree: (_, draft) => draft,
    fromTree: (_, tree) => asText(tree),
    revive: (_, value) => asText(value),
  },
  number: {
    blank: () => "",
    isEmpty: (_, draft) => draft.trim() === "",
    toTree: (_, draft, path, report) => {
      const tree = parsed(draft.trim(), path, () => {});
      if (!(tree instanceof Digits)) report(path, "a number is needed here, such as 3 or 0.5");
      return tree;
    },
    fromTree: (_, tree) => (tree instanceof Digits ? tree.text : undefined),
    revive: (_, value) => asText(value),
  },
  boolean: {
    blank: () => "",
    isEmpty: (_, draft) => draft === "",
    toTree: (_, draft, path, report) => parsed(draft, path, report),
    fromTree: (_, tree) => (typeof tree === "boolean" ? String(tree) : undefined),
    revive: (_, value) => (["", "true", "false"].includes(value) ? value : undefined),
  },
  enum: {
    blank: () => "",
    isEmpty: (_, draft) => draft === "",
    toTree: (_, draft, path, report) => parsed(draft, path, report),
    fromTree: (node, tree) => node.options.map((one) => JSON.stringify(one)).find((one) => one === write(tree)),
    revive: (node, value) => ["", ...node.options.map((one) => JSON.stringify(one))].find((one) => one === value),
  },
  object: {
    blank: (node, needed) =>
      Object.fromEntries(
        node.fields.map(({ name, node: inner, required }) => [name, blank(inner, needed && required)]),
      ),
    isEmpty: (node, draft) => node.fields.every(({ name, node: inner }) => isEmpty(inner, draft[name])),
    toTree: (node, draft, path, report) => {
      const members = new Map();
      for (const { name, node: inner, required } of node.fields) {
        const tree = toTree(inner, draft[name], [...path, name], report, required);
        if (tree !== undefined) members.set(name, tree);
      }
      return members;
    },
    fromTree: (node, tree) => {
      const known = new Set(node.fields.map(({ name }) => name));
      if (!(tree instanceof Map) || [...tree.keys()].some((key) => !known.has(key))) return undefined;
      return joined(
        node.fields.map(({ name, node: inner }) => [
          name,
          tree.has(name) ? fromTree(inner, tree.get(name)) : blank(inner),
        ]),
      );
    },
    revive: (node, value) => {
      if (value === null || typeof value !== "object") return undefined;
      return joined(node.fields.map(({ name, node: inner }) => [name, KINDS[inner.kind].revive(inner, value[name])]));
    },
  },
  map: {
    blank: (node, required) =>
      required
        ? [
            ["", blank(node.value)],
            ["", blank(node.value)],
          ]
        : [],
    isEmpty: (_, draft) => draft.length === 0,
    toTree: (node, draft, path, report) => {
      const members = new Map();
      for (const [index, [key, value]] of draft.entries()) {
        // A row is addressed by its number, since two rows may have one name.
        if (key === "" && isEmpty(node.value, value))
          report([...path, index], "this row is empty; fill it in or remove it");
        else if (members.has(key)) report([...path, index], "this name stands twice; names must differ");
        members.set(key, toTree(node.value, value, [...path, key], report, true));
      }
      return members;
    },
    fromTree: (node, tree) => {
      if (!(tree instanceof Map)) return undefined;
      return complete([...tree].map(([key, value]) => pair(key, fromTree(node.value, value))));
    },
    revive: (node, value) => {
      if (!Array.isArray(value)) return undefined;
      return complete(
        value.map((row) =>
          isText(row?.[0]) ? pair(row[0], KINDS[node.value.kind].revive(node.value, row[1])) : undefined,
        ),
      );
    },
  },
  list: {
    blank: (node, required) => (required ? [blank(node.item), blank(node.item)] : []),
    isEmpty: (_, draft) => draft.length === 0,
    toTree: (node, draft, path, report) =>
      draft.map((item, index) => {
        const here = [...path, index];
        if (isEmpty(node.item, item) && !node.item.nullable) report(here, "this row is empty; fill it in or remove it");
        return toTree(node.item, item, here, report, true);
      }),
    fromTree: (node, tree) =>
      Array.isArray(tree) ? complete(tree.map((item) => fromTree(node.item, item))) : undefined,
    revive: (node, value) =>
      Array.isArray(value) ? complete(value.map((item) => KINDS[node.item.kind].revive(node.item, item))) : undefined,
  },
};

function pair(key, value) {
  return value === undefined ? undefined : [key, value];
}

function complete(drafts) {
  return drafts.includes(undefined) ? undefined : drafts;
}

function joined(entries) {
  return entries.some(([, draft]) => draft === undefined) ? undefined : Object.fromEntries(entries);
}

/** A draft of nothing. A required map or list starts with two rows to fill in. */
export function blank(node, required = false) {
  return KINDS[node.kind].blank(node, required);
}

/** Whether a draft says nothing at all. */
export function isEmpty(node, draft) {
  return KINDS[node.kind].isEmpty(node, draft);
}

/** A draft as a JSON tree; undefined when the request is better off without it. */
export function toTree(node, draft, path, report, required) {
  if (isEmpty(node, draft)) {
    if (!required) return undefined;
    if (node.nullable) return null;
  }
  return KINDS[node.kind].toTree(node, draft, path, report);
}

/** A JSON tree as a draft; undefined when the form cannot show it without losing something. */
export function fromTree(node, tree) {
  if (tree === null && node.nullable) return blank(node);
  return KINDS[node.kind].fromTree(node, tree);
}
