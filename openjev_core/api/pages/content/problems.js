// Problems at the fields that they are about.

import { freshId, h } from "./element.js";

const FIELDS = "input, textarea, select";

/** Take away what was shown before. */
export function clearProblems(form) {
  for (const message of form.querySelectorAll(".problem")) message.remove();
  for (const control of form.querySelectorAll("[aria-invalid]")) {
    control.removeAttribute("aria-invalid");
    const ids = (control.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => document.getElementById(id));
    if (ids.length > 0) control.setAttribute("aria-describedby", ids.join(" "));
    else control.removeAttribute("aria-describedby");
  }
}

/** Show problems, `{ path, message }` each, and list them in `summary` with a way to each field. */
export function showProblems(form, summary, problems) {
  clearProblems(form);
  const items = problems.map(({ path, message }) => {
    const control = place(form, path, message);
    const go = () => {
      for (let fold = control.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
      control.focus();
      control.scrollIntoView({ block: "center" });
    };
    return h(
      "li",
      {},
      h("button", { type: "button", class: "link", on: { click: go } }, path.join(" › ") || "request"),
      `: ${message}`,
    );
  });
  const title = problems.length === 1 ? "One thing to mend" : `${problems.length} things to mend`;
  summary.replaceChildren(h("div", { class: "notice bad", role: "alert" }, h("h3", {}, title), h("ul", {}, items)));
  items[0]?.querySelector("button").click();
}

/** Write a message at the field of a path, or at the nearest place around it, and return the field's control. */
function place(form, path, message) {
  const part = partAt(form, path);
  const control = part.querySelector(FIELDS) ?? part.querySelector("button");
  const problem = h("p", { class: "problem", id: freshId() }, message);
  const head = part.querySelector(":scope > [data-head]");
  if (head) head.after(problem);
  else part.append(problem);
  if (control.matches(FIELDS)) {
    control.setAttribute("aria-invalid", "true");
    control.setAttribute(
      "aria-describedby",
      [control.getAttribute("aria-describedby"), problem.id].filter(Boolean).join(" "),
    );
  }
  for (let fold = part.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  return control;
}

function partAt(form, path) {
  let part = form;
  for (const step of path) {
    const inside = [...part.querySelectorAll("[data-part]")].filter(
      (one) => one.parentElement.closest("[data-part]") === (part === form ? null : part),
    );
    // Of two questions with one name, the later one is the one too many.
    const next = inside.findLast((one) => one.dataset.part === String(step));
    if (!next) break;
    part = next;
  }
  return part;
}
