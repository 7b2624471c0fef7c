// Somebody wants to see one source. The wish is kept until the pane is there to fulfil it, and is fulfilled once.
import { effect, signal } from "../core/html.js";
import { place } from "../core/place.js";
import { focus, say } from "../core/store.js";
import { clear, clusters, found, want } from "./sieve.js";
import { stock } from "./stock.js";

export const wanted = signal(null); // {source, claim, quiet}; quiet: the keyboard stays where it is
const BEFORE = 3; // cards shown above one that lies far down: to show all of hundreds takes half a second
let before = {};

effect(() => {
  const now = focus.value;
  const quiet = Boolean(now.statement) && now.statement !== before.statement; // the answer is looked at
  if (now.source && now !== before) wanted.value = { source: now.source, claim: now.claim, quiet };
  before = now;
});

let linked;

effect(() => {
  const { source } = place.value; // a link may name one
  if (source && source !== linked) focus.value = { ...focus.peek(), source };
  linked = source;
});

/** Brings the card into view and the keyboard to it; a filter that hides it goes. */
export function fulfil() {
  const { source, claim, quiet } = wanted.peek();
  const isIt = (card) => card.id === source;
  if (!stock.peek().cards.some(isIt)) return;
  if (!found.peek().some(isIt)) {
    clear();
    say(`The filters were cleared to show ${source}.`);
    return; // once they are shown, this is called again
  }
  const card = document.getElementById(`source-${source}`);
  if (!card) {
    want({ skipped: Math.max(0, clusters.peek().findIndex((one) => one.cards.some(isIt)) - BEFORE) });
    return;
  }
  if (!card.offsetParent) return; // the pane is not shown: the wish waits until it is
  wanted.value = null;
  if (!quiet) card.focus({ preventScroll: true });
  const excerpt = claim && card.querySelector(".excerpts > .on");
  card.scrollIntoView({ block: "start" });
  excerpt?.scrollIntoView({ block: "nearest" });
}
