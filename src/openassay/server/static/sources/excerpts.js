// What of a source supports a claim, or speaks against it; or, before there are claims, what was read of it.
import { html, useState } from "../core/html.js";
import { turn } from "../core/place.js";
import { claims, openPassage, showStatement } from "../core/store.js";
import { count, cut } from "../core/words.js";
import { Found } from "./found.js";
import { needle } from "./sieve.js";
import { uses } from "./stock.js";

const FIRST = 2; // of a card whose others are asked for

export function Excerpts({ card, aim }) {
  const [open, setOpen] = useState(false);
  const list = card.excerpts;
  if (!list.length) return null;
  const isAimed = (one) => Boolean(aim) && one.claim === aim;
  const most = open || list.length === FIRST + 1 ? list.length : FIRST;
  const shown = list.filter((one, at) => at < most || isAimed(one) || needle.value?.test(one.quote));
  return html`<ul class="excerpts" aria-label=${told(card)}>
      ${shown.map((one) =>
        html`<${Excerpt} key="${one.claim}-${one.start}" card=${card} one=${one} on=${isAimed(one)} />`)}
    </ul>
    ${shown.length < list.length && html`<button type="button" class="plain small rest" onClick=${() => setOpen(true)}>
      ${count(list.length - shown.length, "more excerpt")}
      <span class="unseen"> of ${card.id ?? card.title}</span></button>`}`;
}

function told({ id, title, excerpts }) {
  const against = excerpts.filter((one) => one.against).length;
  const of = `${count(excerpts.length, "excerpt")} of ${id ?? title}`;
  return against ? `${of}, ${against} contradicting` : of;
}

function Excerpt({ card, one, on }) {
  const span = { document: card.document, start: one.start, end: one.end, quote: one.quote, source: card.id };
  const statement = uses.value.statements.get(one.claim);
  return html`<li class="${one.against ? "against" : ""} ${on ? "on" : ""}" aria-current=${on ? "true" : undefined}>
    <blockquote dir="auto"><${Found} text=${cut(one.quote, 600)} /></blockquote>
    <div class="row">
      ${one.claim && html`<span class="claim" title=${claims.value.get(one.claim)?.text ?? ""}>${one.claim}</span>
        <span class=${one.against ? "chip red" : "note"}>${one.against ? "contradicts" : "supports"}</span>`}
      <button type="button" class="plain small" onClick=${() => openPassage(span, one.claim)}>Open in context
        <span class="unseen"> ${one.claim} ${card.id}</span></button>
      ${statement && html`<button type="button" class="plain small" onClick=${() => stated(statement, one.claim)}>
        Statement<span class="unseen"> ${one.claim}</span></button>`}
    </div>
  </li>`;
}

function stated(statement, claim) {
  if (matchMedia("(max-width: 900px)").matches) turn({ panel: "answer" }, { keep: true }); // no room beside each other
  showStatement(statement, claim);
}
