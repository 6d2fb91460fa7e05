// Rows of a file, CSV, TSV or JSONL: what is asked about each, and what the right answers are where a file has them.
//
//   { name, columns, rows: [{ number, fields }] }; `fields` is a Map from column to a JSON tree.

import { parse, write } from "./json-tree.js";

/** The rows of a text, or null where it holds none: JSON lines, or lines with the same number of cells under a header.
 *  Throws an Error that says which line is broken. */
export function rowsOf(text, name) {
  const content = text.replace(/^\ufeff/, "");
  const ending = /\.(jsonl|ndjson|csv|tsv)$/i.exec(name)?.[1].toLowerCase();
  if (ending === "csv" || ending === "tsv") return table(name, cellsOf(content, ending === "tsv" ? "\t" : null));
  const lines = content.split("\n").filter((line) => line.trim() !== "");
  if (ending === undefined && lines.length < 2) return null;
  const records = [];
  for (const [index, line] of lines.entries()) {
    try {
      records.push(parse(line));
    } catch (error) {
      if (ending === undefined) return null;
      throw new Error(`line ${index + 1}: ${error.message}`);
    }
    if (!(records.at(-1) instanceof Map)) {
      if (ending === undefined) return null;
      throw new Error(`line ${index + 1}: a row is a JSON object`);
    }
  }
  if (records.length === 0) throw new Error("it has no rows");
  const columns = [...new Set(records.flatMap((record) => [...record.keys()]))];
  return { name, columns, rows: records.map((fields, index) => ({ number: index + 1, fields })) };
}

function table(name, [header, ...lines]) {
  if (!header || lines.length === 0) throw new Error("it has no rows below its header");
  if (new Set(header).size < header.length) throw new Error("two of its columns have one name");
  const rows = lines.map((cells, index) => {
    if (cells.length !== header.length)
      throw new Error(`row ${index + 1} has ${cells.length} cells, where the header has ${header.length}`);
    return { number: index + 1, fields: new Map(header.map((column, place) => [column, cells[place]])) };
  });
  return { name, columns: header, rows };
}

/** The cells of delimited text (RFC 4180). Without a delimiter the one that the header has most of. */
function cellsOf(text, given) {
  const header = text.slice(0, text.search(/\r?\n|$/));
  const count = (one) => header.split(one).length;
  const delimiter = given ?? [",", ";", "\t"].reduce((best, one) => (count(one) > count(best) ? one : best));
  const lines = [];
  let cells = [];
  let at = 0;
  while (at < text.length) {
    let cell;
    if (text[at] === '"') {
      [cell, at] = quoted(text, at, lines.length);
    } else {
      const start = at;
      while (at < text.length && text[at] !== delimiter && text[at] !== "\n" && text[at] !== "\r") at += 1;
      cell = text.slice(start, at);
    }
    cells.push(cell);
    if (text[at] === delimiter) {
      at += 1;
      if (at < text.length) continue;
      cells.push("");
    } else if (text[at] === "\r" && text[at + 1] === "\n") at += 2;
    else if (text[at] === "\n" || text[at] === "\r") at += 1;
    else if (at < text.length) throw new Error(`row ${lines.length}: text after a closing quote`);
    if (cells.length > 1 || cells[0] !== "") lines.push(cells);
    cells = [];
  }
  return lines;
}

function quoted(text, start, row) {
  const parts = [];
  let at = start + 1;
  for (;;) {
    const end = text.indexOf('"', at);
    if (end < 0) throw new Error(`row ${row}: a quote is opened and never closed`);
    parts.push(text.slice(at, end));
    if (text[end + 1] !== '"') return [parts.join('"'), end + 1];
    at = end + 2;
  }
}

/** Rows as CSV. Lines are Maps from column to a text, number or tree. */
export function asCsv(columns, lines) {
  const cell = (value) => {
    const text = value === undefined || value === null ? "" : typeof value === "string" ? value : write(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const written = [columns, ...lines.map((line) => columns.map((column) => line.get(column)))];
  return written.map((values) => `${values.map(cell).join(",")}\r\n`).join("");
}

/** The column of the state by its name, else the one with the longest texts. */
export function stateColumnOf({ columns, rows }) {
  const named = ["state", "text", "message", "content", "body"].find((name) => columns.includes(name));
  if (named !== undefined) return named;
  const size = (column) => rows.slice(0, 100).reduce((sum, { fields }) => sum + write(fields.get(column) ?? "").length, 0);
  return columns.reduce((best, column) => (size(column) > size(best) ? column : best));
}

/** The right answer to a question: of the row's `labels`, or of the column that is named like the question. */
export function labelOf({ fields }, question, column = question) {
  const labels = fields.get("labels");
  const label = labels instanceof Map ? labels.get(question) : fields.get(column);
  return label === undefined || label === null || label === "" ? null : typeof label === "string" ? label : write(label);
}
