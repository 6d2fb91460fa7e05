// Asking the server many times, some at once.

import { write } from "./json-tree.js";
import { Refusal } from "./service.js";

const MOST_AT_ONCE = 8;
const BUSY = new Set([503, 529]);

/** Ask about things, some at once, as many as the server's limits leave room for. A server that is busy is asked again when
 *  it said that it would have time.
 *
 *  `requestOf(one)` gives a request's tree. `done(one, result)` is called for each with `{ answers }` or `{ error }`.
 *  Ends when all are answered, or throws an AbortError when `signal` says so. */
export async function askAll(things, { service, requestOf, done, signal }) {
  const { max_concurrent_requests: limit } = await service.get("v1/limits");
  const waiting = [...things];
  const workers = Array.from({ length: Math.max(1, Math.min(MOST_AT_ONCE, Math.floor(limit / 2))) }, async () => {
    while (waiting.length > 0) {
      const one = waiting.shift();
      done(one, await askOne(write(requestOf(one)), service, signal));
    }
  });
  await Promise.all(workers);
}

async function askOne(text, service, signal) {
  for (;;) {
    try {
      return { answers: (await service.post("v1/systemone", text, signal)).body.answers ?? {} };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (!BUSY.has(error.status)) return { error: sentence(error) };
      await pause(error.retryAfter, signal);
    }
  }
}

function sentence({ message, problems }) {
  return problems === null ? message : problems.map(({ loc, msg }) => `${loc.slice(1).join(" › ")}: ${msg}`).join("; ");
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    signal.addEventListener("abort", stop, { once: true });
  });
}
