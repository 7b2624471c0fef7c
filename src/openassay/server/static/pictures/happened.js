// The events up to the moment that is looked at, and what they say of each step.
import { computed } from "../core/html.js";
import { events, moment, run } from "../core/store.js";

const EPOCH = 12_219_292_800_000; // ms from the beginning of the Gregorian calendar, where such ids count from, to 1970

/** When a checkpoint was made: its id is a UUID of version 6, which begins with the time. 0: it does not say. */
function timeOf(checkpoint) {
  const [, high, low] = /^([0-9a-f]{8}-[0-9a-f]{4})-6([0-9a-f]{3})-/.exec(checkpoint ?? "") ?? [];
  return high ? Number(BigInt(`0x${high.replace("-", "")}${low}`) / 10_000n) - EPOCH : 0;
}

/** None while a later question is queued: the last events belong to the one before. */
export const own = computed(() => (events.value[0]?.run === run.value?.id ? events.value : []));

export const happened = computed(() => {
  const until = timeOf(moment.value?.checkpointId);
  return until ? own.value.filter((event) => Date.parse(event.time) <= until) : own.value;
});

/** [{from, to}] in ms: when the run stood still, since a person was asked or it had been stopped. */
const pauses = computed(() => {
  const found = [];
  let since = null;
  for (const { kind, data, time } of happened.value) {
    if (kind !== "run") continue;
    if (data.status === "running" && since !== null) found.push({ from: since, to: Date.parse(time) });
    since = data.status === "running" ? null : since ?? Date.parse(time);
  }
  return found;
});

/** ms of work from the beginning to that time: hours of waiting for somebody would leave no room for anything else. */
export function worked(time) {
  const at = Date.parse(time);
  const stood = pauses.value.reduce((sum, pause) => sum + Math.max(0, Math.min(at, pause.to) - pause.from), 0);
  return Math.max(0, at - Date.parse(happened.value[0].time) - stood);
}

export const span = computed(() => (happened.value.length ? worked(happened.value.at(-1).time) : 0));
export const waited = computed(() => pauses.value.reduce((sum, pause) => sum + pause.to - pause.from, 0));

/** step -> {name, entered, open, seconds, spells: [{from, to}]}, in the order of their first time; `to` is null while
 *  it lasts. A step may run several times at once: `parent` of what ends one says which began it. */
export const visits = computed(() => {
  const found = new Map();
  const begun = new Map();
  for (const { seq, kind, stage, parent, time, data } of happened.value) {
    if (kind === "enter") {
      const visit = found.get(stage) ?? { name: stage, entered: 0, open: 0, seconds: 0, spells: [] };
      const spell = { from: worked(time), to: null };
      found.set(stage, visit);
      visit.entered += 1;
      visit.open += 1;
      visit.spells.push(spell);
      begun.set(seq, { visit, spell });
    } else if (kind === "leave" && begun.has(parent)) ended(begun, parent, time);
    else if (kind === "run" && data.status !== "running") for (const seq of [...begun.keys()]) ended(begun, seq, time);
  }
  return found;
});

function ended(begun, seq, time) {
  const { visit, spell } = begun.get(seq);
  spell.to = Math.max(spell.from, worked(time));
  visit.open -= 1;
  visit.seconds += (spell.to - spell.from) / 1000;
  begun.delete(seq);
}
