// The moments of the thread and the tree of its branches. They are asked for while the timeline is looked at, and again
// while the run continues: a moment that was chosen stays chosen.
import { get, Problem } from "../core/api.js";
import { batch, computed, signal, untracked, useSignalEffect } from "../core/html.js";
import { place, threadId, turn } from "../core/place.js";
import { events, generation, moment } from "../core/store.js";
import { phaseOf } from "./stages.js";

const MOST = 500; // the server tells no more at once
const PAUSE = 1_000; // ms between two requests while a run is active
const HELD = 120; // ms the slider rests before its moment is opened

export const moments = signal(null); // the oldest first; null: not known yet
export const tree = signal(null); // BranchBody of the root
export const present = signal(null); // GET state: as it is now
export const problem = signal(null);
export const origin = signal(null); // of a branch: its parent at the end of the run it began in, as THREAD@CHECKPOINT

let held = null; // the thread they are of
let begun = 0; // time of the last request
let timer = 0;
let holding = 0; // the slider

const lastLeft = computed(() => events.value.findLast((event) => event.kind === "leave")?.id);

/** For the component that shows them. */
export function useHistory() {
  useSignalEffect(() => {
    const id = threadId.value;
    void [generation.value, lastLeft.value];
    untracked(() => soon(id));
  });
}

function soon(id) {
  clearTimeout(timer);
  if (id !== held) {
    clearTimeout(holding);
    held = id;
    begun = 0;
    batch(() => (sliding.value = moments.value = tree.value = present.value = problem.value = origin.value = null));
  }
  if (id) timer = setTimeout(() => look(id), Math.max(0, begun + PAUSE - Date.now()));
}

export async function look(id = threadId.value) {
  begun = Date.now();
  const api = `/api/threads/${id}`;
  const [history, branches, state] = await Promise.all([
    told(() => get(`${api}/history`, { limit: MOST })),
    told(() => get(`${api}/branches`)),
    told(() => get(`${api}/state`)),
  ]);
  if (id !== threadId.value) return;
  batch(() => {
    problem.value = history instanceof Problem ? history : null;
    if (!problem.value) moments.value = history.moments;
    if (!(branches instanceof Problem)) tree.value = branches;
    present.value = state instanceof Problem ? null : state;
  });
  if (!origin.value) await trace(id);
}

/** The parent may have continued since, with other questions. */
async function trace(id) {
  const { parent, checkpoint } = family.value.find((node) => node.thread === id) ?? {};
  if (!parent) return;
  const history = await told(() => get(`/api/threads/${parent}/history`, { limit: MOST }));
  if (id === threadId.value && !(history instanceof Problem)) origin.value = endOf(parent, history.moments, checkpoint);
}

/** THREAD@CHECKPOINT of the last moment of the run that a moment is of; where that is no longer listed, the thread. */
export function endOf(thread, list, checkpoint) {
  const { run } = list.find((one) => one.checkpoint === checkpoint) ?? {};
  const last = run && list.findLast((one) => one.run === run);
  return last ? `${thread}@${last.checkpoint}` : thread;
}

const told = (ask) => ask().catch((error) => (error instanceof Problem ? error : Promise.reject(error)));

// -- which of them ----------------------------------------------------------------------------------------

export const sliding = signal(null); // where the slider is held, before its moment is opened
const byCheckpoint = computed(() => new Map((moments.value ?? []).map((one, at) => [one.checkpoint, at])));

/** A place on the slider: of a moment, or behind the last one, which is now. -1: before those that are told. */
export const chosen = computed(() => {
  const { at } = place.value;
  if (sliding.value !== null) return sliding.value;
  return at ? indexOf(at) ?? indexOf(moment.value?.checkpointId) ?? -1 : (moments.value ?? []).length;
});

export const indexOf = (checkpoint) => byCheckpoint.value.get(checkpoint);

/** The state there was at the chosen moment; null while it is not known. */
export const values = computed(() => {
  const { at } = place.value;
  if (sliding.value !== null) return null;
  if (!at) return present.value?.values ?? null;
  return moment.value?.asked === at ? moment.value.values : null;
});

export function choose(index) {
  clearTimeout(holding);
  sliding.value = null;
  turn({ at: moments.value[index]?.checkpoint ?? null });
}

/** While the slider is dragged, only where it rests is opened. */
export function slide(index) {
  clearTimeout(holding);
  sliding.value = index;
  holding = setTimeout(() => choose(index), HELD);
}

// -- what follows from them -------------------------------------------------------------------------------

/** What the thread had cost at each of them: a moment tells what its own run had. */
export const costs = computed(() => {
  let [before, last, run] = [0, 0, null];
  return (moments.value ?? []).map((one) => {
    if (one.run !== run) [before, last, run] = [before + last, 0, one.run];
    last = one.usd;
    return before + one.usd;
  });
});

/** Stretches of the slider: [{name, run, from, to}], with neighbours of one phase and run taken together. */
export const phases = computed(() => stretches(moments.value ?? [], phaseOf));
export const questions = computed(() => stretches(moments.value ?? [], (one) => one.run));

function stretches(list, nameOf) {
  const found = [];
  list.forEach((one, at) => {
    const [name, last] = [nameOf(one), found.at(-1)];
    if (last?.name === name && last.run === one.run) last.to = at;
    else found.push({ name, run: one.run, from: at, to: at });
  });
  return found;
}

/** Every thread of the tree, parents before their branches. */
export const family = computed(() => (tree.value ? grown(tree.value) : []));

const grown = (node) => [node, ...node.branches.flatMap(grown)];

/** index -> the branches that began there */
export const begins = computed(() => {
  const found = new Map();
  for (const node of family.value) {
    const at = node.parent === threadId.value ? indexOf(node.checkpoint) : undefined;
    if (at !== undefined) found.set(at, [...(found.get(at) ?? []), node]);
  }
  return found;
});

/** Whether statements had been checked by then, so that there is something to compare. */
export const checked = computed(() => {
  const runs = new Set();
  return (moments.value ?? []).map((one) => {
    if (phaseOf(one) === "Check") runs.add(one.run);
    return runs.has(one.run);
  });
});
