// A source: what it is, why it is used, how far it is to be believed, and what of it the report rests on.
import { html, useComputed } from "../core/html.js";
import { Outward } from "../core/parts.js";
import { active, focus, isEarlier, showSource } from "../core/store.js";
import { count, cut } from "../core/words.js";
import { may } from "../shell/account.js";
import { Excerpts } from "./excerpts.js";
import { Found } from "./found.js";
import { setPinned } from "./pins.js";
import { KINDS, uses } from "./stock.js";
import { leaving, vetoing } from "./veto.js";

export function Card({ card, together }) {
  // One value for each card: pointing at a source renders that card again, and not hundreds.
  const aim = useComputed(() => (card.id && focus.value.source === card.id ? (focus.value.claim ?? "") : null));
  const going = useComputed(() => active.value && leaving.value.has(card.document)).value;
  const name = `source-${card.id ?? card.key}`;
  return html`<article id=${name} tabindex="-1" aria-labelledby="${name}-title" data-source=${card.id}
    class="source ${aim.value === null ? "" : "aimed"} ${going ? "going" : ""} ${card.pinned ? "pinned" : ""}">
    <header>
      ${card.id && html`<span class="badge">${card.id}</span>`}
      <h3 id="${name}-title" dir="auto"><${Outward} url=${card.url}><${Found} text=${card.title} /><//></h3>
      ${card.pinned !== undefined && !isEarlier.value && may("write") && html`<${Pin} card=${card} />`}
    </header>
    <${Facts} card=${card} />
    ${going && html`<p class="chip orange">Being removed</p>`}
    ${card.problem && html`<p class="note">${card.problem}</p>`}
    ${!together && card.sameAs?.length > 0 && html`<${Once} card=${card} />`}
    ${card.snippet && html`<p class="snippet" dir="auto"><${Found} text=${cut(card.snippet, 240)} /></p>`}
    <${Excerpts} card=${card} aim=${aim.value} />
    ${card.credibility !== undefined && html`<${Standing} card=${card} />`}
  </article>`;
}

function Pin({ card }) {
  const label = card.pinned ? "Unpin" : "Pin";
  return html`<button type="button" class="small pin" id="pin-${card.key}" aria-label="${label} ${card.id}"
    onClick=${() => setPinned(card, !card.pinned)}>${label}</button>`;
}

const DAYS = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" }); // a date is the same everywhere

function date(published) {
  if (!published) return "undated";
  const at = Date.parse(published);
  return published.length < 10 || Number.isNaN(at) ? published : DAYS.format(at);
}

function Facts({ card }) {
  const cited = uses.value.cited.get(card.id);
  const where = card.host || /^(?:upload|file):.*\/(.+)$/.exec(card.url)?.[1] || card.from;
  return html`<ul class="origin">
    <li class="host" title=${card.url}><${Found} text=${where} /></li>
    <li>${date(card.published)}</li>
    <li>${KINDS[card.kind] ?? card.kind}</li>
    ${card.words && html`<li>${count(card.words, "word")}</li>`}
    ${cited && html`<li>cited ${cited === 1 ? "once" : `${cited} times`}</li>`}
    ${card.primary && html`<li><span class="chip green">primary</span></li>`}
    ${card.author && html`<li dir="auto"><${Found} text=${card.author} /></li>`}
  </ul>`;
}

/** Which sources it is one with, each a way to its card. */
function Once({ card }) {
  const others = card.sameAs.slice(0, 8);
  const more = card.sameAs.length - others.length;
  return html`<p class="once">Counted as one with${" "}
    ${others.map((id) =>
      html`<button type="button" class="cite" key=${id} onClick=${() => showSource(id)}>${id}</button> `)}
    ${more > 0 && `and ${more} more `}(a copy, or the same publisher)</p>`;
}

function Veto({ card }) {
  return html`<button type="button" class="small danger" aria-label="Veto ${card.id}" disabled=${active.value}
    title=${active.value ? "Not available while a run is active" : "See what would change without it"}
    onClick=${() => (vetoing.value = card)}>Veto …</button>`;
}

function Standing({ card }) {
  const share = Math.round(card.credibility * 100);
  return html`<footer>
    <details class="standing">
      <summary><span>Credibility</span>
        <span class="gauge" aria-hidden="true"><span style=${{ width: `${share}%` }}></span></span>
        <b>${card.credibility.toFixed(2)}</b></summary>
      <ul dir="auto">${card.credibilityReasons.map((reason) => html`<li key=${reason}>${reason}</li>`)}</ul>
    </details>
    ${!isEarlier.value && may("write") && html`<${Veto} card=${card} />`}
    <p class="why"><b>Why used</b> ${card.whyUsed || "it was read for this question"}</p>
  </footer>`;
}
