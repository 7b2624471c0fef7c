// The events of a run in the order in which they are read: each step with what was done in it, or simply by time.
import { computed, signal } from "../core/html.js";
import { events } from "../core/store.js";
import { KINDS, line } from "./lines.js";

export const kinds = signal(new Set()); // none: all of them
export const words = signal("");
export const order = signal("step"); // or "time"

/** [{line, depth, state}]: `state` of a step: {seconds} once it is done, else {}. */
const rows = computed(() => (order.value === "time" ? byTime(events.value) : byStep(events.value)));

export const counts = computed(() => {
  const found = Object.fromEntries(KINDS.map((one) => [one.name, 0]));
  for (const row of rows.value) for (const name of [row.line.kind, ...row.line.tags]) found[name] += 1;
  return found;
});

export const shown = computed(() => {
  const [wanted, text] = [kinds.value, words.value.trim().toLowerCase()];
  if (!wanted.size && !text) return rows.value;
  return rows.value.filter(
    ({ line: one }) =>
      (!wanted.size || wanted.has(one.kind) || one.tags.some((tag) => wanted.has(tag))) &&
      (!text || one.found.includes(text)),
  );
});

export const total = computed(() => rows.value.length);

const byTime = (list) => merged(list).map((event) => ({ line: line(event), depth: 0 }));

/** Steps run side by side; what belongs to one stands under it. */
function byStep(list) {
  const under = new Map();
  const states = new Map();
  const top = [];
  for (const event of merged(list)) {
    if (event.kind === "enter") {
      states.set(event.seq, {});
      under.set(event.seq, []);
    }
    const step = event.kind === "enter" ? null : under.get(event.parent);
    if (event.kind === "leave" && step && event.data.seconds !== undefined)
      states.get(event.parent).seconds = event.data.seconds;
    else (step ?? top).push(event);
  }
  return top.flatMap((event) => [
    { line: line(event), depth: 0, state: states.get(event.seq) },
    ...(under.get(event.seq) ?? []).map((one) => ({ line: line(one), depth: 1 })),
  ]);
}

const pieces = new WeakMap(); // the first piece of a draft -> all of them as one event

/** A model writes in thousands of pieces: what comes in a row is one line. */
function merged(list) {
  const found = [];
  for (let at = 0; at < list.length; at += 1) {
    if (list[at].kind !== "token") {
      found.push(list[at]);
      continue;
    }
    const from = at;
    while (list[at + 1]?.kind === "token") at += 1;
    found.push(together(list, from, at));
  }
  return found;
}

function together(list, from, to) {
  const before = pieces.get(list[from]);
  if (before?.data.pieces === to - from + 1) return before;
  const texts = list.slice(from, to + 1).map((event) => event.data.text);
  const one = { ...list[from], data: { ...list[from].data, text: texts.join(""), pieces: texts.length } };
  pieces.set(list[from], one);
  return one;
}
