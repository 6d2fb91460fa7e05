// Calls to this server. The key is held here, in memory, and nowhere else: a reload forgets it.

/** A reply that is no answer, or no reply (`status` null). `problems` is the wire's list for a 422, else null;
 *  `retryAfter` are the seconds after which the server wants to be asked again. */
export class Refusal extends Error {
  constructor(status, message, problems, headers) {
    super(message);
    this.status = status;
    this.problems = problems;
    this.requestId = headers?.get("x-typesafe-request-id") ?? null;
    this.retryAfter = Number(headers?.get("retry-after") ?? 1) || 1;
  }
}

export class Service {
  #key = null;

  /** `askForKey(refused)` resolves to a key, or to null when the person gives none. */
  constructor(askForKey) {
    this.askForKey = askForKey;
  }

  get hasKey() {
    return this.#key !== null;
  }

  url(path) {
    return new URL(path, document.baseURI).href;
  }

  /** The JSON of a GET. */
  async get(path) {
    return (await this.#call(path, {})).body;
  }

  /** What `/health` says, in sickness too; null when nothing answers. */
  async health() {
    try {
      const response = await fetch(this.url("health"), { cache: "no-store", credentials: "omit" });
      return await response.json();
    } catch {
      return null;
    }
  }

  /** POST a JSON text. Resolves to `{ body, headers, milliseconds }`; rejects with a Refusal. */
  async post(path, text, signal) {
    return this.#call(path, { method: "POST", body: text, signal, headers: { "content-type": "application/json" } });
  }

  /** Ask for a key, and use it from now on. */
  async changeKey(refused = false) {
    const key = await this.askForKey(refused);
    if (key !== null) this.#key = key;
    return key !== null;
  }

  async #call(path, options) {
    for (;;) {
      const headers = { ...options.headers, ...(this.#key === null ? {} : { authorization: `Bearer ${this.#key}` }) };
      const started = performance.now();
      const { response, text } = await this.#fetched(path, { ...options, headers });
      const milliseconds = performance.now() - started;
      if (response.ok) return { body: jsonOf(response, text), headers: response.headers, milliseconds };
      if (response.status === 401 && (await this.changeKey(this.#key !== null))) continue;
      throw refusalOf(response, text);
    }
  }

  async #fetched(path, options) {
    try {
      const response = await fetch(this.url(path), { ...options, cache: "no-store", credentials: "omit" });
      return { response, text: await response.text() };
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal(null, `the server could not be reached (${error.message})`, null, null);
    }
  }
}

/** The object that a reply holds. Throws a Refusal where it holds none: a proxy's page, say. */
function jsonOf(response, text) {
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    body = null;
  }
  if (body !== null && typeof body === "object") return body;
  const what = `the server answered ${response.status} with no JSON object`;
  throw new Refusal(response.status, what, null, response.headers);
}

function refusalOf(response, text) {
  const { status, headers } = response;
  const { detail } = jsonOf(response, text);
  if (Array.isArray(detail)) return new Refusal(status, "the request has problems", detail, headers);
  return new Refusal(status, detail?.message ?? `the server answered ${status}`, null, headers);
}
