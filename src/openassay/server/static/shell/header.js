// The header of the page: the open thread, its status, and what can be done with it.
import { signedOut } from "../core/api.js";
import { effect, html, useState } from "../core/html.js";
import { link, threadId } from "../core/place.js";
import { active, queued, status, thread, trouble } from "../core/store.js";
import { STATUSES } from "../core/words.js";
import { ThreadsDrawer } from "../threads/drawer.js";
import { ThreadMenu } from "../threads/menu.js";
import { Account } from "./account.js";
import { helpOpen } from "./keys.js";
import { choose, theme } from "./theme.js";

const KINDS = { done: "green", failed: "red", waiting: "orange", running: "blue", queued: "blue" };
const NEXT = { auto: "light", light: "dark", dark: "auto" };

effect(() => {
  document.title = [...titled(), "OpenAssay"].join(" · ");
});

/** For the tab, whatever is looked at. */
function titled() {
  if (signedOut.value) return ["Sign in"];
  if (threadId.value && trouble.value?.noThread) return ["Thread not found"];
  if (!threadId.value || !thread.value) return [];
  return [`${active.value ? "… " : ""}${thread.value.title || "New thread"}`];
}

export function Header() {
  const [listOpen, setListOpen] = useState(false);
  return html`<header class="head">
    <button type="button" class="plain icon for-threads" aria-label="Threads" title="Threads" onClick=${() => setListOpen(true)}>
      <span aria-hidden="true">☰</span></button>
    <a class="brand" ...${link({})}><${Sign} /> OpenAssay</a>
    <div class="what">${threadId.value && html`<${Title} />`}</div>
    <div class="tools">
      ${threadId.value && thread.value && html`<${ThreadMenu} />`}
      <button type="button" class="plain icon" title="Theme: ${theme.value}" aria-label="Theme: ${theme.value}. Change to ${NEXT[theme.value]}."
        onClick=${() => choose(NEXT[theme.value])}><span aria-hidden="true">${{ auto: "◐", light: "○", dark: "●" }[theme.value]}</span></button>
      <button type="button" class="plain icon" aria-label="Shortcuts and help" title="Shortcuts and help (?)" onClick=${() => (helpOpen.value = true)}>?</button>
      <${Account} />
    </div>
    ${listOpen && html`<${ThreadsDrawer} onClose=${() => setListOpen(false)} />`}
  </header>`;
}

function Sign() {
  return html`<svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true"><rect width="32" height="32" rx="7" fill="var(--accent)" />
    <path d="M9 23 16 8l7 15M11.6 18h8.8" fill="none" stroke="var(--accent-ink)" stroke-width="2.6" stroke-linecap="round" /></svg>`;
}

function Title() {
  const one = thread.value;
  if (!one) return null;
  const words = queued.value ? `number ${queued.value} in the queue` : STATUSES[status.value];
  return html`<span class="title" dir="auto" title=${one.title}>${one.title || "New thread"}</span>
    ${status.value && html`<span class="chip ${KINDS[status.value] ?? ""}" role="status">${words}</span>`}`;
}
