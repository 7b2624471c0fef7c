// What the answer rests on: the cards, and the ways to find one among them.
import { computed, html, useLayoutEffect } from "../core/html.js";
import { Busy, Empty, Many } from "../core/parts.js";
import { place, turn } from "../core/place.js";
import { active, events, isEarlier, loading, moment, report } from "../core/store.js";
import { count, number } from "../core/words.js";
import { Card } from "./card.js";
import { Filters } from "./filters.js";
import { fulfil, wanted } from "./jump.js";
import { clear, clusters, want, wish } from "./sieve.js";
import { stock } from "./stock.js";
import { VetoDialog, Vetoed } from "./veto.js";

const STEP = 12; // cards shown at a time: 30 with many excerpts took 150 ms

export function SourcesPane() {
  const { basis, cards } = stock.value;
  if (loading.value && basis === "reading") return html`<${Busy} />`; // there may be a report, which shows more
  return html`<div class="sources">
    <h2 class="unseen">Sources</h2>
    <${Basis} basis=${basis} n=${cards.length} />
    ${cards.length > 0 && html`<${Filters} /><${Cards} />`}
    ${cards.length === 0 && html`<${None} basis=${basis} />`}
    ${basis === "report" && html`<${Vetoed} />`}
    <${VetoDialog} />
  </div>`;
}

/** What one looks at, where it is not simply the report. */
function Basis({ basis, n }) {
  if (basis === "moment") return html`<${Past} n=${n} />`;
  if (basis === "report" && isEarlier.value) return html`<${OfEarlier} />`;
  const told = basis === "reading" ? reading(n) : meanwhile();
  if (active.value) {
    return html`<p class="standpoint" role="status"><span class="spinner" aria-hidden="true"></span>${told}</p>`;
  }
  const bare = basis === "reading" && n > 0;
  return bare ? html`<p class="standpoint">There is no report. These documents were read for it.</p>` : null;
}

/** Documents of one's own are no pages: they show up once statements rest on them. */
function reading(n) {
  if (n || !findings.value) return `${count(n, "source")} so far`;
  return `Documents are being read: ${count(findings.value, "finding")} so far`;
}

const findings = computed(() =>
  events.value.reduce((sum, { kind, data }) => sum + (kind === "finding" ? (data.findings ?? 0) : 0), 0));

/** What is done to a source is done to the thread as it is now. */
function OfEarlier() {
  if (!report.value) return null;
  return html`<div class="standpoint past" role="status">
    <p>Sources of an earlier answer. To pin or veto one, go to the latest answer.</p>
    <button type="button" class="small" onClick=${() => turn({ run: null }, { keep: true })}>Go to the latest</button>
  </div>`;
}

function meanwhile() {
  const read = events.value.filter((event) => event.kind === "read" && event.stage === "harvest").length;
  return `Sources of the last report.${read ? ` The current run has read ${count(read, "page")} so far.` : ""}`;
}

function Past({ n }) {
  const left = moment.value.values?.left_out?.evidence;
  return html`<div class="standpoint past" role="status">
    <p>An earlier moment:${" "}
      ${n ? `${count(n + (left ?? 0), "document")} had been read.` : "nothing had been read yet."}
      ${left && ` The first ${n} are shown.`}</p>
    <button type="button" class="small" onClick=${() => turn({ at: null })}>Back to now</button>
  </div>`;
}

function None({ basis }) {
  if (basis === "moment") return null;
  if (active.value && findings.value) {
    return html`<${Empty} title="No sources yet.">They appear here as the report is written.<//>`;
  }
  if (active.value) return html`<${Empty} title="Nothing has been read yet.">Sources appear here as they are read.<//>`;
  return html`<${Empty} title="There are no sources.">
    ${basis === "report"
      ? "The report does not rest on any source. Reword the question, add documents, or choose other sources."
      : "No run has read anything yet."}
  <//>`;
}

function Cards() {
  const aim = place.value.panel !== "answer" && !loading.value && wanted.value; // what comes first is soon replaced
  useLayoutEffect(() => void (aim && fulfil()));
  const list = clusters.value;
  const skipped = Math.min(wish.value.skipped, list.length - 1);
  if (!list.length) {
    return html`<${Empty} title="No source matches."><button type="button" onClick=${clear}>Clear filters</button><//>`;
  }
  return html`${skipped > 0 && html`<${Before} n=${skipped} />`}
    <${Many} class="cards" items=${list.slice(Math.max(0, skipped))} first=${STEP}
      each=${(one) => html`<${Cluster} key=${one.key} one=${one} />`} />`;
}

const Before = ({ n }) =>
  html`<p class="more"><button type="button" class="plain" onClick=${() => want({ skipped: Math.max(0, n - STEP) })}>
    ${number(n)} earlier</button></p>`;

function Cluster({ one: { cards } }) {
  if (cards.length === 1) return html`<li><${Card} card=${cards[0]} /></li>`;
  return html`<li><div class="cluster" role="group" aria-label="${count(cards.length, "source")} counted as one">
    <p class="once"><b>${count(cards.length, "source")}, counted as one</b> Copies of the same text, or the same publisher</p>
    ${cards.map((card) => html`<${Card} key=${card.key} card=${card} together />`)}
  </div></li>`;
}
