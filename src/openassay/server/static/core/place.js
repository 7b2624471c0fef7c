// Where one is: the address of the page says it all, so a reload or a link leads to the same place.
//   /                       ask
//   /t/THREAD               a thread; ?panel= &at=CHECKPOINT &run=RUN &with=THREAD &statement= &source=
import { computed, signal } from "./html.js";

const here = signal(read());

function read() {
  const thread = /^\/t\/([0-9A-Za-z_-]+)$/.exec(location.pathname)?.[1] ?? null;
  return { ...Object.fromEntries(new URLSearchParams(location.search)), thread }; // no link says which API is called
}

addEventListener("popstate", () => (here.value = read()));

export const place = computed(() => here.value);
export const threadId = computed(() => here.value.thread);

export function addressOf({ thread, ...query }) {
  const named = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `${thread ? `/t/${thread}` : "/"}${named.length ? `?${new URLSearchParams(named)}` : ""}`;
}

/** Somewhere else: what is not named is left behind. `keep`: the way back leads here. */
export function go(next, { keep = true } = {}) {
  moved(next, keep ? "pushState" : "replaceState");
}

/** The same place, with something changed; `null` takes it out. `keep`: the way back leads here. */
export function turn(changes, { keep = false } = {}) {
  moved({ ...here.peek(), ...changes }, keep ? "pushState" : "replaceState");
}

function moved(next, how) {
  const target = addressOf(next);
  if (target !== location.pathname + location.search) history[how](null, "", target);
  here.value = read();
}

/** For links: a plain click stays in the page, any other is the browser's. */
export const link = (next) => ({
  href: addressOf(next),
  onClick: (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(next);
  },
});
