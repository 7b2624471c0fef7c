// What was spent, and on what, as time went by; beside it which step took how long.
import { computed, html, useState } from "../core/html.js";
import { Choice, Empty } from "../core/parts.js";
import { stageName } from "../core/stages.js";
import { run } from "../core/store.js";
import { count, number, seconds, usd } from "../core/words.js";
import { Figure, useWidth } from "./figure.js";
import { happened, own, span, worked } from "./happened.js";
import { StepsPicture } from "./steps.js";

const TALL = 190, LEFT = 52, BELOW = 22, ABOVE = 14; // px
const SHADES = 6; // classes shade-0 ... shade-5; what is smaller than the first five is drawn together
const REST = "other";

const booked = computed(() => happened.value.filter((event) => event.kind === "spend"));
const quoted = computed(() => own.value.find((event) => event.kind === "quote")?.data ?? null);

export function SpendingPicture() {
  if (!run.value) return html`<${Empty} title="Nothing has been asked yet" />`;
  return booked.value.length ? html`<${Paid} /><${StepsPicture} />` : html`<${Free} /><${StepsPicture} />`;
}

function Free() {
  const embedded = quoted.value?.model === "embedded";
  const why = embedded ? "The embedded models run on this server." : "No costs so far.";
  return html`<div class="free card"><p>
    <strong>${embedded ? "This costs nothing." : "Nothing spent yet."}</strong> ${why}</p>
    ${quoted.value?.usd > 0 && html`<p
      class="note">Expected: ${usd(quoted.value.usd)}, never more than ${usd(quoted.value.most_usd)}.</p>`}</div>`;
}

function Paid() {
  const [by, setBy] = useState("step");
  const calls = booked.value;
  const total = calls.reduce((sum, event) => sum + event.data.usd, 0);
  const drawn = stacked(calls, by);
  const cap = calls.at(-1).data.cap_usd || quoted.value?.most_usd || 0;
  return html`<${Figure} name="spending" title="Spend over time" told=${sentence(total, calls, cap)}
    table=${tabled(calls)}>
    <${Choice} label="Group by" value=${by} onChange=${setBy}
      choices=${[{ name: "step", label: "By step" }, { name: "model", label: "By model" }]} />
    <${Curve} drawn=${drawn} total=${total} cap=${cap} quote=${quoted.value?.usd ?? 0} />
    <ul class="shares">${drawn.parts.map((part, at) => html`<li key=${part.name}><i class="swatch shade-${at}"
      aria-hidden="true"></i><span dir="auto">${part.name}</span> <b>${usd(part.usd)}</b></li>`)}</ul>
  </${Figure}>`;
}

function sentence(total, calls, cap) {
  const unsure = calls.filter((event) => event.data.confirmed === false).length;
  const within = cap ? ` of at most ${usd(cap)}` : "";
  const told = `${usd(total)}${within}, in ${count(calls.length, "paid call")}`;
  const expected = quoted.value?.usd ? `; ${usd(quoted.value.usd)} was expected` : "";
  const guessed = `${count(unsure, "call")} ${unsure === 1 ? "was" : "were"} counted`;
  const worst = unsure ? ` ${guessed} at the most it could have cost.` : "";
  return `${told}${expected}.${worst}`;
}

function tabled(calls) {
  return {
    columns: ["After", "Step", "Model", "Cost", "Tokens", "Total"],
    rows: calls.map(({ time, data }) => [
      seconds(worked(time) / 1000), stageName(data.step ?? data.task ?? ""), data.model,
      usd(data.usd), number((data.prompt_tokens ?? 0) + (data.completion_tokens ?? 0)), usd(data.total_usd),
    ]),
  };
}

/** {parts: [{name, usd}], points: [{at, sums}], span}: what each part had come to after each call, in ms of work. */
function stacked(calls, by) {
  const told = by === "step" ? stageName : (model) => model;
  const name = (event) => told(event.data[by] || event.data.task || REST);
  const totals = new Map();
  for (const event of calls) totals.set(name(event), (totals.get(name(event)) ?? 0) + event.data.usd);
  const ranked = [...totals].sort((a, b) => b[1] - a[1]);
  const own = ranked.slice(0, ranked.length > SHADES ? SHADES - 1 : SHADES);
  const rest = ranked.slice(own.length).reduce((sum, [, amount]) => sum + amount, 0);
  const parts = [...own, ...(rest ? [[REST, rest]] : [])].map(([one, amount]) => ({ name: one, usd: amount }));
  const place = new Map(own.map(([one], at) => [one, at]));
  const sums = parts.map(() => 0);
  const points = calls.map((event) => {
    sums[place.get(name(event)) ?? parts.length - 1] += event.data.usd;
    return { at: worked(event.time), sums: [...sums] };
  });
  return { parts, points, span: Math.max(1, span.value) };
}

function Curve({ drawn, total, cap, quote }) {
  const [box, width] = useWidth();
  const top = Math.max(total, quote, cap <= 3 * Math.max(total, quote) ? cap : 0) * 1.08 || 1;
  const x = (ms) => LEFT + ((width - LEFT - 4) * ms) / drawn.span;
  const y = (amount) => ABOVE + (TALL - ABOVE - BELOW) * (1 - amount / top);
  return html`<div ref=${box} class="canvas">
    ${width > 0 &&
    html`<svg width=${width} height=${TALL} role="img"
      aria-label=${`Spending rose to ${usd(total)} within ${seconds(drawn.span / 1000)}`}>
      ${[0, total / 2, total].map((amount) => html`<g key=${amount} class="grid"><line x1=${LEFT} x2=${width}
        y1=${y(amount)} y2=${y(amount)} /><text x=${LEFT - 6} y=${y(amount) + 4}
          text-anchor="end">${usd(amount)}</text></g>`)}
      ${drawn.parts.map((part, at) => html`<path key=${part.name} class="area shade-${at}"
        d=${area(drawn, at, x, y)} />`)}
      ${quote > 0 && html`<${Level} kind="quote" words="expected ${usd(quote)}" at=${y(quote)} width=${width} />`}
      ${cap > 0 && html`<${Level} kind="cap" words="cap ${usd(cap)}${cap > top ? ", far above" : ""}"
        at=${cap > top ? 2 : y(cap)} width=${width} />`}
      <g class="grid"><text x=${LEFT} y=${TALL - 5}>0 s</text><text x=${width - 4} y=${TALL - 5}
        text-anchor="end">${seconds(drawn.span / 1000)}</text></g>
    </svg>`}
  </div>`;
}

const Level = ({ kind, words, at, width }) =>
  html`<g class="level ${kind}"><line x1=${LEFT} x2=${width} y1=${at} y2=${at} /><text x=${LEFT + 6}
    y=${at < 12 ? at + 12 : at - 4}>${words}</text></g>`;

/** One part on top of those before it, in steps: money is spent at once. */
function area({ points, span }, part, x, y) {
  const before = (sums) => sums.slice(0, part).reduce((sum, one) => sum + one, 0);
  const edge = (level) => {
    let last = 0;
    const steps = points.map((point) => {
      const [from, to] = [last, level(point.sums)];
      last = to;
      return [[point.at, from], [point.at, to]];
    });
    return [[0, 0], ...steps.flat(), [span, last]];
  };
  const line = [...edge((sums) => before(sums) + sums[part]), ...edge(before).reverse()];
  return `M${line.map(([ms, amount]) => `${x(ms).toFixed(1)} ${y(amount).toFixed(1)}`).join("L")}Z`;
}
