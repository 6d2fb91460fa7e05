// What each order of the options gave, beside the prompts that were read.

import { h } from "./element.js";
import { percent } from "./values.js";

const AGREE = 0.05;

/** The view of what an answer says of its readouts, with `x_detail`; null where there is one readout in one order.
 *  `id` names the question; `prompts()` resolves to its branches, or to null where the server shows none. */
export function ordersView(id, answer, prompts) {
  const readouts = answer.x_detail ?? [];
  const most = Math.max(0, ...readouts.map(({ orders }) => orders.length));
  if (most < 2 && readouts.length < 2) return null;
  const about = most < 2 ? "" : ` in ${most} orders`;
  const title = readouts.length < 2 ? `Each of ${most} orders` : `${readouts.length} readouts${about}`;
  const view = h("details", { class: "more orders-view" }, h("summary", {}, title));
  view.addEventListener("toggle", async () => {
    if (!view.open || view.childElementCount > 1) return;
    const sections = readouts.map((readout, index) => readoutView(id, readout, readouts.length > 1 ? index : null));
    view.append(...sections);
    const branches = await prompts();
    sections.forEach((section, index) => {
      const mine = branches?.filter(({ readout }) => readout === index) ?? [];
      // Prompts are shown of the first round alone.
      if (mine.length === readouts[index].orders.length) section.append(...mine.map(promptView));
    });
  });
  return view;
}

function readoutView(id, { options, probabilities, orders }, index) {
  const of = index === null ? id : `${id}, readout ${index + 1}`;
  const heads = ["Option", "Average", ...orders.map((_, number) => `Order ${number + 1}`)];
  const rows = options.map((option, at) =>
    h(
      "tr",
      {},
      h("th", { scope: "row", dir: "auto" }, option),
      h("td", { title: String(probabilities[at]) }, percent(probabilities[at])),
      orders.map((order) =>
        h(
          "td",
          { title: `${ordinal(order.order.indexOf(at))}, as ${order.labels[at]}: ${order.probabilities[at]}` },
          h("code", {}, order.labels[at]),
          ` ${percent(order.probabilities[at])}`,
        ),
      ),
    ),
  );
  return h(
    "section",
    { class: "readout" },
    index === null ? null : h("h4", {}, `Readout ${index + 1}`),
    orders.length > 1 ? h("p", { class: "hint" }, agreement(options, orders)) : null,
    h(
      "div",
      { class: "table-frame", tabindex: "0", role: "region", "aria-label": `What each order gave: ${of}` },
      h(
        "table",
        { class: "records" },
        h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, rows),
      ),
    ),
  );
}

/** How far the orders agree, in words. */
function agreement(options, orders) {
  const widths = options.map((option, at) => {
    const given = orders.map(({ probabilities }) => probabilities[at]);
    return { option, least: Math.min(...given), most: Math.max(...given) };
  });
  const { option, least, most } = widths.reduce((a, b) => (b.most - b.least > a.most - a.least ? b : a));
  const points = `${((most - least) * 100).toFixed(1)} points`;
  if (most - least < AGREE) return `The orders agree: no option moves by more than ${points}.`;
  return [
    "The place of an option moves this answer: ",
    h("strong", { dir: "auto" }, option),
    ` gets from ${percent(least)} to ${percent(most)}, ${points} apart.`,
  ];
}

function promptView({ prompt }, number) {
  return h(
    "details",
    { class: "more" },
    h("summary", {}, `Prompt of order ${number + 1}`),
    h("pre", { class: "code", dir: "auto" }, prompt),
  );
}

function ordinal(index) {
  return `shown ${["first", "second", "third"][index] ?? `as number ${index + 1}`}`;
}
