// Changes that were not saved yet. They outlive a change of pane, and a reload.
import { signal } from "../core/html.js";
import { say } from "../core/store.js";

const PREFIX = "openassay.unsaved.";
const PAUSE = 400; // ms: a large table is not stored again with every keystroke

export const drafts = signal(read()); // "THREAD/NAME" -> {title, content, tag}: `tag` of the version it was made from
const late = new Map(); // what is to be stored yet
const lost = new Set(); // what does not fit
let timer = 0;

function read() {
  const names = Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX));
  return Object.fromEntries(names.map((name) => [name.slice(PREFIX.length), JSON.parse(sessionStorage.getItem(name))]));
}

export const draftName = (thread, name) => `${thread}/${name}`;

export function keepDraft(name, draft) {
  drafts.value = { ...drafts.value, [name]: draft };
  late.set(name, draft);
  clearTimeout(timer);
  timer = setTimeout(store, PAUSE);
}

export function dropDraft(name) {
  const { [name]: _, ...rest } = drafts.value;
  drafts.value = rest;
  late.delete(name);
  lost.delete(name);
  sessionStorage.removeItem(PREFIX + name);
}

function store() {
  for (const [name, draft] of late) {
    try {
      sessionStorage.setItem(PREFIX + name, JSON.stringify(draft));
      lost.delete(name);
    } catch (error) {
      if (error.name !== "QuotaExceededError") throw error;
      if (!lost.has(name))
        say("These changes are too large for the browser to keep after a reload.", {
          help: "Save them before you leave the page.",
          wrong: true,
        });
      lost.add(name);
    }
  }
  late.clear();
}

addEventListener("pagehide", store);
addEventListener("beforeunload", (event) => {
  store();
  if (lost.size) event.preventDefault(); // the browser asks whether to leave
});
