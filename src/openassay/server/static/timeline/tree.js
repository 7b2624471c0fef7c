// The tree this thread is part of.
import { html } from "../core/html.js";
import { link, threadId, turn } from "../core/place.js";
import { STATUSES, usd } from "../core/words.js";
import { choose, family, indexOf, moments, origin, tree } from "./history.js";

const COLOURS = { done: "green", failed: "red", waiting: "orange", running: "blue", queued: "blue" };

export function Branches() {
  if (!tree.value) return null;
  const others = family.value.length - 1;
  return html`<section class="stack tight" aria-labelledby="branches-title">
    <h3 id="branches-title">Branches <span class="count">${others}</span></h3>
    ${tree.value.ofDeleted && html`<p class="note">The thread this one was forked from was deleted.</p>`}
    ${others > 0
      ? html`<ul class="family"><${Node} node=${tree.value} /></ul>`
      : html`<p class="note">None yet. Fork from any moment to try something else; this thread is not changed.</p>`}
  </section>`;
}

function Node({ node }) {
  const isThis = node.thread === threadId.value;
  return html`<li>
    <div class="relative ${isThis ? "this" : ""}">
      <p dir="auto">${isThis
        ? html`<strong>${node.title}</strong>`
        : html`<a ...${link({ thread: node.thread, panel: "timeline" })}>${node.title}</a>`}</p>
      ${node.changed && !node.title.startsWith(node.changed) && html`<p class="note" dir="auto">${node.changed}</p>`}
      <p class="row facts-of-relative">
        ${isThis && html`<span class="chip blue">this thread</span>`}
        ${node.status &&
        html`<span class="chip ${COLOURS[node.status] ?? ""}">${STATUSES[node.status] ?? node.status}</span>`}
        <span class="note">${usd(node.usd)}</span>
        <${Began} node=${node} />
        ${!isThis && html`<button type="button" class="small" onClick=${() => turn({ with: sideOf(node) })}
          aria-label="Compare with: ${node.title}">Compare</button>`}
      </p>
    </div>
    ${node.branches.length > 0 &&
    html`<ul>${node.branches.map((one) => html`<${Node} key=${one.thread} node=${one} />`)}</ul>`}
  </li>`;
}

/** A parent as it was when this began; others as they are. */
const sideOf = ({ thread }) => (origin.value?.startsWith(`${thread}@`) ? origin.value : thread);

/** Where on its parent it began; on the thread that is looked at one can go there. */
function Began({ node }) {
  if (!node.moment) return null;
  const at = node.parent === threadId.value ? indexOf(node.checkpoint) : undefined;
  return at === undefined
    ? html`<span class="note">forked at ${node.moment}</span>`
    : html`<button type="button" class="plain small" onClick=${() => choose(at)}>
        forked at moment ${moments.value[at].number}</button>`;
}
