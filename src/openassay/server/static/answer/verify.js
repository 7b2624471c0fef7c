// A walk through all statements, the weakest first: each with its claims, its passages in context, and one's own word.
import { html, signal, useEffect, useRef, useState } from "../core/html.js";
import { Mark } from "../core/parts.js";
import { turn } from "../core/place.js";
import { basis, cards, openPassage, showStatement } from "../core/store.js";
import { count } from "../core/words.js";
import { Excerpt, textAround } from "./excerpt.js";
import { Claim } from "./proof.js";
import { claimsOf, judge, judgements, looked, weakest } from "./statements.js";

const SHOWN = 3; // passages of one claim in full
const wide = matchMedia("(min-width: 901px)");
export const verifying = signal(null); // the place in the walk, or null

export function VerifyButton() {
  const { all, doubtful } = looked.value;
  if (!weakest.value.length) return null;
  return html`<button type="button" class="first-choice verify-button" onClick=${begin}
      aria-expanded=${verifying.value === null ? "false" : "true"}>Verify</button>
    ${all > 0 && html`<span class="note">${told(all, doubtful)}</span>`}`;
}

const told = (all, doubtful) => `${all} of ${weakest.value.length} looked at${doubtful ? `, ${doubtful} doubtful` : ""}`;

/** Where one has stopped the last time. */
function begin() {
  const open = weakest.value.findIndex((one) => !judgements.value.has(one.key));
  verifying.value = Math.max(0, open);
}

function end() {
  verifying.value = null;
  document.querySelector(".verify-button")?.focus();
}

export function Verify() {
  const all = weakest.value;
  if (verifying.value === null || !all.length || basis.value !== "report") return null;
  return html`<${Walk} all=${all} at=${Math.min(verifying.value, all.length - 1)} />`;
}

function Walk({ all, at }) {
  const box = useRef();
  const one = all[at];
  const to = (next) => (verifying.value = Math.min(Math.max(next, 0), all.length - 1));
  useEffect(() => box.current.focus({ preventScroll: true }), []);
  useEffect(() => pointedAt(one), [one.key]);
  useEffect(() => prepared(all[at + 1]), [at]);
  return html`<section class="verify card" aria-label="Verify the statements" tabindex="-1" ref=${box}
    onKeyDown=${(event) => key(event, at, to)}>
    <header class="row apart">
      <h2>Verify <span class="note" role="status">${at + 1} of ${all.length}, weakest first</span></h2>
      <span class="row"><span class="note">${told(looked.value.all, looked.value.doubtful)}</span>
        <button type="button" class="plain icon" aria-label="Close" onClick=${end}>✕</button></span>
    </header>
    <progress max=${all.length} value=${looked.value.all} aria-label="Statements looked at"></progress>
    <div class="seen" key=${one.key}>
      <p class="said" dir="auto">${one.sentence.text} <${Mark} mark=${one.sentence.mark} /></p>
      ${one.names.length > 1 && html`<p class="note">It appears in ${one.names.length} places in the report.</p>`}
      ${claimsOf(one.sentence).map(
        (claim, n) => html`<${Claim} key=${claim.id} claim=${claim} said=${one.sentence.text}>
          <${Passages} claim=${claim} leads=${!n} /></${Claim}>`,
      )}
    </div>
    <footer class="row apart">
      <span class="row"><button type="button" disabled=${!at} onClick=${() => to(at - 1)}>← Previous</button>
        <button type="button" disabled=${at === all.length - 1} onClick=${() => to(at + 1)}>Next →</button></span>
      <span class="row"><${Judge} one=${one} word="right" next=${() => to(at + 1)}>Looks right</${Judge}>
        <${Judge} one=${one} word="doubtful" next=${() => to(at + 1)}>Doubtful</${Judge}></span>
    </footer>
  </section>`;
}

/** Setting a judgement moves on to the next statement; removing it does not. */
function Judge({ one, word, next, children }) {
  const isSaid = judgements.value.get(one.key) === word;
  const say = () => {
    judge(one.key, word);
    if (!isSaid) next();
  };
  return html`<button type="button" class=${word} aria-pressed=${isSaid ? "true" : "false"}
    onClick=${say}>${children}</button>`;
}

function key(event, at, to) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (by) to(at + by);
  else if (event.key === "Escape") end();
  else return;
  event.preventDefault();
}

/** In the text and, where there is room beside it, among the sources. */
function pointedAt(one) {
  showStatement(one.names[0], one.sentence.claims[0], one.sentence.citations[0]);
  if (wide.matches) turn({ panel: "sources" });
}

/** What comes next is fetched while one reads. */
function prepared(next) {
  for (const claim of next ? claimsOf(next.sentence) : []) {
    for (const span of claim.spans.slice(0, SHOWN)) textAround(span.document, span.start, span.end).catch(() => {});
  }
}

/** The marked words of the first passage, should they lie below what is seen. */
function inSight(mark) {
  const box = mark.closest(".seen");
  const [words, seen] = [mark.getBoundingClientRect(), box.getBoundingClientRect()];
  if (words.bottom > seen.bottom) box.scrollTop += Math.min(words.bottom - seen.bottom + 8, words.top - seen.top);
}

function Passages({ claim, leads }) {
  const all = [...claim.spans.map((span) => [span, false]), ...claim.against.map((span) => [span, true])];
  const [shown, setShown] = useState(SHOWN);
  return html`<ul class="bearing">
    ${all.slice(0, shown).map(([span, against], n) => html`<li class="borne ${against ? "against" : ""}" key=${n}>
      ${against && html`<p class="note">contradicts it</p>`}
      <${Excerpt} span=${span} shown=${leads && !n ? inSight : undefined} />
      <p class="row"><span class="cited">${span.source}</span>
        <span class="note grow" dir="auto">${cards.value.get(span.source)?.title ?? ""}</span>
        <button type="button" class="plain small" onClick=${() => openPassage(span, claim.id)}>Open passage</button></p>
    </li>`)}
    ${all.length > shown &&
    html`<li><button type="button" class="plain small" onClick=${() => setShown(all.length)}>
      ${count(all.length - shown, "more passage")}</button></li>`}
  </ul>`;
}
