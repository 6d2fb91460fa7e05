// What an answer decides, how probable it says that is, and whether it is right: for the types whose answers hold that.

const YES = new Set(["true", "yes", "1"]);
const NO = new Set(["false", "no", "0"]);

/** `{ value, probability }` of an answer, both for reading; null where the answer does not hold them. */
export function verdictOf(answer) {
  if (typeof answer?.noul === "number") {
    const yes = answer.noul >= 0.5;
    return { value: yes ? "yes" : "no", probability: yes ? answer.noul : 1 - answer.noul };
  }
  const probabilities = answer?.probabilities;
  if (probabilities === null || typeof probabilities !== "object") return null;
  const entries = Object.entries(probabilities).filter(([, one]) => typeof one === "number");
  if (entries.length === 0) return null;
  const [value, probability] =
    typeof answer.choice === "string" && Object.hasOwn(probabilities, answer.choice)
      ? [answer.choice, probabilities[answer.choice]]
      : entries.reduce((best, entry) => (entry[1] > best[1] ? entry : best));
  return { value, probability };
}

/** The verdict that a label means; null where it fits the answer's options not. */
export function meantBy(label, answer) {
  const folded = label.trim().toLowerCase().normalize("NFC");
  if (typeof answer?.noul === "number") return YES.has(folded) ? "yes" : NO.has(folded) ? "no" : null;
  const options = Object.keys(answer?.probabilities ?? {});
  return options.find((one) => one === label) ?? options.find((one) => one.toLowerCase().normalize("NFC") === folded) ?? null;
}

/** Of judged answers, `{ value, probability, meant }` each: how many are right. */
export function measured(judged) {
  const right = judged.filter(({ value, meant }) => value === meant).length;
  const values = [...new Set(judged.flatMap(({ value, meant }) => [meant, value]))].sort();
  const counts = new Map(values.map((meant) => [meant, new Map(values.map((value) => [value, 0]))]));
  for (const { value, meant } of judged) counts.get(meant).set(value, counts.get(meant).get(value) + 1);
  return { count: judged.length, right, values, counts };
}

/** What is left to act on when only answers of at least this probability count. */
export function covered(judged, threshold) {
  const kept = judged.filter(({ probability }) => probability >= threshold);
  return { count: kept.length, wrong: kept.filter(({ value, meant }) => value !== meant).length };
}
