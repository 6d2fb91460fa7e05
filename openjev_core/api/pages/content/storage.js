// Keeping a draft: in this browser from one visit to the next, and in a link.

const KEY = "openjev.playground";
const FRAGMENT = "#request=";
const MAX_LINK_CHARACTERS = 4 * 1024 * 1024;

/** The stored draft, or null. A browser may refuse to store anything, or hold what another program wrote. */
export function stored() {
  try {
    return JSON.parse(localStorage.getItem(KEY));
  } catch {
    return null;
  }
}

/** Store a draft, if the browser lets us. */
export function store(draft) {
  try {
    localStorage.setItem(KEY, JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}

/** A link to this page that carries a request. What follows the # never reaches a server. */
export async function linkTo(requestText) {
  const packed = await through(new TextEncoder().encode(requestText), new CompressionStream("deflate-raw"));
  const binary = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  const code = btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return new URL(FRAGMENT + code, document.baseURI).href;
}

/** The request that a link of a playground carries, or null. Throws when it is no whole link. */
export async function linked(link = location.href) {
  const start = link.indexOf(FRAGMENT);
  if (start < 0) return null;
  const code = link
    .slice(start + FRAGMENT.length)
    .replaceAll("-", "+")
    .replaceAll("_", "/");
  const packed = Uint8Array.from(atob(code), (character) => character.charCodeAt(0));
  const bytes = await through(packed, new DecompressionStream("deflate-raw"));
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

/** Take the request out of the address, so that a reload shows what became of it. */
export function forgetLink() {
  history.replaceState(null, "", location.pathname + location.search);
}

async function through(bytes, stream) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const chunks = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    // A few bytes can expand to gigabytes.
    if (size > MAX_LINK_CHARACTERS) throw new Error("the link holds more than this page takes");
    chunks.push(value);
  }
  const joined = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    joined.set(chunk, offset);
    offset += chunk.length;
  }
  return joined;
}
