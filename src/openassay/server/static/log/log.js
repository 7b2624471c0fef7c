// The run log: everything that happened, as a person reads it, with the raw event behind each line.
import { Chunks } from "../core/chunks.js";
import { kept } from "../core/file.js";
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "../core/html.js";
import { Choice, copy, Empty } from "../core/parts.js";
import { threadId } from "../core/place.js";
import { active, events, moment, run } from "../core/store.js";
import { count, number, seconds, time } from "../core/words.js";
import { Figures } from "./figures.js";
import { KINDS, LABELS } from "./lines.js";
import { counts, kinds, order, shown, total, words } from "./steps.js";

const LINE = 44; // px, about
const NEAR_END = 40;
const expanded = signal(new Set()); // ids of events
const ORDERS = [
  { name: "step", label: "By step", about: "Each step with what was done in it" },
  { name: "time", label: "By time", about: "As it happened" },
];

export function LogPane() {
  return html`<section class="log stack" aria-label="Run log">
    <header class="row apart"><h2>Run log</h2>
      <div class="row"><${Choice} label="Order" value=${order.value} choices=${ORDERS}
        onChange=${(name) => (order.value = name)} />
        <button type="button" class="small" disabled=${!shown.value.length}
          onClick=${saved}>Download${isFiltered() ? " these" : ""}</button></div>
    </header>
    ${moment.value && html`<p class="note">The timeline shows an earlier moment. The log still shows the whole run.</p>`}
    <${Figures} />
    <${Filters} />
    <${Lines} key=${run.value?.id ?? ""} />
  </section>`;
}

const isFiltered = () => shown.value.length < total.value;

/** One event a line, as `openassay threads log` and the stream have them. */
function saved() {
  const wanted = isFiltered() ? shown.value.map((row) => row.line.event) : events.value;
  kept(wanted.map((event) => `${raw(event)}\n`).join(""), `openassay-${threadId.value}-log.jsonl`, "application/jsonl");
}

function raw({ id, name, ...event }, space) {
  return JSON.stringify(event, null, space);
}

function Filters() {
  const toggle = (name) => {
    const next = new Set(kinds.value);
    if (!next.delete(name)) next.add(name);
    kinds.value = next;
  };
  return html`<div class="log-filters stack">
    <input type="search" aria-label="Search the log" placeholder="Search the log" value=${words.value}
      onInput=${(event) => (words.value = event.target.value)} />
    <div class="row log-kinds" role="group" aria-label="Show only">
      ${KINDS.filter((one) => counts.value[one.name] || kinds.value.has(one.name)).map(
        (one) => html`<button
        type="button" key=${one.name}
        class="small" data-kind=${one.name} aria-pressed=${kinds.value.has(one.name) ? "true" : "false"}
          onClick=${() => toggle(one.name)}>
        ${one.label} <span class="count">${number(counts.value[one.name])}</span></button>`,
      )}
      ${
        (kinds.value.size > 0 || words.value) &&
        html`<button type="button" class="plain small"
        onClick=${() => {
          kinds.value = new Set();
          words.value = "";
        }}>Show all</button>`
      }
    </div>
    <p class="note"
      role="status">${isFiltered() ? `${number(shown.value.length)} of ` : ""}${count(total.value, "line")}</p>
  </div>`;
}

function Lines() {
  const box = useRef();
  const [chosen, setFollowing] = useState(null);
  const following = chosen ?? active.value; // a finished run is read from the start
  const follows = useTail(box, following, setFollowing);
  const start = events.value[0] && Date.parse(events.value[0].time);
  if (!shown.value.length) return html`<${Nothing} />`;
  return html`<div class="log-tail">
    <div class="log-lines" data-scrolls ref=${box} tabindex="0" role="region" aria-label="Events" onScroll=${follows}
      onClick=${pressed}>
      <div><${Chunks} items=${shown.value} height=${LINE} each=${(row) => html`<${Line} key=${row.line.event.id}
        row=${row} start=${start} open=${expanded.value.has(row.line.event.id)} />`} /></div>
    </div>
    ${
      !following &&
      active.value &&
      html`<button type="button" class="log-newest"
      onClick=${() => setFollowing(true)}>Go to newest</button>`
    }
  </div>`;
}

function Nothing() {
  return total.value
    ? html`<${Empty} title="No lines match."><p>Choose other kinds, or search for something else.</p></${Empty}>`
    : html`<${Empty}
      title="Nothing has happened yet."><p>Steps, searches and model calls appear here as they happen.</p></${Empty}>`;
}

/** Stays scrolled to the end until the person scrolls up, also while lines are added or grow. */
function useTail(box, following, setFollowing) {
  const last = useRef(0);
  const down = () => box.current && (box.current.scrollTop = box.current.scrollHeight);
  useLayoutEffect(() => {
    if (following) down();
  });
  useEffect(() => {
    if (!following || !box.current) return undefined;
    const grows = new ResizeObserver(down);
    grows.observe(box.current);
    grows.observe(box.current.firstElementChild);
    return () => grows.disconnect();
  }, [following, !shown.value.length]);
  return () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    if (scrollTop < last.current - 4) setFollowing(false);
    else if (scrollTop + clientHeight >= scrollHeight - NEAR_END) setFollowing(true);
    last.current = scrollTop;
  };
}

/** One listener for thousands of lines. */
function pressed(event) {
  const id = event.target.closest("button.log-line")?.dataset.id;
  if (!id) return;
  const next = new Set(expanded.value);
  if (!next.delete(id)) next.add(id);
  expanded.value = next;
}

function Line({ row, start, open }) {
  const { line, depth, state } = row;
  const { event } = line;
  const at = (Date.parse(event.time) - start) / 1000;
  return html`<div class="log-event" data-kind=${line.kind} data-place=${state ? "step" : depth ? "under" : "alone"}>
    <button type="button" class="log-line" data-id=${event.id} aria-expanded=${open ? "true" : "false"}>
      <span class="log-when"
        title=${`${time(event.time)}, ${seconds(at)} after the start`}>
        <span>${time(event.time)}</span><span>+${seconds(at)}</span></span>
      <span class="log-kind">${LABELS[line.kind]}</span>
      <span class="log-what"><span dir="auto">${line.text}</span>${
        line.more &&
        html`<span class="log-more-of"
        dir="auto">${line.more}</span>`
      }</span>
      <span class="log-side">${
        line.tags.includes("cached") &&
        html`<span
        class="chip blue">cache</span>`
      }${state ? took(state) : line.time}</span>
    </button>
    ${open && html`<${Raw} event=${event} />`}
  </div>`;
}

const took = (state) =>
  state.seconds !== undefined
    ? seconds(state.seconds)
    : html`<span
  class="chip">${active.value ? "running" : "not finished"}</span>`;

function Raw({ event }) {
  const text = raw(event, 2);
  return html`<div class="log-raw"><pre tabindex="0" aria-label="The event as it was recorded"
    role="region">${text}</pre>
    <button type="button" class="small" onClick=${() => copy(text)}>Copy</button></div>`;
}
