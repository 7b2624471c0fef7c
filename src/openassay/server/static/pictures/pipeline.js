// The research graph as it is compiled, with the running stage highlighted.
import { get, Problem } from "../core/api.js";
import { computed, html, signal, useEffect, useMemo, useState } from "../core/html.js";
import { Busy, Empty, Wrong } from "../core/parts.js";
import { turn } from "../core/place.js";
import { moment, stages, status } from "../core/store.js";
import { stageName } from "../core/stages.js";
import { count, seconds } from "../core/words.js";
import { Figure, Legend, useWidth } from "./figure.js";
import { happened, visits } from "./happened.js";
import { asks, layered } from "./layers.js";
import { along, useNodes } from "./nodes.js";
import { Routes } from "./routes.js";

const ROW = 38, TALL = 28; // px: a layer, and a node in it
const LANES = [0.27, 0.36, 0.37]; // of the width: the names of the first are short
const ENDS = { __start__: "start", __end__: "end" };
const WORDS = { done: "done", working: "running", waiting: "waiting for you", next: "next", idle: "not reached" };
const SIGNS = { done: "✓", working: "●", waiting: "?", next: "→" };

const STANDS = { done: "Finished.", failed: "The run failed.", cancelled: "The run was stopped.", queued: "Queued." };
const KEYS = [["taken", "path taken"], ["open-way", "possible path"], ["back", "loops back"], ["person", "asks you"]];

const graph = signal(null); // the same for all threads: asked for once
const problem = signal(null);

async function load() {
  problem.value = null;
  try {
    graph.value = layered(await get("/api/graph"));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    problem.value = error;
  }
}

const label = (name) => ENDS[name] ?? name.replaceAll("_", " "); // short enough for a node
const named = (name) => ENDS[name] ?? stageName(name);

/** stage -> done, working, waiting, next. In the past only what had happened by then, and what was due. */
const states = computed(() => {
  const past = moment.value;
  const found = new Map([...visits.value].map(([name, one]) => [name, !past && one.open ? "working" : "done"]));
  if (past) past.next.forEach((name) => found.set(name, "next"));
  else if (status.value === "waiting")
    for (const [name, state] of stages.value) if (state === "waiting") found.set(name, state);
  if (happened.value.length) found.set("__start__", "done");
  if (!past && status.value === "done") found.set("__end__", "done");
  return found;
});

/** "Search (3 at once)" */
const now = computed(() => {
  const those = (wanted) => [...states.value].filter(([, state]) => state === wanted).map(([name]) => {
    const open = visits.value.get(name)?.open ?? 0;
    return open > 1 ? `${named(name)} (${open} at once)` : named(name);
  }).join(", ");
  if (moment.value) return those("next") ? `At this moment, next: ${those("next")}` : "At this moment, everything was done.";
  if (status.value === "queued") return STANDS.queued;
  if (those("waiting")) return `Waiting for you: ${those("waiting")}`;
  if (those("working")) return `Now: ${those("working")}`;
  return STANDS[status.value] ?? "Nothing is running.";
});

export function PipelinePicture() {
  useEffect(() => void (graph.value || load()), []);
  if (problem.value?.status === 404) return html`<${Empty} title="This server does not show its research graph" />`;
  if (problem.value) return html`<${Wrong} problem=${problem.value} again=${load} />`;
  if (!graph.value) return html`<${Busy} />`;
  return html`<${Figure} name="pipeline" title="Research graph" told=${sentence(graph.value)}
    table=${tabled(graph.value)}>
    <p class="now" role="status" aria-live="polite">${now.value}</p>
    <${Legend} keys=${KEYS} />
    <p class="note">Choose a stage to see where it leads and how long it took.</p>
    <${Graph} drawn=${graph.value} />
  </${Figure}>`;
}

function sentence({ nodes, edges }) {
  const real = nodes.filter((node) => !ENDS[node.name]);
  const reached = real.filter((node) => visits.value.has(node.name)).length;
  const asking = real.filter((node) => asks(node.name)).length;
  const back = edges.filter((edge) => edge.back).length;
  return `${count(real.length, "stage")}, ${asking} of which ask you; ${reached} reached so far. `
    + `Paths that loop back: ${back}.`;
}

const tabled = ({ nodes, edges }) => ({
  columns: ["Stage", "State", "Entered", "Total", "May lead to"],
  rows: nodes.map(({ name }) => [
    named(name), WORDS[states.value.get(name) ?? "idle"],
    String(visits.value.get(name)?.entered ?? 0), seconds(visits.value.get(name)?.seconds ?? 0),
    edges.filter((edge) => edge.from === name).map((edge) => named(edge.to)).join(", ") || "nothing",
  ]),
});

function Graph({ drawn }) {
  const [box, width] = useWidth();
  const [chosen, setChosen] = useState(null);
  const placed = useMemo(() => places(drawn, width), [drawn, width]);
  const order = [...placed.values()].sort((a, b) => a.y - b.y || a.x - b.x);
  const names = order.map((node) => node.name);
  const { lit, stop, on } = useNodes(names, (name, key) => step(order, placed.get(name), key));
  return html`<div class="canvas pipeline" ref=${box} style=${{ height: `${drawn.layers * ROW}px` }}>
    ${width > 0 &&
    html`<${Routes} edges=${drawn.edges} placed=${placed} width=${width} tall=${drawn.layers * ROW}
      lit=${lit ?? chosen} />
    <div ...${on} role="group" aria-label="Stages. Use the arrow keys to move between them.">
      ${order.map((node) => html`<${Stage} key=${node.name} node=${node} isStop=${stop === node.name} chosen=${chosen}
        onChoose=${() => setChosen(chosen === node.name ? null : node.name)} />`)}
    </div>`}
  </div>
  <${Words} name=${lit ?? chosen} edges=${drawn.edges} />`;
}

/** name -> its box: {name, x, y, wide, tall} */
function places({ nodes }, width) {
  const gap = Math.min(40, width * 0.065);
  const wides = LANES.map((share) => share * (width - 2 * gap - 16));
  const lefts = [8, 8 + wides[0] + gap, 8 + wides[0] + wides[1] + 2 * gap];
  const top = (layer) => layer * ROW + (ROW - TALL) / 2;
  const box = ({ lane, layer }) => ({ x: lefts[lane], y: top(layer), wide: wides[lane], tall: TALL });
  return new Map(nodes.map((node) => [node.name, { ...node, ...box(node) }]));
}

function step(order, node, key) {
  const sideways = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (!sideways) return along(order.map((one) => one.name), node.name, key);
  const lane = order.filter((one) => one.lane === node.lane + sideways);
  return lane.sort((a, b) => Math.abs(a.y - node.y) - Math.abs(b.y - node.y))[0]?.name;
}

function Stage({ node, isStop, chosen, onChoose }) {
  const state = states.value.get(node.name) ?? "idle";
  const visit = visits.value.get(node.name);
  const times = visit?.entered > 1 ? `×${visit.entered}` : "";
  const place = { left: `${node.x}px`, top: `${node.y}px`, width: `${node.wide}px`, height: `${node.tall}px` };
  return html`<button type="button"
    class="node stage ${state} ${asks(node.name) ? "person" : ""} ${ENDS[node.name] ? "end" : ""}"
    data-node=${node.name} style=${place} title=${named(node.name)}
    tabindex=${isStop ? 0 : -1} aria-pressed=${chosen === node.name ? "true" : "false"} onClick=${onChoose}
    aria-label=${`${label(node.name)}, ${WORDS[state]}${visit ? `, entered ${count(visit.entered, "time")}` : ""}`}>
    ${SIGNS[state] && html`<span class="sign">${SIGNS[state]}</span>`}<span
      class="name">${label(node.name)}</span>${times && html`<span class="times">${times}</span>`}
  </button>`;
}

function Words({ name, edges }) {
  const visit = visits.value.get(name);
  const next = edges.filter((edge) => edge.from === name)
    .map((edge) => (edge.to === name ? "itself again" : named(edge.to)));
  const told = visit ? `Entered ${count(visit.entered, "time")}, ${seconds(visit.seconds)} in total.` : "Not reached.";
  if (!name) return null;
  return html`<div class="words"><div>
    <p><b>${named(name)}</b> ${asks(name) ? "asks you. " : ""}${told}</p>
    <p class="note">${next.length ? `May lead to ${next.join(", ")}.` : "Nothing follows."}
      ${visit && html` <button type="button" class="plain small"
        onClick=${() => turn({ panel: "log" }, { keep: true })}>Open the log</button>`}</p>
  </div></div>`;
}
