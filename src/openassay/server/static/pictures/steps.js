// Which step ran when, and how long.
import { computed, html } from "../core/html.js";
import { stageName } from "../core/stages.js";
import { count, seconds } from "../core/words.js";
import { Figure, useWidth } from "./figure.js";
import { happened, span, visits, waited } from "./happened.js";

const ROW = 24, BELOW = 22; // px

const table = computed(() => ({
  columns: ["Step", "Times", "Total", "First started after"],
  rows: [...visits.value.values()].map((one) => [
    stageName(one.name), String(one.entered), seconds(one.seconds) + (one.open ? ", still running" : ""),
    seconds(one.spells[0].from / 1000),
  ]),
}));

export function StepsPicture() {
  const list = [...visits.value.values()];
  if (!list.length) return null;
  return html`<${Figure} name="steps" title="Steps over time" told=${sentence(list)} table=${table.value}>
    <${Lanes} list=${list} /></${Figure}>`;
}

function sentence(list) {
  const longest = list.reduce((most, one) => (covered(one) > covered(most) ? one : most));
  const paused = waited.value > 1000 ? ` Pauses of ${seconds(waited.value / 1000)} are left out.` : "";
  return `${count(happened.value.length, "event")} of ${count(list.length, "step")} in ${seconds(span.value / 1000)}; `
    + `the longest: ${told(longest)}.${paused}`;
}

const told = (one) => `${stageName(one.name)}, ${seconds(covered(one))}`;

/** Time during which it was running: parallel runs of the same step count once. */
function covered({ spells }) {
  let [sum, until] = [0, 0];
  for (const { from, to } of [...spells].sort((a, b) => a.from - b.from)) {
    const end = to ?? span.value;
    sum += Math.max(0, end - Math.max(from, until));
    until = Math.max(until, end);
  }
  return sum / 1000;
}

function Lanes({ list }) {
  const [box, width] = useWidth();
  const [left, right] = [150, 56]; // the longest name, and a time
  const x = (ms) => left + ((width - left - right) * ms) / Math.max(1, span.value);
  const tall = list.length * ROW;
  return html`<div ref=${box} class="canvas">
    ${width > 0 &&
    html`<svg class="lanes" width=${width} height=${tall + BELOW} role="img"
      aria-label=${`Steps over time: ${list.map(told).join("; ")}`}>
      ${list.map((one, at) => html`<g key=${one.name} transform="translate(0 ${at * ROW})">
        <line class="lane" x1=${left} x2=${width - right} y1=${ROW / 2} y2=${ROW / 2} />
        <text class="name" x=${left - 8} y=${ROW / 2 + 4} text-anchor="end">${stageName(one.name)}</text>
        ${one.spells.map((spell) => html`<rect class=${spell.to === null ? "spell live" : "spell"} x=${x(spell.from)}
          y="5" height=${ROW - 10} rx="2" width=${Math.max(2, x(spell.to ?? span.value) - x(spell.from))} />`)}
        <text class="took" x=${width - right + 6} y=${ROW / 2 + 4}>${seconds(covered(one))}</text>
      </g>`)}
      <text class="axis" x=${left} y=${tall + 15}>0 s</text>
      <text class="axis" x=${width - right} y=${tall + 15} text-anchor="end">${seconds(span.value / 1000)}</text>
    </svg>`}
  </div>`;
}
