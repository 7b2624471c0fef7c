// The thread from its first question until now, as a line one can move along.
import { html } from "../core/html.js";
import { runs } from "../core/store.js";
import { count, cut } from "../core/words.js";
import { begins, choose, chosen, moments, phases, questions, slide } from "./history.js";
import { named } from "./stages.js";

export function Slider() {
  const list = moments.value;
  const end = list.length; // where "now" is
  const at = Math.max(chosen.value, 0);
  return html`<div class="card line">
    <div class="row apart">
      <label for="moment-slider"><strong>${at === end ? "Now" : `Moment ${list[at].number}`}</strong>
        <span class="note"> of ${count(list.at(-1).number, "moment")}</span></label>
      <div class="row steps">
        <${Step} label="Previous moment" sign="←" to=${at - 1} off=${at === 0} />
        <${Step} label="Next moment" sign="→" to=${at + 1} off=${at === end} />
        <button type="button" class="small" disabled=${at === end} onClick=${() => choose(end)}>Back to now</button>
      </div>
    </div>
    <input id="moment-slider" type="range" min="0" max=${end} step="1" value=${at} aria-valuetext=${spoken(list, at)}
      onInput=${(event) => slide(Number(event.currentTarget.value))} />
    <${Scale} end=${end} />
    ${list[0].number > 1 && html`<p class="note">The first ${count(list[0].number - 1, "moment")} are not shown.</p>`}
  </div>`;
}

const Step = ({ label, sign, to, off }) => html`<button type="button" class="icon small" aria-label=${label}
  title=${label} disabled=${off} onClick=${() => choose(to)}><span aria-hidden="true">${sign}</span></button>`;

function spoken(list, at) {
  if (at === list.length) return "Now";
  const branches = begins.value.get(at)?.length;
  const told = `${named(list[at])}. ${list[at].summary}`;
  return branches ? `${told}. ${count(branches, "branch", "branches")} started here` : told;
}

const MOST_TICKS = 150; // more would be one grey bar
const MOST_PHASES = 50;

/** Ticks, phases and where branches began. The slider's own words, and the list of moments, tell the same. */
function Scale({ end }) {
  const isCrowded = end > MOST_TICKS;
  const places = isCrowded ? questions.value.map((one) => one.from) : Array.from({ length: end + 1 }, (_, at) => at);
  return html`<div class="scale" aria-hidden="true">
    <svg class="ticks" viewBox="0 0 ${end || 1} 1" preserveAspectRatio="none">
      <path d=${places.map((at) => `M${at} 0V1`).join("")} /></svg>
    ${[...begins.value].map(([at, nodes]) => html`<span key=${at} class="fork-mark" style=${{ left: share(at, end) }}
      title="${count(nodes.length, "branch", "branches")} started at moment ${moments.value[at].number}"></span>`)}
    ${phases.value.length <= MOST_PHASES && html`<div class="bands">
      ${phases.value.map((one) => html`<${Band} one=${one} end=${end} label=${one.name} kind=${kindOf(one.name)} />`)}
    </div>`}
    ${questions.value.length > 1 && html`<div class="bands">
      ${questions.value.map((one, n) => html`<${Band} one=${one} end=${end} label=${asked(one, n)} kind="question" />`)}
    </div>`}
  </div>`;
}

function Band({ one, end, label, kind }) {
  const [left, right] = [Math.max(one.from - 0.5, 0), Math.min(one.to + 0.5, end)];
  const style = { left: share(left, end), width: share(right - left, end) };
  return html`<span class="band of-${kind.toLowerCase()}" title=${label} style=${style}>
    <span dir="auto">${label}</span></span>`;
}

const kindOf = (phase) => phase.split(" ")[0];

const share = (at, end) => `${(100 * at) / (end || 1)}%`;

const asked = ({ run }, n) => cut(runs.value.find((one) => one.id === run)?.question ?? `Question ${n + 1}`, 60);
