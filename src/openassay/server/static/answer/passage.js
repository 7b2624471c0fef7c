// A passage in the snapshot it was taken from, highlighted in place.
import { html, useLayoutEffect, useRef, useState } from "../core/html.js";
import { Busy, Dialog, Outward, Wrong } from "../core/parts.js";
import { cards, claims, openPassage, passage } from "../core/store.js";
import { day, moment, number } from "../core/words.js";
import { parted, useText } from "./excerpt.js";

const MORE = 1_600; // characters at a time

export function PassageDialog() {
  const span = passage.value;
  if (!span) return null;
  return html`<${Dialog} title="Passage in its source" kind="passage" onClose=${() => (passage.value = null)}>
    <${Snapshot} key="${span.document} ${span.start} ${span.end}" span=${span} />
    <${Walk} span=${span} />
  </${Dialog}>`;
}

function Snapshot({ span }) {
  const [asked, setAsked] = useState({ start: span.start, end: span.end });
  const [text, problem, again] = useText(span.document, asked.start, asked.end);
  if (!text && problem) return html`<${Wrong} problem=${problem} again=${again} />`;
  if (!text) return html`<${Busy}>Opening the snapshot …</${Busy}>`;
  return html`<${Origin} text=${text} />
    <${Claimed} span=${span} />
    ${problem && html`<${Wrong} problem=${problem} />`}
    <${Text} text=${text} span=${span}
      back=${() => setAsked({ ...asked, start: Math.max(0, text.start - MORE) })}
      on=${() => setAsked({ ...asked, end: Math.min(text.length, text.end + MORE) })} />
    <${Place} text=${text} span=${span} />`;
}

function Origin({ text }) {
  const read = Date.parse(text.fetched) > 0 && `read ${moment(text.fetched)}`; // files of one's own were read at no time
  const card = cards.value.get(passage.value?.source); // calls it as the list of sources does, which knows more of a file
  const published = card?.published ?? text.published;
  const facts = [text.host, card?.author ?? text.author, published ? day(published) : "undated", read];
  return html`<div class="origin">
    <h3 dir="auto"><${Outward} url=${text.url}>${card?.title || text.title || text.url}</${Outward}></h3>
    <p class="note" dir="auto">${facts.filter(Boolean).join(" · ")}</p>
  </div>`;
}

function Claimed({ span }) {
  const claim = claims.value.get(span.claim);
  if (!claim) return null;
  const isAgainst = claim.against.some((one) => one.document === span.document && one.start === span.start);
  return html`<p class="claimed" dir="auto">
    <span class="note">${isAgainst ? "Contradicts" : "Supports"} ${claim.id}:</span> ${claim.text}</p>`;
}

/** The passage is scrolled to when it is opened; later it stays where the reader has it. */
function Text({ text, span, back, on }) {
  const found = useRef();
  useLayoutEffect(() => found.current?.scrollIntoView({ block: "center" }), []);
  const { before, passage: quoted, after } = parted(text, span);
  return html`<div class="snapshot" tabindex="0" role="region" aria-label="Text of the snapshot">
    ${text.start > 0 && html`<p><button type="button" class="plain small" onClick=${back}>More before</button></p>`}
    <p class="excerpt" dir="auto"><span>${before}</span><mark ref=${found}>${quoted}</mark><span>${after}</span></p>
    ${text.end < text.length && html`<p><button type="button" class="plain small" onClick=${on}>More after</button></p>`}
  </div>`;
}

function Place({ text, span }) {
  const isSame = !span.quote || parted(text, span).passage === span.quote;
  return html`<p class="note place">
    ${isSame
      ? html`<span class="chip green"><span aria-hidden="true">✓</span>word for word in the snapshot</span>`
      : html`<span class="chip red"><span aria-hidden="true">✕</span>the snapshot reads differently here</span>`}
    ${" "}characters ${number(span.start)}–${number(span.end)} of ${number(text.length)} · snapshot
    ${" "}<code title=${text.hash}>${text.hash.slice(0, 12)}</code>
  </p>`;
}

/** What else the report takes from the same document. */
function Walk({ span }) {
  const all = passages(span.document);
  const at = all.findIndex((one) => one.start === span.start && one.end === span.end);
  if (at < 0 || all.length < 2) return null;
  const to = (next) => next && openPassage(next, next.claim);
  return html`<nav class="row apart" aria-label="Passages of this source">
    <button type="button" disabled=${!at} onClick=${() => to(all[at - 1])}>Previous passage</button>
    <span class="note" role="status">${at + 1} of ${all.length} passages used from this source</span>
    <button type="button" disabled=${at === all.length - 1} onClick=${() => to(all[at + 1])}>Next passage</button>
  </nav>`;
}

function passages(document) {
  const found = new Map();
  for (const claim of claims.value.values()) {
    for (const span of [...claim.spans, ...claim.against]) {
      const place = `${span.start}-${span.end}`;
      if (span.document === document && !found.has(place)) found.set(place, { ...span, claim: claim.id });
    }
  }
  return [...found.values()].sort((a, b) => a.start - b.start || a.end - b.end);
}
