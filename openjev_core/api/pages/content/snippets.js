// A request as code that other programs can run.

import { messagesFrom } from "./draft.js";
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

/** A program for OpenAI's SDK and its decisions. Throws an Error that says what that wire cannot carry. */
export function asOpenAI(request, url, keyed) {
  const questions = [...request.get("questions")].map(([id, question]) => decisionQuestion(id, question));
  const base = url.replace(/\/systemone$/, "");
  const extra = request.has("x_orders") ? [`    extra_body={"x_orders": ${writePython(request.get("x_orders"))}},`] : [];
  const lines = [
    ...(keyed ? ["import os", ""] : []),
    "from openai import OpenAI",
    "",
    "client = OpenAI(",
    `    base_url=${JSON.stringify(base)},`,
    keyed ? '    api_key=os.environ["OPENJEV_API_KEY"],' : '    api_key="unused",  # this server asks for none',
    ")",
    "decision = client.decisions.create(",
    `    model=${writePython(request.get("model"))},`,
    `    input=${writePython(decisionInput(request.get("state")), "    ")},`,
    `    questions=${writePython(questions, "    ")},`,
    ...extra,
    ")",
    "print(decision.answers)",
  ];
  return lines.join("\n");
}

function decisionInput(state) {
  if (typeof state === "string") return state;
  const messages = messagesFrom(state);
  if (messages !== null && messages.every(({ role }) => role !== "tool"))
    return messages.map(({ role, text }) => new Map(Object.entries({ role, content: text })));
  const part = new Map(Object.entries({ type: "input_json", data: state }));
  return [new Map(Object.entries({ role: "user", content: [part] }))];
}

function decisionQuestion(id, question) {
  const type = question.get("type");
  const given = question.get("instructions") ?? null;
  const criteria = question.get("criteria") ?? null;
  if (given === null) throw new Error(`“${id}” has no instructions, which OpenAI’s decisions need`);
  const instructions = typeof given === "string" ? given : [new Map(Object.entries({ type: "input_json", data: given }))];
  const text = (tree) => (typeof tree === "string" ? tree : write(tree));
  if (type === "noul" && criteria === null) return new Map(Object.entries({ type: "predicate", name: id, instructions }));
  if (type === "noul") throw new Error(`“${id}” has criteria, which OpenAI’s predicates have not`);
  if (type === "choice" && criteria instanceof Map) {
    const choices = [...criteria].map(
      ([value, described]) => new Map([["value", value], ...(described === null ? [] : [["description", text(described)]])]),
    );
    return new Map(Object.entries({ type, name: id, instructions, choices }));
  }
  if (type === "score" && Array.isArray(criteria)) {
    const levels = criteria.map((level) => new Map([["label", text(level)]]));
    return new Map(Object.entries({ type, name: id, instructions, levels }));
  }
  throw new Error(`“${id}” is of the type ${type}, which OpenAI’s decisions do not have`);
}

/** A command that asks this server, whose key it takes from the environment. */
export function asCommand(request, url) {
  const server = url.replace(/\/v1\/systemone$/, "");
  return `openjev ask --url ${server} - <<'REQUEST'\n${write(request, 2)}\nREQUEST`;
}

/** A row for `openjev eval`: what is right is for a person to fill in. */
export function asRow(request) {
  const labels = new Map([...request.get("questions").keys()].map((id) => [id, null]));
  const row = new Map([
    ["state", request.get("state")],
    ["questions", request.get("questions")],
    ["labels", labels],
  ]);
  return write(row);
}

function questionCode(question) {
  const margin = "        ";
  const name = SDK_CLASSES.get(question.get("type"));
  if (!name) return writePython(question, margin);
  const fields = [...question].filter(([field]) => field !== "type");
  const inner = fields.map(([field, tree]) => `${margin}    ${field}=${writePython(tree, `${margin}    `)},\n`);
  return inner.length > 0 ? `${name}(\n${inner.join("")}${margin})` : `${name}()`;
}
