// Pinned sources. A pin shows immediately, and is undone if the server refuses it.
import { put, remove } from "../core/api.js";
import { threadId } from "../core/place.js";
import { attempt, shelf } from "../core/store.js";

export async function setPinned({ key, id, document: hash }, on) {
  const address = `/api/threads/${threadId.value}/sources/${hash}/pin`;
  marked(hash, on);
  requestAnimationFrame(() => document.getElementById(`pin-${key}`)?.focus()); // the card has moved; one stays with it
  const done = on ? `${id} is pinned and listed first.` : `${id} is no longer pinned.`;
  if (!(await attempt(() => (on ? put(address) : remove(address)), done))) marked(hash, !on);
}

/** On what is shown now, which need not be what was shown when it was asked for. */
function marked(hash, on) {
  const { sources, pinned, ...rest } = shelf.value;
  const others = pinned.filter((one) => one !== hash);
  shelf.value = {
    ...rest,
    pinned: on ? [...others, hash] : others,
    sources: sources.map((card) => (card.document === hash ? { ...card, pinned: on } : card)),
  };
}
