// Making elements. Every string becomes text or an attribute's value; nothing here can make markup from a string.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. `on` holds listeners, `data` the dataset; null and false attributes are left out. */
export function h(name, attributes = {}, ...children) {
  return built(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function svg(name, attributes = {}, ...children) {
  return built(document.createElementNS(SVG, name), attributes, children);
}

function built(element, { on = {}, data = {}, ...attributes }, children) {
  // What a person writes has the direction of its own script; code has none.
  if (/^(textarea|input)$/.test(element.localName) && !/\bcode\b/.test(attributes.class ?? "")) element.dir = "auto";
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  Object.assign(element.dataset, data);
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

const ICONS = {
  up: "M8 12.5v-9M4 7.5l4-4 4 4",
  down: "M8 3.5v9M4 8.5l4 4 4-4",
  remove: "M4 4l8 8M12 4l-8 8",
  add: "M8 3v10M3 8h10",
};

/** A small line drawing, hidden from screen readers. */
export function icon(name) {
  return svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** A button that shows an icon alone and is named by its label. */
export function iconButton(name, label, click, attributes = {}) {
  return h(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, on: { click }, ...attributes },
    icon(name),
  );
}

/** A sentence with `code` in backticks, as the descriptions in an API's schema are written. */
export function prose(text) {
  return text.split(/`([^`]+)`/).map((piece, index) => (index % 2 === 1 ? h("code", {}, piece) : piece));
}

let serial = 0;

/** An id that no other element has. */
export function freshId() {
  serial += 1;
  return `e${serial}`;
}
