// What there is to show, whatever it comes from: a report, a moment of the past, or a run that is still reading.
import { get, Problem } from "../core/api.js";
import { computed, effect, signal, untracked } from "../core/html.js";
import { threadId } from "../core/place.js";
import { active, basis, claims, evidence, pages, report, sections, shelf } from "../core/store.js";
import { linkable } from "../core/words.js";

export const KINDS = {
  document: "document", web: "web page", academic: "academic", news: "news", code: "code", demo: "demo data",
};

/** {basis: "report" | "moment" | "reading", cards}; a card has what its basis knows of it. */
export const stock = computed(() => {
  if (basis.value === "moment") return { basis: "moment", cards: (evidence.value ?? []).map(read) };
  if (basis.value !== "draft" && (report.value || shelf.value.sources.length)) {
    return { basis: "report", cards: shelf.value.sources.map(used) };
  }
  const met = () => [...pages.value.values()].map((one) => named({ ...kindOf(one.url), ...one }));
  return { basis: "reading", cards: evidence.value?.map(read) ?? met() };
});

const named = (card) => ({
  key: card.document || card.url, excerpts: [], ...card, title: card.title || card.url,
  from: card.host || (card.kind === "demo" ? "demo data" : "your documents"),
});

function used(card) {
  const text = snippets.value.get(card.document) ?? "";
  const snippet = text.startsWith(card.title) ? text.slice(card.title.length).trim() : text;
  return named({ ...card, snippet });
}

/** What claims rest on or, before there are any, the passages that were chosen. */
function read(one) {
  const chosen = (one.chunks ?? []).map(({ start, end, text }) => ({ start, end, quote: text }));
  const excerpts = borne.value.get(one.content_hash) ?? chosen;
  return named({ ...one, document: one.content_hash, snippet: excerpts.length ? "" : one.snippet, excerpts });
}

/** document -> the passages of it that claims rest on */
const borne = computed(() => {
  const found = new Map();
  for (const claim of claims.value.values()) {
    const spans = [...claim.spans.map((span) => [span, false]), ...claim.against.map((span) => [span, true])];
    for (const [{ document, start, end, quote }, against] of spans) {
      if (!found.has(document)) found.set(document, []);
      found.get(document).push({ claim: claim.id, start, end, quote, against });
    }
  }
  return found;
});

function kindOf(url) {
  if (linkable(url)) return { kind: "web", host: new URL(url).host };
  return { kind: url.startsWith("demo:") ? "demo" : "document" };
}

// -- where the text says it -------------------------------------------------------------------------------

/** Claim -> the first statement that rests on it, and source -> how many statements cite it. */
export const uses = computed(() => {
  const [statements, cited] = [new Map(), new Map()];
  sections.value.forEach((section, at) =>
    section.sentences.forEach((sentence, n) => {
      for (const claim of sentence.claims ?? []) if (!statements.has(claim)) statements.set(claim, `${at}-${n}`);
      for (const source of sentence.citations ?? []) cited.set(source, (cited.get(source) ?? 0) + 1);
    }),
  );
  return { statements, cited };
});

// -- what a page says in short: the report does not hold it, the thread's state does ----------------------

const snippets = signal(new Map()); // document -> its first words that matter
let asked = "";

effect(() => {
  const [thread, run] = [threadId.value, report.value?.provenance.run];
  if (thread && run && !active.value && asked !== run) untracked(() => fetchSnippets(thread, (asked = run)));
});

async function fetchSnippets(thread, run) {
  try {
    const { values } = await get(`/api/threads/${thread}/state`);
    if (asked === run) snippets.value = new Map(values.evidence.map((one) => [one.content_hash, one.snippet]));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    asked = ""; // cards do without until there is another reason to ask
  }
}
