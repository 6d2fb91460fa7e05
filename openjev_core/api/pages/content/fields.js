// A question's form, made from its node. Each place of the request is an element with `data-part`, the step that leads
// to it from the place around it, so that a problem finds its field by its path.

import { freshId, h, icon, iconButton, prose } from "./element.js";
import { blank, isEmpty } from "./kinds.js";

// Each makes the control of one kind: (node, draft, set, changed, label, attributes) to an element, or to an element
// and what stands aside of it. `set` replaces the draft; what changes a draft in place calls `changed`.
const FORMS = { content, json, text, number, boolean, enum: oneOf, object, map, list };

// Short fields first, whatever order the schema has them in: instructions are read before the options they are about.
const SIMPLE = new Set(["content", "text", "number", "boolean", "enum"]);

/** The fields of an object's draft, in reading order. */
export function fieldsOf(node, draft, changed) {
  const ordered = [...node.fields].sort((a, b) => SIMPLE.has(b.node.kind) - SIMPLE.has(a.node.kind));
  return ordered.map((field) => {
    const set = (value) => {
      draft[field.name] = value;
      changed();
    };
    return labelled(field, draft[field.name], set, changed);
  });
}

function labelled({ name, node, required }, draft, set, changed) {
  const optional = required ? null : h("span", { class: "optional" }, "optional");
  const hint = node.description ? h("p", { class: "hint", id: freshId() }, prose(node.description)) : null;
  if (node.kind === "object" || node.kind === "map" || node.kind === "list") {
    const inside = FORMS[node.kind](node, draft, set, changed, titled(name));
    const group = h(
      "fieldset",
      { class: "group", data: { part: name } },
      h("legend", {}, titled(name), optional),
      hint,
      inside,
    );
    if (node.kind !== "object" || required) return group;
    const summary = h("summary", {}, titled(name), optional);
    group.querySelector("legend").className = "visually-hidden";
    return h("details", { class: "folded", open: !isEmpty(node, draft) }, summary, group);
  }
  const id = freshId();
  const control = FORMS[node.kind](node, draft, set, changed, titled(name), { id, "aria-describedby": hint?.id });
  const head = h("div", { class: "field-head" }, h("label", { for: id }, titled(name)), optional, control.aside);
  return h("div", { class: "field", data: { part: name } }, head, hint, control.element ?? control);
}

/** `not_before` as a person would head it. */
export function titled(name) {
  const words = name.replaceAll(/[_-]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function standardOf(node) {
  return node.standard === undefined || node.standard === null
    ? null
    : `${JSON.stringify(node.standard)} if left empty`;
}

/** Text, or JSON that the model reads in its compact form. */
function content(node, draft, set, changed, label, attributes = {}) {
  const area = h("textarea", {
    rows: 1,
    class: draft.json ? "code" : null,
    value: draft.text,
    placeholder: standardOf(node),
    "aria-label": attributes.id ? null : label,
    on: {
      input: () => {
        draft.text = area.value;
        changed();
      },
    },
    ...attributes,
  });
  const toggle = h(
    "button",
    {
      type: "button",
      class: "toggle",
      "aria-pressed": String(draft.json),
      title: "Send this as JSON instead of as text",
      "aria-label": `${label}: send as JSON`,
      on: {
        click: () => {
          draft.json = !draft.json;
          toggle.setAttribute("aria-pressed", String(draft.json));
          area.classList.toggle("code", draft.json);
          changed();
        },
      },
    },
    "JSON",
  );
  return { element: area, aside: toggle };
}

function json(node, draft, set, changed, label, attributes = {}) {
  return h("textarea", {
    rows: 2,
    class: "code",
    value: draft,
    placeholder: standardOf(node) ?? "JSON",
    "aria-label": attributes.id ? null : label,
    on: { input: (event) => set(event.target.value) },
    ...attributes,
  });
}

function input(type) {
  return (node, draft, set, changed, label, attributes = {}) =>
    h("input", {
      type: "text",
      inputmode: type,
      value: draft,
      placeholder: standardOf(node),
      "aria-label": attributes.id ? null : label,
      on: { input: (event) => set(event.target.value) },
      ...attributes,
    });
}

function text(...given) {
  return input("text")(...given);
}

function number(...given) {
  return input("decimal")(...given);
}

function select(pairs, draft, set, label, attributes) {
  const options = pairs.map(([value, shown]) => h("option", { value, selected: value === draft }, shown));
  const events = { change: (event) => set(event.target.value) };
  return h("select", { "aria-label": attributes.id ? null : label, on: events, ...attributes }, options);
}

function unchosen(node) {
  const standard = standardOf(node);
  return ["", standard === null ? "–" : standard.replace(" if left empty", " (standard)")];
}

function boolean(node, draft, set, changed, label, attributes = {}) {
  return select([unchosen(node), ["true", "yes"], ["false", "no"]], draft, set, label, attributes);
}

function oneOf(node, draft, set, changed, label, attributes = {}) {
  const shown = node.options.map((one) => [JSON.stringify(one), String(one)]);
  return select([unchosen(node), ...shown], draft, set, label, attributes);
}

function object(node, draft, set, changed) {
  return h("div", { class: "fields" }, fieldsOf(node, draft, changed));
}

/** What stands in one row of a map or list: the form of one value, named for screen readers. */
function cell(node, draft, set, changed, label) {
  const made = FORMS[node.kind](node, draft, set, changed, label);
  return made.element ? [made.element, made.aside] : [made];
}

function map(node, draft, set, changed, label) {
  return rows(
    draft,
    changed,
    label,
    () => ["", blank(node.value)],
    (row, index, container) => {
      const key = h("input", {
        type: "text",
        class: "row-key",
        value: row[0],
        placeholder: "name",
        "aria-label": `${label}, name ${index + 1}`,
        on: {
          input: () => {
            row[0] = key.value;
            container.dataset.part = row[0];
            changed();
          },
        },
      });
      container.dataset.part = row[0];
      container.dataset.row = index;
      const setValue = (value) => {
        row[1] = value;
        changed();
      };
      return [
        key,
        h("div", { class: "row-value" }, cell(node.value, row[1], setValue, changed, `${label}, value ${index + 1}`)),
      ];
    },
  );
}

function list(node, draft, set, changed, label) {
  return rows(
    draft,
    changed,
    label,
    () => blank(node.item),
    (item, index, container) => {
      container.dataset.part = index;
      const setItem = (value) => {
        draft[index] = value;
        changed();
      };
      const number = h("span", { class: "row-number", "aria-hidden": "true" }, index);
      return [
        number,
        h("div", { class: "row-value" }, cell(node.item, item, setItem, changed, `${label}, item ${index}`)),
      ];
    },
  );
}

/** Rows that can be added, removed and moved. `draft` is their array and is changed in place. */
function rows(draft, changed, label, fresh, cells) {
  const body = h("ol", { class: "rows" });
  const add = h(
    "button",
    {
      type: "button",
      class: "quiet",
      "aria-label": `Add to ${label}`,
      on: {
        click: () => {
          draft.push(fresh());
          show();
          changed();
          body.lastElementChild.querySelector("input, textarea, select")?.focus();
        },
      },
    },
    icon("add"),
    "Add",
  );

  function move(from, to) {
    draft.splice(to, 0, ...draft.splice(from, 1));
    show();
    changed();
    const button = to < from ? ".move-up" : ".move-down";
    const buttons = body.children[to];
    (
      buttons.querySelector(`${button}:not([disabled])`) ?? buttons.querySelector(".icon-button:not([disabled])")
    ).focus();
  }

  function remove(index) {
    draft.splice(index, 1);
    show();
    changed();
    (body.children[Math.min(index, draft.length - 1)]?.querySelector("input, textarea, select") ?? add).focus();
  }

  function show() {
    body.replaceChildren(
      ...draft.map((item, index) => {
        const row = h("li", { class: "row" });
        const name = `${label} ${index + 1}`;
        row.append(
          ...cells(item, index, row),
          h(
            "div",
            { class: "row-tools" },
            iconButton("up", `Move ${name} up`, () => move(index, index - 1), {
              disabled: index === 0,
              class: "icon-button move-up",
            }),
            iconButton("down", `Move ${name} down`, () => move(index, index + 1), {
              disabled: index === draft.length - 1,
              class: "icon-button move-down",
            }),
            iconButton("remove", `Remove ${name}`, () => remove(index)),
          ),
        );
        return row;
      }),
    );
  }

  show();
  return h("div", { class: "row-group" }, body, add);
}
