// What is known of the thread that is looked at. Panes read these signals and call these functions; nothing else holds
// state that two panes need.
import { get, Problem, reachable } from "./api.js";
import { batch, computed, effect, signal, untracked } from "./html.js";
import { place, threadId, turn } from "./place.js";
import { follow } from "./stream.js";

export const thread = signal(null); // its summary: id, title, status, mode, usd ...
export const runs = signal([]); // one for each question, the oldest first
export const events = signal([]); // of the run that is followed, in their order; see docs/reference/events.md
export const queued = signal(0); // its place in the queue
export const stream = signal({ name: "idle" }); // see stream.js
export const report = signal(null); // ReportData: of the run that is looked at, or of the last that was finished
export const shelf = signal({ sources: [], pinned: [], vetoed: [] }); // GET sources
export const questions = signal([]); // open ones: interrupts with their id, kind, question, options, shown, form
export const moment = signal(null); // of the past: {checkpointId, values, next}; null: now
export const trouble = signal(null); // why the thread cannot be shown (a Problem)
export const loading = signal(false);
export const generation = signal(0); // counts lasting changes: a report, a pin, a veto, an edit
export const focus = signal({}); // {statement, claim, source}: what is highlighted, in every pane
export const passage = signal(null); // the span that is opened: {document, start, end, quote, source, claim}

export const run = computed(() => runs.value.find((one) => one.id === place.value.run) ?? runs.value.at(-1) ?? null);
export const status = computed(() => standing(lastStatus(events.value, run.value?.id), run.value?.status));
export const active = computed(() => ["queued", "running", "waiting"].includes(status.value));
export const spend = computed(() => events.value.filter((event) => event.kind === "spend"));
export const stages = computed(() => atWork(events.value)); // node -> "working" | "done" | "waiting"
export const draft = computed(() => written(events.value)); // what is there of the report while it is written

/** The run that is looked at is not the last one. */
export const isEarlier = computed(() => Boolean(run.value && run.value.id !== runs.value.at(-1).id));

/** The report on the question is ready, which settles the status. Events replayed on loading come later. */
export const isReady = computed(() => run.value?.status === "done" && report.value?.provenance.run === run.value.id);

/** Events are newer, except for a stopped run that is resumed: it is queued or waits again without an event of its own. */
function standing(heard, known) {
  const goesOn = heard === "cancelled" && ["queued", "waiting"].includes(known);
  return (goesOn ? known : heard) ?? known ?? null;
}

function lastStatus(list, id) {
  return list.findLast((event) => event.kind === "run" && event.run === id)?.data.status;
}

// -- what the text rests on -------------------------------------------------------------------------------

// C1 and S1 are others with each question: what they stand for is asked of the run, and of the moment, whose text is
// shown.
const present = signal({}); // {run, values}: the state behind a draft that is being written

/** What is shown in the middle: "moment" | "draft" | "report", or null where nothing is written yet. */
export const basis = computed(() => {
  if (moment.value) return "moment";
  const isOpen = active.value || ["queued", "running", "waiting"].includes(run.value?.status);
  if (draft.value && !isReady.value && (isOpen || !report.value)) return "draft";
  return report.value ? "report" : null;
});

/** The state behind what is shown, where that is no report. */
const behind = computed(() => {
  if (basis.value === "moment") return moment.value.values;
  return basis.value === "draft" && present.value.run === run.value?.id ? present.value.values : null;
});

const isReport = computed(() => basis.value === "report" || !basis.value);
const byId = (list) => new Map((list ?? []).map((one) => [one.id, one]));

export const evidence = computed(() => behind.value?.evidence ?? null); // what was read for it; null: the shelf tells
export const claims = computed(() => byId(isReport.value ? report.value?.claims : behind.value?.claims));
export const cards = computed(() => byId(isReport.value ? shelf.value.sources : evidence.value));
export const sections = computed(() => {
  if (basis.value === "moment") return behind.value.draft?.sections ?? [];
  if (basis.value === "draft") return draft.value.sections.map(({ title, lines }) => ({ title, sentences: lines }));
  return report.value?.sections ?? [];
});

/** Pages as they are read, and what is cited as it is published: data of the events, by address. */
export const pages = computed(() => {
  const found = new Map();
  for (const { kind, stage, data } of events.value) {
    const isPage = kind === "read" && stage === "harvest" && data.url;
    if (kind === "citation" || isPage) found.set(data.url, { ...found.get(data.url), ...data });
  }
  return found;
});

/** For the tab: of what is shown. */
export const sourceCount = computed(() => {
  if (evidence.value) return evidence.value.length + (behind.value.left_out?.evidence ?? 0);
  return basis.value === "draft" || !report.value ? pages.value.size : shelf.value.sources.length;
});

/** "RUN DRAFT": which draft is shown, where the state of the thread is that of its run. */
const begun = computed(() => {
  const isOwn = basis.value === "draft" && run.value && !isEarlier.value && draft.value.sections.length;
  return isOwn ? `${run.value.id} ${draft.value.version}` : null;
});

effect(() => {
  const [id, name] = [threadId.value, begun.value];
  if (id && name) untracked(() => lookBehind(id, name, run.value.id));
});

async function lookBehind(id, name, of) {
  const held = await told(() => get(`/api/threads/${id}/state`));
  const isWanted = threadId.value === id && begun.value === name && !(held instanceof Problem);
  if (isWanted) present.value = { run: of, values: held.values };
}

// -- following --------------------------------------------------------------------------------------------

let stop = () => {};
let came = []; // since the last frame
let asked = 0; // how often everything was asked for: only the last answer is shown
const AGAIN = 3_000; // ms until a request that failed for the moment is repeated

const chosenRun = computed(() => place.value.run);
const chosenMoment = computed(() => place.value.at);

effect(() => {
  const [id, chosen] = [threadId.value, chosenRun.value];
  untracked(() => open(id, chosen));
});

effect(() => {
  const [id, at] = [threadId.value, chosenMoment.value];
  untracked(() => travel(id, at));
});

/** After a run was started on this thread: a stream that had ended is opened again. */
export function reopen() {
  return open(threadId.value, chosenRun.value);
}

async function open(id, chosen) {
  stop();
  came = [];
  const isAnother = id !== thread.value?.id;
  batch(() => {
    events.value = [];
    queued.value = 0;
    trouble.value = null;
    stream.value = { name: "idle" };
    if (isAnother) clear();
  });
  if (!id) return;
  loading.value = isAnother;
  stop = follow(id, { run: chosen }, { events: heard, state: (state) => (stream.value = state) });
  await refresh();
  if (threadId.value === id) loading.value = false;
}

function clear() {
  thread.value = report.value = moment.value = passage.value = null;
  runs.value = questions.value = [];
  shelf.value = { sources: [], pinned: [], vetoed: [] };
  focus.value = present.value = {};
}

/** Everything about a thread apart from its events. */
export async function refresh() {
  const id = threadId.value;
  if (!id) return;
  const mine = ++asked;
  const chosen = { run: place.value.run };
  const api = `/api/threads/${id}`;
  const [summary, all, open, made, used] = await Promise.all([
    told(() => get(api)), told(() => get(`${api}/runs`)), told(() => get(`${api}/reviews`)),
    told(() => get(`${api}/report`, chosen)), told(() => get(`${api}/sources`, chosen)),
  ]);
  if (mine !== asked || threadId.value !== id) return;
  batch(() => {
    trouble.value = summary instanceof Problem ? summary : null;
    if (!(summary instanceof Problem)) thread.value = summary;
    if (!(all instanceof Problem)) runs.value = all.runs;
    if (!(open instanceof Problem)) questions.value = open.reviews.map((one) => one.interrupt).filter(Boolean);
    if (!(made instanceof Problem)) report.value = made;
    else if (made.status === 404) report.value = null;
    if (!(used instanceof Problem)) shelf.value = used;
    generation.value += 1;
  });
  if (!(all instanceof Problem)) known(chosen.run);
  const passing = [summary, all, open, made, used].find((one) => one.status === 429 || one.status >= 500);
  if (passing) setTimeout(() => mine === asked && refresh(), passing.retryAfter * 1000 || AGAIN);
}

/** An address may name a run that never was, or is of another thread. */
function known(named) {
  if (!named || place.value.run !== named || runs.value.some((one) => one.id === named)) return;
  say("This thread has no such question.", { help: "The latest one is shown.", wrong: true });
  turn({ run: null });
}

function told(ask) {
  return ask().catch((error) => (error instanceof Problem ? error : Promise.reject(error)));
}

/** Events come in bursts of hundreds: what came within a frame is shown together. */
function heard(list) {
  // A tab that nobody sees is given no frames, and its title has to say that the answer is there.
  if (!came.length) document.hidden ? setTimeout(shown, 250) : requestAnimationFrame(shown);
  came.push(...list);
}

function shown() {
  const only = chosenRun.value; // the stream continues with later questions
  const fresh = came.filter((event) => event.id && (!only || event.run === only));
  const line = came.findLast((event) => event.name === "queue");
  came = [];
  batch(() => {
    if (line) queued.value = line.position;
    if (fresh.some((event) => event.kind === "enter")) queued.value = 0;
    const last = events.value.at(-1);
    const begins = fresh.findLastIndex((event, at) => event.run !== (fresh[at - 1] ?? last ?? event).run);
    events.value = begins >= 0 ? fresh.slice(begins) : [...events.value, ...fresh]; // a later question has its own log
  });
  if (fresh.some(changes)) refresh();
}

/** Events that call for a refresh: not replayed ones of a run that is known to have ended since. */
function changes(event) {
  const known = runs.value.find((one) => one.id === event.run)?.finished;
  return ["interrupt", "done", "run"].includes(event.kind) && !(known && event.time <= known);
}

effect(() => {
  if (reachable.value && untracked(() => trouble.value?.status === 0)) refresh();
});

// -- the past ---------------------------------------------------------------------------------------------

const UNKNOWN = [400, 404, 422]; // no moment at all, or none of this thread
const SHOWN_NOW = "It may belong to another thread. The current state is shown.";

async function travel(id, at) {
  if (!id || !at) {
    moment.value = null;
    return;
  }
  const held = await told(() => get(`/api/threads/${id}/state`, { checkpoint: at }));
  if (place.value.at !== at || threadId.value !== id) return; // the slider has moved on
  if (held instanceof Problem) {
    moment.value = null;
    if (UNKNOWN.includes(held.status)) say("This thread has no such moment.", { help: SHOWN_NOW, wrong: true });
    else say(held.message, { help: held.help, wrong: true });
    turn({ at: null });
  } else {
    moment.value = { ...held, asked: at };
  }
}

// -- the report while it is written -----------------------------------------------------------------------

/** {version, sections: [{title, lines}], text}: sections that were checked, and what a model is writing just now. */
function written(list) {
  let sections = new Map();
  let text = "";
  let version;
  for (const { kind, stage, data } of list) {
    if (kind === "section" && stage === "write") {
      if (data.draft !== version) sections = new Map();
      version = data.draft;
      sections.set(data.title, { title: data.title, lines: data.lines ?? [] });
      text = "";
    } else if (kind === "token") {
      text = data.again ? data.text : text + data.text;
    }
  }
  return sections.size || text ? { version, sections: [...sections.values()], text } : null;
}

function atWork(list) {
  const found = new Map();
  for (const { kind, stage, data } of list) {
    if (kind === "run" && data.status !== "running") {
      for (const [name, state] of found) if (state === "working") found.set(name, data.status === "waiting" ? "waiting" : "done");
    } else if (stage && kind === "enter") found.set(stage, "working");
    else if (stage && kind === "leave") found.set(stage, "done");
  }
  return found;
}

// -- what is pointed at -----------------------------------------------------------------------------------

/** Highlight the card of a source and scroll to it; `claim` says which of its excerpts. */
export function showSource(source, claim) {
  batch(() => {
    focus.value = { ...focus.value, source, claim };
    turn({ panel: "sources" });
  });
}

/** Highlight a statement, and scroll to it. Its name is "SECTION-SENTENCE", counted from 0. With a `source`, its card is
 *  shown beside it, and the keyboard stays where it is. */
export function showStatement(statement, claim, source) {
  focus.value = { statement, claim, source };
}

export function openPassage(span, claim) {
  passage.value = { ...span, claim };
}

// -- what is said to the person ---------------------------------------------------------------------------

export const notices = signal([]); // {id, text, help, wrong, act: {label, run}}
let said = 0;

/** Shown, and read out by screen readers. What went wrong stays until it is closed. */
export function say(text, { help = "", wrong = false, act = null } = {}) {
  const id = ++said;
  notices.value = [...notices.value.slice(-3), { id, text, help, wrong, act }];
  if (!wrong && !act) setTimeout(() => unsay(id), 6_000);
}

export const unsay = (id) => (notices.value = notices.value.filter((one) => one.id !== id));

/** Carry something out; what is refused is said. True if it was done. */
export async function attempt(work, done = "") {
  try {
    await work();
    if (done) say(done);
    return true;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status !== 401) say(error.message, { help: error.help, wrong: true });
    return false;
  }
}
