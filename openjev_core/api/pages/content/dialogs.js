// Dialogs and the passing message at the foot of the page.

import { h } from "./element.js";

/** Ask for a key. Resolves to it, or to null when none was given. */
export function askForKey(refused) {
  return new Promise((resolve) => {
    const input = h("input", {
      type: "password",
      id: "key-input",
      autocomplete: "off",
      required: true,
      pattern: "[!-~]+",
      title: "Letters, digits and signs of ASCII, without spaces",
      spellcheck: "false",
      "aria-describedby": "key-note",
    });
    const dialog = h(
      "dialog",
      { class: "dialog", "aria-labelledby": "key-title" },
      h(
        "form",
        { method: "dialog" },
        h("h2", { id: "key-title" }, "This server’s key"),
        refused ? h("p", { class: "problem", role: "alert" }, "The server does not accept this key.") : null,
        h("label", { for: "key-input" }, "Key"),
        input,
        h(
          "p",
          { class: "hint", id: "key-note" },
          "Sent as a Bearer key with each request. Kept in this page’s memory alone: a reload forgets it.",
        ),
        h(
          "div",
          { class: "dialog-buttons" },
          h("button", { type: "button", class: "quiet", on: { click: () => dialog.close() } }, "Cancel"),
          h("button", { type: "submit", class: "primary", value: "use" }, "Use key"),
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "use" ? input.value : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Offer examples. Resolves to the chosen one, or null. */
export function chooseExample(examples) {
  return new Promise((resolve) => {
    let chosen = null;
    const choices = examples.map((example) =>
      h(
        "button",
        {
          type: "button",
          class: "example",
          on: {
            click: () => {
              chosen = example;
              dialog.close();
            },
          },
        },
        h("strong", {}, example.title),
        h("span", {}, example.about),
      ),
    );
    const dialog = h(
      "dialog",
      { class: "dialog", "aria-labelledby": "example-title" },
      h("h2", { id: "example-title" }, "Start from an example"),
      h("div", { class: "examples" }, choices),
      h(
        "div",
        { class: "dialog-buttons" },
        h("button", { type: "button", class: "quiet", on: { click: () => dialog.close() } }, "Cancel"),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(chosen);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const STAYS = 8000;
let leaving;

/** Say something in passing, with something to do about it if there is any: to undo it, as a rule. */
export function say(message, act = null, name = "Undo") {
  const place = document.getElementById("toast");
  const hide = () => place.replaceChildren();
  const button =
    act &&
    h(
      "button",
      {
        type: "button",
        on: {
          click: () => {
            hide();
            act();
          },
        },
      },
      name,
    );
  place.replaceChildren(h("div", { class: "toast" }, h("span", {}, message), button));
  clearTimeout(leaving);
  leaving = setTimeout(hide, STAYS);
}
