// What was run and written before, kept in this browser (IndexedDB) from one visit to the next.
//
// An entry: { id, at, draft, request, reply, pinned }. `at` is in milliseconds since 1970, `draft` what a person wrote,
// `request` its JSON text, `reply` is { body, headers, milliseconds }, or null for a draft that was put away unrun.

const DATABASE = "openjev";
const STORE = "runs";
const SWITCH = "openjev.runs";
const KEPT = 50;

export class History {
  #database;
  #entries;
  #last;

  /** The history of this browser; one that lives as long as the page where the browser keeps nothing. */
  static async open() {
    try {
      const database = await opened();
      const entries = await done(database.transaction(STORE).objectStore(STORE).getAll());
      return new History(database, entries);
    } catch {
      return new History(null, []);
    }
  }

  constructor(database, entries) {
    this.#database = database;
    this.#entries = entries.sort((a, b) => a.id - b.id);
    this.#last = this.#entries.at(-1)?.id ?? 0;
  }

  /** Whether entries outlive the page. */
  get persists() {
    return this.#database !== null;
  }

  /** Whether entries are kept at all: a person may switch that off. */
  get on() {
    try {
      return localStorage.getItem(SWITCH) !== "off";
    } catch {
      return true;
    }
  }

  set on(value) {
    try {
      localStorage.setItem(SWITCH, value ? "on" : "off");
    } catch {
      // Then the switch holds for this page alone, as the entries do.
    }
  }

  /** Entries, the newest first. */
  get entries() {
    return [...this.#entries].reverse();
  }

  get pinned() {
    return this.#entries.find(({ pinned }) => pinned) ?? null;
  }

  /** Keep an entry, and drop the oldest that is not pinned where there are too many. Returns it. */
  add({ draft, request, reply }) {
    const entry = { id: (this.#last += 1), at: Date.now(), draft, request, reply, pinned: false };
    if (!this.on) return entry;
    this.#entries.push(entry);
    this.#write((store) => store.put(entry));
    if (this.#entries.length > KEPT) this.remove(this.#entries.find(({ pinned }) => !pinned));
    return entry;
  }

  /** Pin one entry, or none for null: others are compared with it. */
  pin(entry) {
    for (const one of this.#entries.filter((other) => other.pinned !== (other === entry))) {
      one.pinned = one === entry;
      this.#write((store) => store.put(one));
    }
  }

  remove(entry) {
    this.#entries = this.#entries.filter((one) => one !== entry);
    this.#write((store) => store.delete(entry.id));
  }

  clear() {
    this.#entries = [];
    this.#write((store) => store.clear());
  }

  // Without room on the disk an entry lives as long as the page.
  #write(act) {
    if (this.#database === null) return;
    const transaction = this.#database.transaction(STORE, "readwrite");
    transaction.addEventListener("error", (event) => event.preventDefault());
    act(transaction.objectStore(STORE));
  }
}

function opened() {
  const request = indexedDB.open(DATABASE, 1);
  request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE, { keyPath: "id" }));
  return done(request);
}

function done(request) {
  return new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error));
  });
}
