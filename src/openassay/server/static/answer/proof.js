// The card beside a statement: its claims, how each was judged and why, and the passages that bear it out.
import { html, useLayoutEffect, useRef, useState } from "../core/html.js";
import { Mark } from "../core/parts.js";
import { basis, cards, claims, openPassage, showSource } from "../core/store.js";
import { count, cut, MARKS, percent, VERDICTS } from "../core/words.js";
import { claimsOf } from "./statements.js";

const MOST = 6; // passages of one claim on a card
const SIGNS = { supported: "✓", partly: "◐", contradicted: "✕", not_found: "?" };
const COLOURS = { supported: "green", partly: "orange", contradicted: "red", not_found: "" };

const UNKNOWN = {
  draft: "Its passages can be opened when the report is ready.",
  moment: "Its passages are not available for this moment.",
};

export function Proof({ open, root, find, close }) {
  const name = open.value?.name;
  const sentence = name && find(name);
  return sentence ? html`<${Card} key=${name} name=${name} sentence=${sentence} root=${root} close=${close} />` : null;
}

function Card({ name, sentence, root, close }) {
  const box = useRef();
  const [at, setAt] = useState(null);
  useLayoutEffect(() => setAt(placed(root.current, name, box.current)), [name]);
  useLayoutEffect(() => described(root.current, name), [name]);
  const known = claimsOf(sentence);
  return html`<section class="proof card" role="dialog" aria-label="What this statement rests on" ref=${box}
    style=${at ?? { visibility: "hidden" }}>
    <header class="row apart">
      <p id="proof-told"><${Mark} mark=${sentence.mark} /> ${MARKS[sentence.mark]?.told ?? "It has no mark."}
        ${" "}<span class="note">${resting(known)}</span></p>
      <button type="button" class="plain icon small" aria-label="Close" onClick=${close}>✕</button>
    </header>
    ${known.map((claim) => html`<${Claim} key=${claim.id} claim=${claim} said=${sentence.text} />`)}
    ${!known.length &&
    html`<p class="note">${UNKNOWN[basis.value] ?? ""} It cites
      ${" "}${sentence.citations.join(", ") || "nothing yet"}.</p>`}
  </section>`;
}

const resting = (known) =>
  known.length ? `Rests on ${count(known.reduce((sum, claim) => sum + claim.spans.length, 0), "passage")}.` : "";

/** Below the last line of the statement or, where the window ends, above its first. */
function placed(root, name, box) {
  const statement = root.querySelector(`#statement-${CSS.escape(name)}`);
  if (!statement) return null;
  const lines = [...statement.getClientRects()];
  const [own, first, last] = [root.getBoundingClientRect(), lines[0], lines.at(-1)];
  if (!last) return null;
  const below = innerHeight - last.bottom;
  const isAbove = below < box.offsetHeight + 16 && first.top - 60 > below;
  const left = Math.min(Math.max(0, last.left - own.left), Math.max(0, own.width - box.offsetWidth));
  return isAbove
    ? { bottom: `${own.bottom - first.top + 6}px`, left: `${left}px` }
    : { top: `${last.bottom - own.top + 6}px`, left: `${left}px` };
}

/** Screen readers hear of it at the statement itself. */
function described(root, name) {
  const statement = root.querySelector(`#statement-${CSS.escape(name)}`);
  statement?.setAttribute("aria-describedby", "proof-told");
  return () => statement?.removeAttribute("aria-describedby");
}

export function Verdict({ claim }) {
  return html`<span class="chip ${COLOURS[claim.verdict]}"><span aria-hidden="true">${SIGNS[claim.verdict]}</span>
    ${VERDICTS[claim.verdict] ?? claim.verdict}</span>`;
}

/** Its text is left out where the statement says (`said`) the same; `children` stand for the passages where those are
 *  shown in full. */
export function Claim({ claim, said, children }) {
  return html`<div class="claim">
    <p class="row"><${Verdict} claim=${claim} />
      <span class="note">confidence ${percent(claim.confidence)} · ${claim.id}</span></p>
    ${claim.text !== said && html`<p class="claimed" dir="auto">${claim.text}</p>`}
    ${claim.reasons.length > 0 && html`<p class="note">${claim.reasons.join(" · ")}</p>`}
    ${children ?? html`<${Quotes} claim=${claim} />`}
    <${Others} label="Disputed by" ids=${claim.disputed_by} />
    <${Others} label="Superseded by" ids=${claim.superseded_by ? [claim.superseded_by] : []} />
  </div>`;
}

function Quotes({ claim }) {
  const all = [...claim.spans.map((span) => ({ span })), ...claim.against.map((span) => ({ span, against: true }))];
  return html`<ul class="bearing">
    ${all.slice(0, MOST).map(
      ({ span, against }, n) => html`<${Quote} key=${n} span=${span} against=${against} claim=${claim.id} />`,
    )}
    ${all.length > MOST &&
    html`<li class="note">${count(all.length - MOST, "more passage")}
      ${basis.value === "report" ? ": Verify shows all." : "."}</li>`}
  </ul>`;
}

function Quote({ span, against, claim }) {
  const card = cards.value.get(span.source);
  return html`<li class="borne ${against ? "against" : ""}">
    ${against && html`<p class="note">contradicts it</p>`}
    <blockquote dir="auto">${cut(span.quote, 320)}</blockquote>
    <p class="row">
      <button type="button" class="cite" onClick=${() => showSource(span.source, claim)}>${span.source}</button>
      <span class="note grow" dir="auto">${card?.title ?? ""}</span>
      <button type="button" class="plain small" onClick=${() => openPassage(span, claim)}>Open passage</button></p>
  </li>`;
}

function Others({ label, ids }) {
  if (!ids.length) return null;
  return html`<div class="others"><p class="note">${label}</p><ul>${ids.map((id) => {
    const other = claims.value.get(id);
    if (!other) return html`<li key=${id}>${id}</li>`;
    return html`<li key=${id}><span dir="auto">${cut(other.text, 240)}</span> <${Mark} mark=${other.mark} /></li>`;
  })}</ul></div>`;
}
