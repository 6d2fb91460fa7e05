// Copying.

import { say } from "./dialogs.js";
import { h } from "./element.js";

/** Copy a text, and say `message` when it is done. Without a secure connection browsers offer no clipboard. */
export async function copy(text, message) {
  try {
    await navigator.clipboard.writeText(text);
    say(message);
  } catch {
    const dialog = h(
      "dialog",
      { class: "dialog", "aria-label": "Copy by hand" },
      h("p", {}, "This browser does not let the page copy. Copy it by hand:"),
      h("textarea", { rows: 6, readonly: true, value: text, "aria-label": "Text to copy" }),
      h(
        "div",
        { class: "dialog-buttons" },
        h("button", { type: "button", class: "primary", on: { click: () => dialog.close() } }, "Close"),
      ),
    );
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector("textarea").select();
  }
}
