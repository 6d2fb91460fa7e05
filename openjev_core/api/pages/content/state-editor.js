// The state: text, JSON, or a chat with roles.

import { MODES, messagesFrom, messagesJson, ROLES } from "./draft.js";
import { h, icon, iconButton } from "./element.js";
import { parse } from "./json-tree.js";

const NAMES = { text: "Text", json: "JSON", chat: "Chat" };

/** Shows a draft's state in `container` and edits it in place. */
export function showState(container, state, changed) {
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
    carryOver(state, mode);
    state.mode = mode;
    show();
    changed();
  }

  function show() {
    body.replaceChildren(state.mode === "chat" ? chat(state.messages, changed) : area(state, changed));
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

/** What one editor holds goes to the other where that one is empty and can show it. */
function carryOver(state, mode) {
  const chatIsEmpty = state.messages.every(({ text }) => text === "");
  if (state.mode === "chat" && mode === "json" && state.json.trim() === "" && !chatIsEmpty)
    state.json = messagesJson(state.messages);
  if (state.mode === "json" && mode === "chat" && chatIsEmpty) {
    try {
      state.messages = messagesFrom(parse(state.json)) ?? state.messages;
    } catch {
      // Half-written JSON stays where it is.
    }
  }
}

function area(state, changed) {
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
