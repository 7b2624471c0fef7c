// The person's threads, as they are searched and paged through.
import { get, Problem } from "../core/api.js";
import { effect, signal, untracked } from "../core/html.js";
import { generation } from "../core/store.js";

export const found = signal({ threads: [], next: null, problem: null, loading: true });
export const words = signal("");

const PAUSE = 200; // ms after the last letter
let asked = null;
let timer;

/** From the start; the current list stays until the answer arrives. */
export async function load() {
  await page(null, (fresh) => fresh);
}

export async function loadMore() {
  await page(found.value.next, (fresh) => [...found.value.threads, ...fresh]);
}

async function page(cursor, merged) {
  asked?.abort();
  const mine = (asked = new AbortController());
  found.value = { ...found.value, loading: true };
  try {
    const told = await get("/api/threads", { limit: 40, q: words.value.trim(), cursor }, { abort: mine.signal });
    found.value = { threads: merged(told.threads), next: told.nextCursor, problem: null, loading: false };
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Problem)) throw error;
    found.value = { ...found.value, problem: error, loading: false };
  }
}

effect(() => {
  words.value;
  generation.value; // a title, a status or a cost may have changed
  clearTimeout(timer);
  timer = setTimeout(() => untracked(load), found.peek().threads.length ? PAUSE : 0);
});
