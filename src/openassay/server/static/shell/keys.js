// Single keys, and the page that tells of them. They can be turned off, for whoever dictates (WCAG 2.1.4).
import { effect, html, signal } from "../core/html.js";
import { Dialog, isWriting } from "../core/parts.js";
import { place, threadId, turn } from "../core/place.js";
import { focus } from "../core/store.js";
import { MARKS } from "../core/words.js";

const KEPT = "openassay.keys";
export const helpOpen = signal(false);
const isOn = signal(localStorage.getItem(KEPT) !== "off");
effect(() => localStorage.setItem(KEPT, isOn.value ? "on" : "off"));

const PANES = ["sources", "artifacts", "pictures", "timeline", "log"];
const ACTS = {
  "/": () => document.querySelector("[data-ask]")?.focus(),
  "?": () => (helpOpen.value = true),
  j: () => dispatchEvent(new Event("openassay:next")),
  k: () => dispatchEvent(new Event("openassay:previous")),
  ...Object.fromEntries(PANES.map((name, at) => [String(at + 1), () => threadId.value && turn({ panel: name })])),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "Escape") return escape(event);
  if (!isOn.value || isWriting(event.target) || document.querySelector("dialog[open]") || !ACTS[event.key]) return;
  event.preventDefault();
  ACTS[event.key]();
});

/** Out of a box; then what is highlighted; then the past. A dialog closes by itself. */
function escape(event) {
  if (document.querySelector("dialog[open]")) return;
  if (isWriting(event.target)) event.target.blur();
  else if (Object.keys(focus.value).length) focus.value = {};
  else if (place.value.at) turn({ at: null });
}

const TOLD = [
  ["/", "go to the question box"],
  ["j", "next statement"],
  ["k", "previous statement"],
  ["Enter", "show what a statement rests on"],
  ["1 – 5", "sources, artifacts, pictures, timeline, log"],
  ["Esc", "close, or go back to now"],
  ["?", "show this help"],
];

export function Keys() {
  if (!helpOpen.value) return null;
  return html`<${Dialog} title="Shortcuts and marks" onClose=${() => (helpOpen.value = false)}>
    <table><caption class="unseen">Shortcuts</caption><tbody>
      ${TOLD.map(([key, what]) => html`<tr key=${key}><th scope="row"><kbd>${key}</kbd></th><td>${what}</td></tr>`)}
    </tbody></table>
    <label class="row"><input type="checkbox" checked=${isOn.value} onChange=${(event) => (isOn.value = event.currentTarget.checked)} />
      Use single-key shortcuts</label>
    <h3>How well a statement is supported</h3>
    <dl class="facts">${Object.entries(MARKS).map(
      ([mark, one]) => html`<dt key=${mark}><b class="mark ${one.kind}">${mark}</b> ${one.short}</dt><dd>${one.told}</dd>`,
    )}</dl>
    <p class="note">Click a statement, or its source, to see the passage it rests on. No statement is published as fact unless a
      passage supports it.</p>
  </${Dialog}>`;
}
