// A request as code that other programs can run.

import { write, writePython } from "./json-tree.js";

const SDK_CLASSES = new Map([
  ["noul", "Noul"],
  ["choice", "Choice"],
  ["score", "Score"],
]);

/** The request's JSON. */
export function asJson(request) {
  return write(request, 2);
}

/** A curl command. The key stands in the environment, not in the command. */
export function asCurl(request, url, keyed) {
  const body = write(request, 2).replaceAll("'", "'\\''");
  const lines = [`curl ${quoted(url)}`, "-H 'Content-Type: application/json'"];
  if (keyed) lines.push('-H "Authorization: Bearer $OPENJEV_API_KEY"');
  lines.push(`--data-raw '${body}'`);
  return lines.join(" \\\n  ");
}

function quoted(url) {
  return /^[\w:/.[\]-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`;
}

/** A program for the TypeSafe SDK. Types that the SDK does not know are written as the wire has them. */
export function asPython(request, url, keyed) {
  const questions = [...request.get("questions")];
  const used = [
    ...new Set(questions.map(([, question]) => SDK_CLASSES.get(question.get("type"))).filter(Boolean)),
  ].sort();
  const base = new URL("./", url.replace(/v1\/systemone$/, "")).href.replace(/\/$/, "");
  const lines = [
    ...(keyed ? ["import os", ""] : []),
    `from typesafe_sdk import ${[...used, "TypeSafeClient"].join(", ")}`,
    "",
    `client = TypeSafeClient(`,
    `    base_url=${JSON.stringify(base)},`,
    keyed ? '    api_key=os.environ["OPENJEV_API_KEY"],' : '    api_key="unused",  # this server asks for none',
    "    timeout=120.0,  # the client by itself waits 10 seconds",
    ")",
    "response = client.system_one(",
    `    model=${writePython(request.get("model"))},`,
    `    state=${writePython(request.get("state"), "    ")},`,
    "    questions={",
    ...questions.map(([id, question]) => `        ${writePython(id)}: ${questionCode(question)},`),
    "    },",
    ...(request.has("x_orders") ? [`    extra_body={"x_orders": ${writePython(request.get("x_orders"))}},`] : []),
    ")",
    "print(response.answers)",
  ];
  return lines.join("\n");
}

function questionCode(question) {
  const margin = "        ";
  const name = SDK_CLASSES.get(question.get("type"));
  if (!name) return writePython(question, margin);
  const fields = [...question].filter(([field]) => field !== "type");
  const inner = fields.map(([field, tree]) => `${margin}    ${field}=${writePython(tree, `${margin}    `)},\n`);
  return inner.length > 0 ? `${name}(\n${inner.join("")}${margin})` : `${name}()`;
}
