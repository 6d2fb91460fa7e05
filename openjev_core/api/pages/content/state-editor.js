// The state: text, JSON, or a chat with roles.

import { jsonOf, MODES, messagesFrom, ROLES } from "./draft.js";
import { h, icon, iconButton } from "./element.js";
import { parse, write } from "./json-tree.js";

const NAMES = { text: "Text", json: "JSON", chat: "Chat" };

/** Shows a draft's state in `container` and edits it in place. `say` tells a person what could not be done; `pasted` is
 *  called with a text that was pasted into an empty editor. */
export function showState(container, state, { changed, say, pasted }) {
  const body = h("div", { class: "state-body" });
  const switches = MODES.map((mode) =>
    h(
      "label",
      {},
      h("input", {
        type: "radio",
        name: "state-mode",
        value: mode,
        checked: state.mode === mode,
        on: { change: () => turnTo(mode) },
      }),
      h("span", {}, NAMES[mode]),
    ),
  );

  function turnTo(mode) {
    const problem = carryOver(state, mode);
    state.mode = mode;
    show();
    changed();
    if (problem !== null) say(problem);
  }

  function show() {
    body.replaceChildren(state.mode === "chat" ? chat(state.messages, changed) : area(state, changed, pasted));
  }

  show();
  container.replaceChildren(
    h(
      "div",
      { class: "section-head" },
      h("h2", { id: "state-title" }, "State"),
      h("div", { class: "segmented", role: "radiogroup", "aria-label": "Form of the state" }, switches),
    ),
    body,
  );
}

/** What one editor holds goes to the next where that one is empty. Returns why it cannot, or null. */
function carryOver(state, mode) {
  const empty = {
    text: state.text === "",
    json: state.json.trim() === "",
    chat: state.messages.every(({ text }) => text === ""),
  };
  if (empty[state.mode] || !empty[mode]) return null;
  let tree;
  try {
    tree = state.mode === "text" ? textTree(state.text) : parse(jsonOf(state));
  } catch {
    return "The JSON is not finished, so that it stays in its own editor";
  }
  if (mode === "text") state.text = typeof tree === "string" ? tree : write(tree, 2);
  else if (mode === "json") state.json = write(tree, 2);
  else if (typeof tree === "string") state.messages = [{ role: "user", text: tree }];
  else {
    const messages = messagesFrom(tree);
    if (messages === null)
      return "The chat editor shows messages of a role and a text alone; this state stays in its own editor";
    state.messages = messages;
  }
  return null;
}

/** A text as JSON: itself where it is JSON already, else a string. */
function textTree(text) {
  try {
    return parse(text);
  } catch {
    return text;
  }
}

function area(state, changed, pasted) {
  const isJson = state.mode === "json";
  const field = h("textarea", {
    rows: 7,
    class: isJson ? "code state-text" : "state-text",
    "aria-labelledby": "state-title",
    spellcheck: isJson ? "false" : null,
    placeholder: isJson
      ? '{"order": 1042, "items": ["lamp"]}'
      : "What the questions are about: a message, a document, a record …",
    value: isJson ? state.json : state.text,
    on: {
      input: () => {
        state[isJson ? "json" : "text"] = field.value;
        changed();
      },
      paste: (event) => {
        if (field.selectionEnd - field.selectionStart === field.value.length)
          pasted(event.clipboardData.getData("text/plain"));
      },
    },
  });
  return field;
}

function chat(messages, changed) {
  const body = h("ol", { class: "messages" });
  const add = h("button", { type: "button", class: "quiet", on: { click: append } }, icon("add"), "Add message");

  function append() {
    messages.push({ role: messages.at(-1)?.role === "user" ? "assistant" : "user", text: "" });
    show();
    changed();
    body.lastElementChild.querySelector("textarea").focus();
  }

  function move(from, to) {
    messages.splice(to, 0, ...messages.splice(from, 1));
    show();
    changed();
    body.children[to].querySelector(".icon-button:not([disabled])").focus();
  }

  function remove(index) {
    messages.splice(index, 1);
    show();
    changed();
    (body.children[Math.min(index, messages.length - 1)]?.querySelector("textarea") ?? add).focus();
  }

  function show() {
    body.replaceChildren(...messages.map(row));
  }

  function row(message, index) {
    const name = `message ${index + 1}`;
    const options = ROLES.map((role) => h("option", { value: role, selected: role === message.role }, role));
    const container = h("li", { class: "message", data: { part: index, role: message.role } });
    const role = h(
      "select",
      {
        class: "role",
        "aria-label": `Role of ${name}`,
        on: {
          change: () => {
            message.role = role.value;
            container.dataset.role = role.value;
            changed();
          },
        },
      },
      options,
    );
    const text = h("textarea", {
      rows: 1,
      value: message.text,
      "aria-label": `Text of ${name}`,
      on: {
        input: () => {
          message.text = text.value;
          changed();
        },
      },
    });
    container.append(
      h(
        "div",
        { class: "message-head", data: { part: "role" } },
        role,
        h(
          "div",
          { class: "row-tools" },
          iconButton("up", `Move ${name} up`, () => move(index, index - 1), { disabled: index === 0 }),
          iconButton("down", `Move ${name} down`, () => move(index, index + 1), {
            disabled: index === messages.length - 1,
          }),
          iconButton("remove", `Remove ${name}`, () => remove(index), { disabled: messages.length === 1 }),
        ),
      ),
      h("div", { data: { part: "content" } }, text),
    );
    return container;
  }

  show();
  return h("div", { class: "chat" }, body, add);
}
