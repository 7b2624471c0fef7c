// The statements of a report: what they are called, what they rest on, which are the weakest, and what the person
// thinks of them.
import { computed, effect, signal } from "../core/html.js";
import { claims, report, say } from "../core/store.js";

const RANK = { "⚠": 1, "✓": 2, "✓✓": 3 };

/** Lines of a draft do not say what they are, but a fact always has claims. */
export const isFact = (sentence) => (sentence.kind ? sentence.kind !== "frame" : sentence.claims.length > 0);

/** The same statement may stand in several places; what is thought of it holds for all of them. */
const keyOf = (sentence) => `${sentence.claims.join()} ${sentence.text}`;

/** name -> sentence, as they are read. */
export const statements = computed(() => {
  const found = new Map((report.value?.answers ?? []).map((answer, at) => [`answer-${at}`, answer]));
  (report.value?.sections ?? []).forEach((section, s) =>
    section.sentences.forEach((sentence, at) => isFact(sentence) && found.set(`${s}-${at}`, sentence)),
  );
  return found;
});

/** A statement, or a figure, by its name. */
export function statementOf(name) {
  const [, figure] = /^figure-(\d+)$/.exec(name) ?? [];
  return figure ? report.value?.figures[figure] : statements.value.get(name);
}

/** Each once, the weakest first: by its mark, then by how sure its claims are. */
export const weakest = computed(() => {
  const once = new Map();
  for (const [name, sentence] of statements.value) {
    const key = keyOf(sentence);
    if (once.has(key)) once.get(key).names.push(name);
    else once.set(key, { key, names: [name], sentence, rank: RANK[sentence.mark] ?? 0, sure: sureness(sentence) });
  }
  return [...once.values()].sort((a, b) => a.rank - b.rank || a.sure - b.sure);
});

const sureness = (sentence) => Math.min(1, ...claimsOf(sentence).map((claim) => claim.confidence));

export const claimsOf = (sentence) => sentence.claims.map((id) => claims.value.get(id)).filter(Boolean);

/** What a person has looked at: key -> "right" | "doubtful". It stays in this browser. */
export const judgements = signal(new Map());
const place = computed(() => {
  const { thread, run } = report.value?.provenance ?? {};
  return thread || run ? `openassay.judged.${thread}.${run}` : null;
});

effect(() => {
  judgements.value = place.value ? kept(place.value) : new Map();
});

function kept(name) {
  try {
    return new Map(Object.entries(JSON.parse(localStorage.getItem(name) ?? "{}")));
  } catch {
    return new Map();
  }
}

export const isDoubted = (sentence) => judgements.value.get(keyOf(sentence)) === "doubtful";

/** The same judgement again takes it back. */
export function judge(key, judgement) {
  const next = new Map(judgements.value);
  if (next.get(key) === judgement) next.delete(key);
  else next.set(key, judgement);
  judgements.value = next;
  try {
    localStorage.setItem(place.value, JSON.stringify(Object.fromEntries(next)));
  } catch {
    const help = "It will be lost when the page is closed.";
    say("This browser has no space left to store your judgement of a statement.", { help, wrong: true });
  }
}

export const looked = computed(() => {
  const known = weakest.value.map((one) => judgements.value.get(one.key)).filter(Boolean);
  return { all: known.length, doubtful: known.filter((one) => one === "doubtful").length };
});
