// JSON that is passed on exactly as written: keys keep their order, even those that look like numbers, and numbers
// keep their digits. JavaScript's own objects and numbers can do neither.
//
// A tree is null, a boolean, a string, Digits, an Array of trees or a Map from strings to trees.

const MAX_DEPTH = 100;

/** A number, as it was written. */
export class Digits {
  constructor(text) {
    this.text = text;
  }
}

/** The tree of a JSON text. Throws a SyntaxError that says where and what was expected. */
export function parse(text) {
  const reader = new Reader(text);
  const tree = reader.value(0);
  reader.space();
  if (reader.at < text.length) reader.fail("nothing more after the value");
  return tree;
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  value(depth) {
    if (depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than ${MAX_DEPTH} levels`);
    this.space();
    const next = this.text[this.at];
    if (next === "{") return this.object(depth);
    if (next === "[") return this.array(depth);
    if (next === '"') return this.string();
    return this.word();
  }

  object(depth) {
    const members = new Map();
    this.at += 1;
    if (this.takes("}")) return members;
    do {
      this.space();
      if (this.text[this.at] !== '"') this.fail("a key in double quotes");
      const key = this.string();
      if (members.has(key)) this.fail(`each key once, and not ${JSON.stringify(key)} again`);
      if (!this.takes(":")) this.fail("a colon after the key");
      members.set(key, this.value(depth + 1));
    } while (this.takes(","));
    if (!this.takes("}")) this.fail("a comma or }");
    return members;
  }

  array(depth) {
    const items = [];
    this.at += 1;
    if (this.takes("]")) return items;
    do items.push(this.value(depth + 1));
    while (this.takes(","));
    if (!this.takes("]")) this.fail("a comma or ]");
    return items;
  }

  string() {
    const found = this.match(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    if (found === null) this.fail('a string that ends with " and has its line breaks written as \\n');
    return JSON.parse(found);
  }

  word() {
    const number = this.match(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![\w.])/y);
    if (number !== null) return new Digits(number);
    const word = this.match(/(?:true|false|null)(?!\w)/y);
    if (word === null) this.fail("a value: an object, array, string in double quotes, number, true, false or null");
    return JSON.parse(word);
  }

  takes(character) {
    this.space();
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  space() {
    this.match(/[ \t\r\n]*/y);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  fail(expected) {
    const before = this.text.slice(0, this.at).split("\n");
    const place =
      this.at >= this.text.length ? "at the end" : `at line ${before.length}, column ${before.at(-1).length + 1}`;
    throw new SyntaxError(`this is no JSON: ${place}, expected ${expected}`);
  }
}

const JSON_WORDS = { null: "null", true: "true", false: "false" };
const PYTHON_WORDS = { null: "None", true: "True", false: "False" };

/** A tree as JSON. */
export function write(tree, indent = 0) {
  return written(tree, indent, "", JSON_WORDS, false);
}

/** A tree as a Python expression, indented by 4 from `margin` on. JSON's strings and numbers are Python's too. */
export function writePython(tree, margin = "") {
  return written(tree, 4, margin, PYTHON_WORDS, true);
}

function written(tree, indent, margin, words, trailing) {
  if (tree instanceof Digits) return tree.text;
  if (typeof tree === "string") return JSON.stringify(tree);
  if (tree === null || typeof tree === "boolean") return words[tree];
  const [open, close] = Array.isArray(tree) ? "[]" : "{}";
  const inner = margin + " ".repeat(indent);
  const within = (child) => written(child, indent, inner, words, trailing);
  const colon = indent ? ": " : ":";
  const members = Array.isArray(tree)
    ? tree.map(within)
    : [...tree].map(([key, value]) => JSON.stringify(key) + colon + within(value));
  if (members.length === 0) return open + close;
  if (!indent) return open + members.join(",") + close;
  return `${open}\n${inner}${members.join(`,\n${inner}`)}${trailing ? "," : ""}\n${margin}${close}`;
}
