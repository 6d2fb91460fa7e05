// The questions of a draft: one card each, in request order.

import { emptyQuestion } from "./draft.js";
import { h, icon, iconButton, prose } from "./element.js";
import { fieldsOf } from "./fields.js";

/** Shows a draft's questions in `container` and edits them in place. `removed` is told how to undo a removal. */
export function showQuestions(container, questions, types, changed, removed) {
  const cards = h("ol", { class: "cards" });
  const empty = h("p", { class: "empty" }, "No questions yet. Add one of these:");
  const adders = [...types.values()].map((type) =>
    h(
      "button",
      { type: "button", class: "add-type", on: { click: () => append(type) } },
      icon("add"),
      h("span", { class: "add-type-name" }, type.name),
      h("span", { class: "add-type-summary" }, prose(type.summary)),
    ),
  );

  function append(type) {
    questions.push(emptyQuestion(type.name, type.node, new Set(questions.map(({ id }) => id))));
    show();
    changed();
    cards.lastElementChild.querySelector(".fields textarea, .fields input, .fields select")?.focus();
    cards.lastElementChild.scrollIntoView({ block: "nearest" });
  }

  function move(from, to) {
    questions.splice(to, 0, ...questions.splice(from, 1));
    show();
    changed();
    cards.children[to].querySelector(".icon-button:not([disabled])").focus();
  }

  function remove(index) {
    const [gone] = questions.splice(index, 1);
    show();
    changed();
    (cards.children[Math.min(index, questions.length - 1)]?.querySelector(".question-id") ?? adders[0])?.focus();
    removed(`Removed ${gone.id || "a question"}`, () => {
      questions.splice(Math.min(index, questions.length), 0, gone);
      show();
      changed();
    });
  }

  function card(question, index) {
    const type = types.get(question.type);
    const name = `question ${index + 1}`;
    const item = h("li", { class: "card question", data: { part: question.id, row: index } });
    const id = h("input", {
      type: "text",
      class: "question-id",
      value: question.id,
      "aria-label": `Name of ${name}`,
      spellcheck: "false",
      on: {
        input: () => {
          question.id = id.value;
          item.dataset.part = question.id;
          changed();
        },
      },
    });
    const head = h(
      "div",
      { class: "card-head", data: { head: "" } },
      id,
      h("span", { class: "tag", title: type.summary }, question.type),
      h(
        "div",
        { class: "row-tools" },
        iconButton("up", `Move ${name} up`, () => move(index, index - 1), { disabled: index === 0 }),
        iconButton("down", `Move ${name} down`, () => move(index, index + 1), {
          disabled: index === questions.length - 1,
        }),
        iconButton("remove", `Remove ${name}`, () => remove(index)),
      ),
    );
    item.append(head, h("div", { class: "fields" }, fieldsOf(type.node, question.fields, changed)));
    return item;
  }

  function show() {
    cards.replaceChildren(...questions.map(card));
    empty.hidden = questions.length > 0;
  }

  show();
  container.replaceChildren(
    h("div", { class: "section-head" }, h("h2", {}, "Questions")),
    cards,
    empty,
    h("div", { class: "adders", role: "group", "aria-label": "Add a question" }, adders),
  );
}
