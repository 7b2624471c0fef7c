// Who disagrees with whom, and whether it was settled.
import { html } from "../core/html.js";
import { Mark } from "../core/parts.js";
import { cards, claims } from "../core/store.js";
import { count } from "../core/words.js";
import { Cites } from "./section.js";

const SHOWN = 4; // titles behind one side

export function Disputes({ disputes }) {
  const [open, settled] = [disputes.filter((one) => !one.resolved), disputes.filter((one) => one.resolved)];
  const titled = (at) => (open.length > 1 ? `Point ${at + 1}` : "Who says what");
  return html`
    ${open.map((dispute, at) => html`<${Dispute} key=${at} dispute=${dispute} title=${titled(at)} />`)}
    ${settled.length > 0 &&
    html`<details class="settled"><summary>${count(settled.length, "disagreement")} settled</summary>
      ${settled.map((dispute, at) => html`<${Dispute} key=${at} dispute=${dispute} title="Settled ${at + 1}" />`)}</details>`}`;
}

function Dispute({ dispute, title }) {
  const ending = dispute.resolved ? `Settled: ${dispute.resolution}.` : `Not settled${reason(dispute.resolution)}.`;
  return html`<div class="dispute">
    <h3>${title} <span class="note" dir="auto">on “${dispute.about}”</span></h3>
    <p class="note" dir="auto">${ending}</p>
    <div class="sides">${dispute.sides.map(
      (side, at) => html`<${Side} key=${at} side=${side} name=${named(dispute, at)} />`,
    )}</div>
  </div>`;
}

const reason = (resolution) => (resolution && resolution !== "unresolved" ? `: ${resolution}` : "");
const named = (dispute, at) => (dispute.resolved ? (at ? "Set aside" : "Stands") : `View ${at + 1}`);

function Side({ side, name }) {
  const known = side.sources.map((id) => cards.value.get(id)?.title).filter(Boolean);
  const titles = known.length > SHOWN ? [...known.slice(0, SHOWN), `and ${known.length - SHOWN} more`] : known;
  return html`<div class="side card">
    <p><strong>${name}</strong> <span class="note">${count(side.groups.length, "independent source")}</span></p>
    <ul class="held">${side.claims.map((id) => claims.value.get(id)).filter(Boolean).map(
      (claim) => html`<li key=${claim.id} dir="auto">${claim.text} <${Mark} mark=${claim.mark} /></li>`,
    )}</ul>
    <p><${Cites} sources=${side.sources} claim=${side.claims[0]} always=${true} /></p>
    <p class="note" dir="auto">${titles.join("; ")}</p>
  </div>`;
}
