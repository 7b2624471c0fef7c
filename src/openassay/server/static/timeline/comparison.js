// Two branches, or two moments, held against each other statement by statement.
import { get, Problem } from "../core/api.js";
import { html, signal, untracked, useSignalEffect } from "../core/html.js";
import { place, threadId, turn } from "../core/place.js";
import { Busy, Wrong } from "../core/parts.js";
import { active, generation } from "../core/store.js";
import { cut } from "../core/words.js";
import { Differences } from "./differences.js";
import { checked, family, indexOf, moments, origin } from "./history.js";

const held = signal(null); // {of, diff} or {of, problem}

export function Comparison() {
  useSignalEffect(() => {
    const [id, other] = [threadId.value, place.value.with];
    void generation.value;
    if (other && family.value.length) untracked(() => ask(id, other));
  });
  const other = place.value.with;
  const known = other && held.value?.of === `${threadId.value} ${other}` ? held.value : null;
  return html`<section class="stack tight" aria-labelledby="comparison-title">
    <h3 id="comparison-title">Compare</h3>
    <${Sides} other=${other} />
    <div class="stack" aria-live="polite" aria-busy=${other && !known ? "true" : "false"}>
      ${other && !known && html`<${Busy}>Comparing …</${Busy}>`}
      ${known?.problem && html`<${Refused} problem=${known.problem} other=${other} />`}
      ${known?.diff && html`<${Differences} diff=${known.diff} nameOf=${nameOf} />`}
    </div>
  </section>`;
}

async function ask(id, other) {
  const of = `${id} ${other}`;
  const [a, b] = ordered(id, other);
  const told = await get("/api/diff", { a, b }).then(
    (diff) => ({ of, diff }),
    (problem) => (problem instanceof Problem ? { of, problem } : Promise.reject(problem)),
  );
  if (of === `${threadId.value} ${place.value.with}`) held.value = told;
}

/** What is older comes first: a moment before now, a parent before its branch. */
function ordered(id, other) {
  const at = (name) => family.value.findIndex((node) => node.thread === name);
  return other.includes("@") || at(other) < at(id) ? [other, id] : [id, other];
}

/** How a side is called here. */
function nameOf(side) {
  const [id, checkpoint] = side.split("@");
  const node = family.value.find((one) => one.thread === id);
  const isOwn = id === threadId.value;
  const title = `“${cut(node?.changed || node?.title || id, 60)}”`;
  const own = isOwn ? "this thread" : id === parent() ? "the parent" : title;
  const at = checkpoint && (indexOf(checkpoint) ?? -1);
  if (!checkpoint) return id === parent() ? "the parent as it is now" : own;
  if (side === origin.value) return "the parent";
  return at >= 0 && isOwn ? `moment ${moments.value[at].number} of this thread` : `${own} at ${checkpoint}`;
}

/** While a report is still being made there is nothing wrong with its not being there. */
function Refused({ problem, other }) {
  if (active.value && problem.status === 404)
    return html`<${Busy}>The comparison appears as soon as the report of this thread is finished.</${Busy}>`;
  return html`<${Wrong} problem=${problem} again=${() => ask(threadId.value, other)} />`;
}

function Sides({ other }) {
  const threads = family.value.filter((node) => node.thread !== threadId.value);
  const past = moments.value.filter((one, at) => checked.value[at]);
  const listed = [origin.value, ...threads.map((node) => node.thread), ...past.map(sideOf)];
  const isListed = !other || listed.includes(other);
  if (!threads.length && !past.length && !other)
    return html`<p class="note">Once there are branches or checked statements, you can compare them here.</p>`;
  return html`<div class="row sides">
    <label class="field"><span>Compare this thread with</span>
      <select value=${other ?? ""} onChange=${(event) => turn({ with: event.currentTarget.value || null })}>
        <option value="">nothing</option>
        ${threads.length > 0 && html`<optgroup label="Branches">
          ${origin.value?.includes("@") && html`<option value=${origin.value}>
            parent: at the end of the question this branch was forked from</option>`}
          ${threads.map((node) => html`<option key=${node.thread} value=${node.thread}>
            ${`${role(node)}: ${cut(node.changed || node.title, 70)}`}</option>`)}
        </optgroup>`}
        ${past.length > 0 && html`<optgroup label="Moments of this thread">
          ${past.map((one) => html`<option key=${one.checkpoint} value=${sideOf(one)}>
            ${`moment ${one.number}: ${cut(one.summary, 60)}`}</option>`)}
        </optgroup>`}
        ${!isListed && html`<option value=${other}>${nameOf(other)}</option>`}
      </select></label>
    ${other && html`<button type="button" class="plain" onClick=${() => turn({ with: null })}>Stop comparing</button>`}
  </div>`;
}

const sideOf = (one) => `${threadId.value}@${one.checkpoint}`;

const parent = () => family.value.find((one) => one.thread === threadId.value)?.parent;

function role(node) {
  if (node.thread === parent()) return "parent as it is now";
  return node.parent === threadId.value ? "branch" : "related thread";
}
