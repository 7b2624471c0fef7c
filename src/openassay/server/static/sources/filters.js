// The row above the cards: words, order, and what narrows them down.
import { html } from "../core/html.js";
import { number } from "../core/words.js";
import { clear, found, hosts, kinds, narrowed, ORDERS, want, wish } from "./sieve.js";
import { KINDS, stock } from "./stock.js";

export function Filters() {
  const few = narrowed.value.filter((name) => name !== "words").length;
  return html`<div class="sieve" role="search" aria-label="Sources">
    <div class="line">
      <input type="search" aria-label="Search sources" placeholder="Search title, host, excerpts"
        value=${wish.value.words} onInput=${(event) => want({ words: event.target.value })} />
      <label class="order"><span>Sort by</span>
        <select value=${wish.value.order} onChange=${(event) => want({ order: event.target.value })}>
          ${Object.entries(ORDERS).map(([name, label]) => html`<option key=${name} value=${name}>${label}</option>`)}
        </select></label>
    </div>
    <details>
      <summary>Filters${few ? html` <span class="count">${few}</span>` : ""}</summary>
      <${Fields} />
    </details>
    <${Left} />
  </div>`;
}

function Fields() {
  return html`<div class="fields">
    <${Pick} label="Domain" name="from" all="All domains" counts=${hosts.value} />
    <${Pick} label="Type" name="kind" all="All types" counts=${kinds.value} called=${KINDS} />
    <${Day} label="From" name="since" />
    <${Day} label="To" name="until" />
    <div class="choices">
      <${Tick} label="Include undated" name="undated" />
      <${Tick} label="Pinned only" name="pinned" />
      <${Tick} label="Group sources that count as one" name="clustered" />
    </div>
  </div>`;
}

function Pick({ label, name, all, counts, called = {} }) {
  return html`<label class="field"><span>${label}</span>
    <select value=${wish.value[name]} onChange=${(event) => want({ [name]: event.target.value })}>
      <option value="">${all}</option>
      ${counts.map(([value, n]) =>
        html`<option key=${value} value=${value}>${called[value] ?? value} (${number(n)})</option>`)}
    </select></label>`;
}

const Day = ({ label, name }) =>
  html`<label class="field"><span>${label}</span>
    <input type="date" value=${wish.value[name]} onInput=${(event) => want({ [name]: event.target.value })} /></label>`;

const Tick = ({ label, name }) =>
  html`<label class="yes"><input type="checkbox" checked=${wish.value[name]}
    onChange=${(event) => want({ [name]: event.target.checked })} /> ${label}</label>`;

/** How many are left, said aloud when it changes. */
function Left() {
  const all = stock.value.cards.length;
  return html`<div class="left">
    <p role="status">${number(found.value.length)} of ${number(all)} shown</p>
    ${narrowed.value.length > 0 &&
    html`<button type="button" class="plain small" onClick=${clear}>Clear filters</button>`}
  </div>`;
}
