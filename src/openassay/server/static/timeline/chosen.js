// The moment that is looked at: what had happened, what was next, and what there was.
import { html, useRef, useState } from "../core/html.js";
import { place, turn } from "../core/place.js";
import { Mark } from "../core/parts.js";
import { shelf, thread } from "../core/store.js";
import { count, moment as instant, usd } from "../core/words.js";
import { may } from "../shell/account.js";
import { forking } from "./fork.js";
import { checked, chosen, costs, moments, values } from "./history.js";
import { named, stageWords } from "./stages.js";

export function Chosen() {
  const at = chosen.value;
  const list = moments.value;
  const isNow = at === list.length;
  const one = list[Math.min(at, list.length - 1)];
  const isOpening = !values.value;
  return html`<article class="card chosen ${isNow ? "" : "past"}" aria-labelledby="chosen-title"
    aria-busy=${isOpening ? "true" : "false"}>
    <div aria-live="polite">
      <h3 id="chosen-title">${title(one, isNow)}</h3>
      <p class="happened" dir="auto">${one?.summary || "This moment has no description."}</p>
      ${!isNow && html`<p class="note">The answer and the sources are shown as they were at this moment.</p>`}
    </div>
    <${Facts} one=${one} at=${at} isNow=${isNow} />
    <div class="row">
      ${may("write") &&
      html`<button type="button" class="first-choice" onClick=${() => (forking.value = true)}>Fork from here</button>`}
      ${!isNow &&
      checked.value[at] &&
      html`<button type="button" onClick=${() => compare(one)}>Compare with now</button>`}
    </div>
    <${Held} />
  </article>`;
}

function title(one, isNow) {
  if (isNow) return "Now";
  return one ? named(one) : "An earlier moment that is not listed";
}

const compare = (one) => turn({ with: `${place.value.thread}@${one.checkpoint}` });

function Facts({ one, at, isNow }) {
  if (!one) return null;
  const next = stageWords(one.next);
  return html`<dl class="facts">
    <div><dt>When</dt><dd>${instant(one.time)}</dd></div>
    <div><dt>Next</dt><dd>${next || (isNow ? "nothing, the run has finished" : "nothing, the run had finished")}</dd></div>
    <div><dt>Cost so far</dt><dd>${usd(isNow ? (thread.value?.usd ?? 0) : costs.value[at])}</dd></div>
    <div><dt>Sources</dt><dd>${sources(isNow)}</dd></div>
    <div><dt>Draft</dt><dd>${draft()}</dd></div>
  </dl>`;
}

function sources(isNow) {
  const read = values.value?.evidence.length;
  if (read === undefined) return "…";
  const used = isNow && shelf.value.sources.length;
  return used ? `${count(used, "source")} used of ${read} read` : read ? `${count(read, "source")} read` : "none yet";
}

function draft() {
  if (!values.value) return "…";
  const statements = values.value.draft?.sections?.flatMap((section) => section.sentences).length;
  return statements ? count(statements, "sentence") : values.value.draft ? "available" : "none yet";
}

/** Opened ones stay open from moment to moment, so that one can watch them change; while a moment is fetched, those of
 *  the one before keep their room, unseen, so that nothing jumps under the hand that moves the slider. */
function Held() {
  const last = useRef(null);
  last.current = values.value ?? last.current;
  const [open, setOpen] = useState({ plan: true, draft: false });
  const toggled = (name) => ({ target }) => setOpen((before) => ({ ...before, [name]: target.open }));
  if (!last.current) return null;
  const { plan, draft: text } = last.current;
  return html`<div class="held ${values.value ? "" : "past-it"}">
    <details open=${open.plan} onToggle=${toggled("plan")}>
      <summary>Plan${plan ? html` <span class="count">${plan.dag.length}</span>` : ""}</summary>
      ${open.plan && html`<${Plan} plan=${plan} />`}
    </details>
    <details open=${open.draft} onToggle=${toggled("draft")}>
      <summary>Draft</summary>
      ${open.draft && html`<${Draft} draft=${text} />`}
    </details>
  </div>`;
}

function Plan({ plan }) {
  if (!plan) return html`<p class="note">There was no plan yet.</p>`;
  return html`<p class="note" dir="auto">Deliverable: ${[plan.deliverable, ...plan.constraints].join(", ")}</p>
    <ol class="steps-of-plan">
      ${plan.dag.map((one) => html`<li key=${one.id}><code>${one.id}</code> <span dir="auto">${one.text}</span></li>`)}
    </ol>`;
}

function Draft({ draft: held }) {
  if (!held) return html`<p class="note">Nothing had been written yet.</p>`;
  if (!held.sections?.length) return html`<p class="prose" dir="auto">${held.text}</p>`;
  return html`<div class="prose">
    ${held.sections.map((section, at) => html`<section key=${at}>
      ${section.title && html`<h4 dir="auto">${section.title}</h4>`}
      <p dir="auto">${section.sentences.map((one) => html`<span>${one.text} <${Mark} mark=${one.mark} /> </span>`)}</p>
    </section>`)}
  </div>`;
}
