// Problems at the fields that they are about.

import { freshId, h } from "./element.js";

const FIELDS = "input:not([type=radio]), textarea, select";

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

/** Take away what was shown at a field that a person has just edited. */
export function forgetProblem(control) {
  if (!control.hasAttribute("aria-invalid")) return;
  control.removeAttribute("aria-invalid");
  const ids = control.getAttribute("aria-describedby").split(" ");
  const shown = ids.map((id) => document.getElementById(id)).filter((one) => one?.matches(".problem"));
  const others = ids.filter((id) => !shown.some((one) => one.id === id));
  if (others.length > 0) control.setAttribute("aria-describedby", others.join(" "));
  else control.removeAttribute("aria-describedby");
  for (const problem of shown) {
    const item = document.querySelector(`[data-problem="${problem.id}"]`);
    const notice = item?.closest(".notice");
    item?.remove();
    if (notice && !notice.querySelector("[data-problem]")) notice.remove();
    problem.remove();
  }
}

/** Show problems, `{ path, message }` each, and list them in a notice with a way to each field. Returns the notice. */
export function problemNotice(form, problems) {
  clearProblems(form);
  const items = problems.map(({ path, message }) => {
    const { control, problem, names } = place(form, path, message);
    const go = () => {
      for (let fold = control.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
      control.focus();
      control.scrollIntoView({ block: "center" });
    };
    return h(
      "li",
      { data: { problem: problem.id } },
      h("button", { type: "button", class: "link", on: { click: go } }, names.join(" › ") || "request"),
      `: ${message}`,
    );
  });
  const title = problems.length === 1 ? "One thing to mend" : `${problems.length} things to mend`;
  items[0]?.querySelector("button").click();
  return h("div", { class: "notice bad", role: "alert" }, h("h3", {}, title), h("ul", {}, items));
}

/** Write a message at the field of a path, or at the nearest place around it. */
function place(form, path, message) {
  const { part, names } = partAt(form, path);
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
  return { control, problem, names };
}

/** The place of a path, or the nearest around it, and the path as a person reads it. A number is that of a row or item. */
function partAt(form, path) {
  let part = form;
  const names = [];
  for (const [depth, step] of path.entries()) {
    const inside = [...part.querySelectorAll("[data-part]")].filter(
      (one) => one.parentElement.closest("[data-part]") === (part === form ? null : part),
    );
    // Of two questions with one name, the later one is the one too many.
    const row = typeof step === "number" ? inside.find((one) => one.dataset.row === String(step)) : undefined;
    const next = row ?? inside.findLast((one) => one.dataset.part === String(step));
    if (!next) return { part, names: [...names, ...path.slice(depth)] };
    part = next;
    names.push(part.dataset.part || `${step}`);
  }
  return { part, names };
}
