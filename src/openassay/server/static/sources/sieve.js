// Which cards are shown, and in which order. Each thread keeps its own filter.
import { computed, signal } from "../core/html.js";
import { threadId } from "../core/place.js";
import { stock, uses } from "./stock.js";

const ALL = { words: "", from: "", kind: "", since: "", until: "", undated: true, pinned: false };
const PLAIN = { ...ALL, clustered: true, order: "number", skipped: 0 }; // skipped: before one that lies far down
export const ORDERS = {
  number: "number", credibility: "credibility", date: "date, newest first", cited: "times cited",
};

const kept = signal(new Map()); // thread -> its filter
export const wish = computed(() => kept.value.get(threadId.value) ?? PLAIN);
export const narrowed = computed(() => Object.keys(ALL).filter((name) => wish.value[name] !== ALL[name]));

export function want(changes) {
  kept.value = new Map(kept.value).set(threadId.value, { ...wish.value, skipped: 0, ...changes });
}

export const clear = () => want(ALL);

// -- words ------------------------------------------------------------------------------------------------

const words = computed(() => wish.value.words.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 12));
const texts = computed(() => new Map(stock.value.cards.map((card) => [card.key, searched(card)])));

const searched = (card) =>
  [card.id, card.title, card.from, card.url, card.author, card.snippet, ...card.excerpts.map((one) => one.quote)]
    .join("\n").toLowerCase();

/** Matches any of the words looked for; null when none is. */
export const needle = computed(() => {
  const parts = words.value.map((word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  return parts.length ? new RegExp(`(${parts.join("|")})`, "iu") : null;
});

// -- dates: some are only a year, or a year and a month ---------------------------------------------------

const earliest = (date) => (date + "-01-01".slice(Math.max(0, date.length - 4))).slice(0, 10);
const latest = (date) => (date + "-12-31".slice(Math.max(0, date.length - 4))).slice(0, 10);

function dated({ published }, { since, until, undated }) {
  if (!published) return undated;
  return (!since || latest(published) >= since) && (!until || earliest(published) <= until);
}

// -- what is left -----------------------------------------------------------------------------------------

const shown = (card) => {
  const asked = wish.value;
  return (
    (!asked.from || card.from === asked.from) && (!asked.kind || card.kind === asked.kind) &&
    (!asked.pinned || card.pinned) && dated(card, asked) &&
    words.value.every((word) => texts.value.get(card.key).includes(word))
  );
};

const place = (card) => Number(card.id?.slice(1) ?? Infinity);
const BY = {
  number: () => 0,
  credibility: (a, b) => (b.credibility ?? 0) - (a.credibility ?? 0),
  date: (a, b) => (b.published ?? "").localeCompare(a.published ?? ""),
  cited: (a, b) => (uses.value.cited.get(b.id) ?? 0) - (uses.value.cited.get(a.id) ?? 0),
};

export const found = computed(() => {
  const by = BY[wish.value.order];
  return stock.value.cards
    .filter(shown)
    .sort((a, b) => (b.pinned ?? 0) - (a.pinned ?? 0) || by(a, b) || place(a) - place(b) || 0);
});

/** [{key, cards}]: sources that count once stand together, where the first of them would. */
export const clusters = computed(() => {
  const together = new Map();
  for (const card of found.value) {
    const key = (wish.value.clustered && card.group) || card.key;
    if (together.has(key)) together.get(key).cards.push(card);
    else together.set(key, { key, cards: [card] });
  }
  return [...together.values()];
});

/** [[value, how many]], the most frequent first. */
const counted = (name) => {
  const counts = new Map();
  for (const card of stock.value.cards) counts.set(card[name], (counts.get(card[name]) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || String(a[0]).localeCompare(String(b[0])));
};

export const hosts = computed(() => counted("from"));
export const kinds = computed(() => counted("kind"));
