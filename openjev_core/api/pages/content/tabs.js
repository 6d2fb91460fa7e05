// Tabs, driven by arrow keys as well.

import { h } from "./element.js";

/** Tabs over panels: `[{ id, name, panel, shown }]`; `shown` is called each time a panel comes up. */
export function tabs(label, entries) {
  const buttons = entries.map(({ id, name, panel }, index) => {
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", `tab-${id}`);
    panel.tabIndex = 0;
    const on = { click: () => select(index), keydown: (event) => step(event, index) };
    return h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": panel.id, on }, name);
  });

  function select(index) {
    entries.forEach(({ panel }, position) => {
      panel.hidden = position !== index;
      buttons[position].setAttribute("aria-selected", String(position === index));
      buttons[position].tabIndex = position === index ? 0 : -1;
    });
    entries[index].shown?.();
  }

  function step(event, index) {
    const moves = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: buttons.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const next = (moves[event.key] + buttons.length) % buttons.length;
    select(next);
    buttons[next].focus();
  }

  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label }, buttons);
  select(0);
  return { list, select: (id) => select(entries.findIndex((entry) => entry.id === id)) };
}
