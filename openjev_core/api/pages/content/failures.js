// What to say when there are no answers.

import { h } from "./element.js";
import { problemNotice } from "./problems.js";
import { Refusal } from "./service.js";

/** The notice of a run that a person has stopped. */
export function stoppedNotice() {
  return h("p", { class: "notice" }, "Stopped.");
}

/** The notice of an error. A fault of this page is thrown again, so that the browser's console has it too. */
export function failureNotice(form, error) {
  if (error instanceof Refusal && error.problems !== null) {
    return problemNotice(
      form,
      error.problems.map(({ loc, msg }) => ({ path: loc.slice(1), message: msg })),
    );
  }
  const refused = error instanceof Refusal;
  const title = refused ? titleOf(error.status) : "This page has failed";
  const request = error.requestId ? h("p", {}, `request ${error.requestId}`) : null;
  if (!refused) reportError(error);
  return h("div", { class: "notice bad", role: "alert" }, h("h3", {}, title), h("p", {}, error.message), request);
}

function titleOf(status) {
  if (status === null) return "No answer";
  return status < 400 ? "Not an answer of openjev" : `Error ${status}`;
}
