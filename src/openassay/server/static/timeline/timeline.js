// The thread through time: a slider over its moments, its branches, and what two of them tell differently.
import { html } from "../core/html.js";
import { threadId, turn } from "../core/place.js";
import { Busy, Empty, Wrong } from "../core/parts.js";
import { Chosen } from "./chosen.js";
import { Comparison } from "./comparison.js";
import { ForkDialog, forking } from "./fork.js";
import { look, moments, problem, useHistory } from "./history.js";
import { Moments } from "./moments.js";
import { Slider } from "./slider.js";
import { Branches } from "./tree.js";

export function TimelinePane() {
  useHistory();
  if (problem.value && !moments.value) return html`<${Wrong} problem=${problem.value} again=${() => look()} />`;
  if (!moments.value) return html`<${Busy}>Loading the timeline …</${Busy}>`;
  return html`<section class="timeline stack" aria-labelledby="timeline-title">
    <h2 id="timeline-title">Timeline</h2>
    ${moments.value.length ? html`<${Travels} />` : html`<${Nothing} />`}
    ${forking.value && html`<${ForkDialog} key=${threadId.value} />`}
  </section>`;
}

const Travels = () => html`
  <${Slider} />
  <${Chosen} />
  <${Branches} />
  <${Comparison} />
  <${Moments} />
`;

const Nothing = () => html`<${Empty} title="Nothing has happened on this thread yet.">
  <p>Each step of the research becomes a moment here, to look at or fork from.</p>
  <button type="button" onClick=${() => turn({ panel: "log" })}>Open the log</button>
</${Empty}>`;
