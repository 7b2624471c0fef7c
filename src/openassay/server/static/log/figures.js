// Where the time and the money of a run went, and the names under which it is found elsewhere.
import { get, Problem } from "../core/api.js";
import { computed, html, signal, useEffect, useState } from "../core/html.js";
import { copy, Wrong } from "../core/parts.js";
import { threadId } from "../core/place.js";
import { stageName } from "../core/stages.js";
import { active, events, generation, run } from "../core/store.js";
import { count, percent, seconds, usd } from "../core/words.js";

const PAUSE = 1_500; // ms after the last step that ended: they end in bursts
const finished = computed(() => events.value.reduce((n, event) => n + (event.kind === "leave"), 0));
const chosen = signal(null); // whether they are open; else once the run has ended

const FEES = ["search", "harvest"]; // steps in which it is a search that is paid for, not a model
const partyOf = ({ step, model }) => `${FEES.includes(step) ? "search" : "model"} ${model}`;

/** party -> {calls, usd}: whose price nobody has told, since they were cut off or came without one. */
const unconfirmed = computed(() => {
  const found = new Map();
  for (const { kind, run: of, data } of events.value) {
    if (kind !== "spend" || data.confirmed !== false || of !== run.value?.id) continue;
    const { calls, usd: sum } = found.get(partyOf(data)) ?? { calls: 0, usd: 0 };
    found.set(partyOf(data), { calls: calls + 1, usd: sum + data.usd });
  }
  return found;
});
const unsure = computed(() => [...unconfirmed.value.values()].reduce((sum, one) => sum + one.calls, 0));

export function Figures() {
  const [told, setTold] = useState(null);
  const [id, of] = [threadId.value, run.value?.id];
  useEffect(() => {
    if (!of) return undefined;
    let left = false;
    const load = async () => {
      const answer = await get(`/api/threads/${id}/timings`, { run: of }).catch((error) => error);
      if (!left) setTold(answer);
    };
    const timer = setTimeout(load, told?.run === of ? PAUSE : 0);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [id, of, generation.value, finished.value]);
  const isOpen = chosen.value ?? !active.value;
  if (!told) return null;
  if (told instanceof Problem) return html`<${Wrong} problem=${told} />`;
  if (told instanceof Error) throw told;
  return html`<details class="log-figures card" open=${isOpen}>
    <summary
      onClick=${(event) => {
        event.preventDefault();
        chosen.value = !isOpen;
      }}><h3>Where the time went</h3><span
      class="note">${summary(told)}</span></summary>
    <div class="stack">
      <${Clock} clock=${told.seconds} attempts=${told.attempts} />
      <${Stages} stages=${told.stages} />
      <${Parties} parties=${told.parties} />
      <${Unconfirmed} />
      <${Caches} caches=${told.caches} />
      <${Names} told=${told} />
    </div>
  </details>`;
}

function summary({ seconds: clock, parties, errors }) {
  const failed = Object.values(errors).reduce((a, b) => a + b, 0);
  const cost = parties.reduce((sum, one) => sum + one.usd, 0);
  const told = [seconds(clock.total), usd(cost), failed ? count(failed, "error") : "no errors"];
  return [...told, unsure.value ? `${count(unsure.value, "call")} unconfirmed` : ""].filter(Boolean).join(" · ");
}

function Clock({ clock, attempts }) {
  const parts = [
    ["running", clock.working],
    ["waiting for you", clock.waiting],
    ["queued", clock.queued],
    ["stopped", clock.stopped],
  ];
  const told = parts.filter(([, value]) => value >= 0.05).map(([name, value]) => `${seconds(value)} ${name}`);
  if (attempts > 1) told.push(`${attempts} attempts`);
  return html`<p class="note">${told.join(" · ") || "It has not started yet."}</p>`;
}

/** Steps that ran side by side each count, so their sum may be more than the clock's. */
function Stages({ stages }) {
  const most = Math.max(0.001, ...stages.map((one) => one.seconds));
  if (!stages.length) return null;
  return html`<ul class="log-bars" aria-label="Seconds for each step">
    ${stages.map(
      (one) => html`<li key=${one.stage}>
      <span class="log-of">${stageName(one.stage)}${
        one.count > 1
          ? html` <span
        class="log-times">× ${one.count}</span>`
          : ""
      }
        ${one.unfinished ? html` <span class="chip orange">${one.unfinished} not finished</span>` : ""}</span>
      <span class="log-bar" aria-hidden="true"><i
        style=${{ width: `${Math.max(0.5, (one.seconds / most) * 100)}%` }}></i></span>
      <span class="log-figure">${seconds(one.seconds)}</span>
    </li>`,
    )}
  </ul>`;
}

const SORTS = { model: "model", search: "search", pages: "sites" };

function Parties({ parties }) {
  if (!parties.length) return html`<p class="note">No external services were called.</p>`;
  return html`<div class="scrolls" tabindex="0" role="region" aria-label="External services"><table
    class="log-parties">
    <thead><tr><th scope="col">External service</th><th scope="col">Calls</th><th scope="col">Failed</th>${
        unsure.value > 0 && html`<th scope="col">Unconfirmed</th>`
      }<th scope="col">Median</th><th scope="col">Longest</th><th scope="col">Cost</th></tr></thead>
    <tbody>${parties.map(
      (one) => html`<tr key=${`${one.kind} ${one.party}`}>
      <th scope="row"><span dir="auto">${one.party}</span> <span class="note">${SORTS[one.kind] ?? one.kind}</span></th>
      <td>${one.calls}</td><td class=${one.failures ? "failed" : ""}>${one.failures}</td>${
        unsure.value > 0 && html`<td>${unconfirmed.value.get(`${one.kind} ${one.party}`)?.calls ?? 0}</td>`
      }
      <td>${one.median === null ? "–" : seconds(one.median)}</td>
      <td>${one.longest === null ? "–" : seconds(one.longest)}</td><td>${usd(one.usd)}</td>
    </tr>`,
    )}</tbody>
  </table></div>`;
}

/** Beside the calls that were answered: the books have them, so the log does too. */
function Unconfirmed() {
  const amount = [...unconfirmed.value.values()].reduce((sum, one) => sum + one.usd, 0);
  if (!unsure.value) return null;
  const [were, they] = unsure.value === 1 ? ["has", "it"] : ["have", "they"];
  return html`<p class="note"><strong>${count(unsure.value, "call")} ${were} no confirmed price</strong>, like one that
    is cut off when a run is stopped. The most ${they} could have cost is counted: ${usd(amount)}.</p>`;
}

function Caches({ caches }) {
  const told = (one) =>
    one.rate === null ? `${one.cache}: not used` : `${one.cache}: ${percent(one.rate)} (${one.hits} of ${one.asked})`;
  return html`<p class="note"><strong>Answered by the cache</strong> · ${caches.map(told).join(" · ")}</p>`;
}

function Names({ told }) {
  const names = [
    ["Thread", told.thread],
    ["Run", told.run],
    ["Request", told.request],
  ].filter(([, value]) => value);
  return html`<dl class="log-names">${names.map(
    ([name, value]) => html`<div key=${name}><dt>${name}</dt>
    <dd><code>${value}</code><button type="button" class="plain small" aria-label="Copy the ${name.toLowerCase()} id"
      onClick=${() => copy(value)}>Copy</button></dd></div>`,
  )}</dl>`;
}
