// Answers on their way, and what has become of questions that were answered elsewhere.
import { get, onceOnly, patch, post, Problem } from "../core/api.js";
import { batch, computed, effect, signal, untracked } from "../core/html.js";
import { threadId } from "../core/place.js";
import { events, questions, refresh, reopen, say, status, stream } from "../core/store.js";
import { forget } from "./unsent.js";

export const plannerOpen = signal(false);
export const sending = signal(false);
export const refusal = signal(null); // {question, problem}: an answer that does not fit, and why
export const elsewhere = signal(""); // how a question that was shown here came to its end without us
export const goingOn = signal(null); // {thread, after}: an answer was taken, and nothing has come of it yet
export const earlier = signal([]); // [{id, question, text}]: what was answered before in this run

const taken = signal(new Set()); // a request that was under way may still call them open
export const open = computed(() => questions.value.filter((one) => !taken.value.has(one.id)));

// Until one of these is left, another question may well follow.
const PREPARING = ["understand", "clarify", "gate", "question", "plan", "prepare"];

export function close() {
  batch(() => {
    plannerOpen.value = false;
    elsewhere.value = "";
  });
}

// -- answering --------------------------------------------------------------------------------------------

let attempted = { what: "", headers: {} }; // the same answer sent again is one answer

export async function answer(question, value) {
  const what = JSON.stringify([question.id, value]);
  if (attempted.what !== what) attempted = { what, headers: onceOnly() };
  await settle(question, () =>
    post(`/api/threads/${threadId.value}/resume`, { interruptId: question.id, value }, { headers: attempted.headers }),
  );
}

/** Planning questions are dropped when their thread turns to auto. */
export async function skipAll(question) {
  await settle(question, () => patch(`/api/threads/${threadId.value}/mode`, { mode: "auto" }));
}

async function settle(question, send) {
  batch(() => {
    sending.value = true;
    refusal.value = null;
    elsewhere.value = "";
  });
  try {
    await send();
    gone(question);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status === 409) await late(question, error);
    else refusal.value = { question: question.id, problem: error };
  } finally {
    sending.value = false;
  }
}

function gone(question) {
  forget(question.id);
  batch(() => {
    taken.value = new Set([...taken.value, question.id]);
    goingOn.value = { thread: threadId.value, after: events.value.at(-1)?.seq ?? 0 };
  });
  if (stream.value.name === "ended") reopen();
  else refresh();
}

async function late(question, problem) {
  elsewhere.value = `Your answer came too late: ${problem.message}.`;
  gone(question);
}

// -- what happens to questions by itself --------------------------------------------------------------------

let shown = null; // {thread, question} that is, or could be, looked at
const opened = new Set(); // by itself a drawer opens once for a question

effect(() => {
  const [thread, list] = [threadId.value, open.value];
  untracked(() => noticed(thread, list));
});

function noticed(thread, list) {
  const before = shown;
  shown = list.length ? { thread, question: list[0] } : null;
  if (before && before.thread !== thread) return leave();
  if (before && !list.some((one) => one.id === before.question.id) && !taken.value.has(before.question.id)) {
    tell(before.question);
  }
  if (!shown) return undefined;
  goingOn.value = null;
  if (!opened.has(shown.question.id)) plannerOpen.value = true;
  opened.add(shown.question.id);
  return undefined;
}

function leave() {
  close();
  goingOn.value = refusal.value = null;
  earlier.value = [];
  opened.clear();
  if (shown) noticed(shown.thread, [shown.question]);
}

const WHO = {
  person: "was answered elsewhere",
  timer: "was not answered in time, so the timer decided",
  mode: "was dropped because the thread was switched to Auto",
};

/** Somebody else, another tab, the timer or a stop has ended it. */
async function tell(question) {
  const found = await get(`/api/reviews/${question.id}`).catch((error) => error);
  const said = found.by === "person" ? ` (“${told(found.answer)}”)` : "";
  elsewhere.value = `“${question.question}” ${WHO[found.by] ?? "is no longer open"}${said}.`;
  if (!plannerOpen.value || open.value.length) return;
  say(elsewhere.value);
  close();
}

const DECIDED = { approve: "approved", modify: "approved with changes", skip: "skipped", reject: "rejected" };
const told = (given) => given?.text ?? DECIDED[given?.decision] ?? "";

// -- continuing ---------------------------------------------------------------------------------------------

effect(() => {
  const going = goingOn.value;
  if (!going) return;
  const news = events.value.filter((event) => event.seq > going.after);
  const moved = news.some((event) => event.kind === "enter" && !isPreparing(event.stage));
  if (moved || ["done", "failed", "cancelled"].includes(status.value)) untracked(finish);
});

const isPreparing = (stage) => PREPARING.includes(stage) || stage.startsWith("approve_");

function finish() {
  const taken = status.value === "running" ? "Your answer was received. The research continues." : "Your answer was received.";
  if (plannerOpen.value) say(elsewhere.value || taken);
  goingOn.value = null;
  close();
}

// -- before -----------------------------------------------------------------------------------------------

const known = new Map(); // of questions that were answered, which never changes

effect(() => {
  const asked = events.value.filter((event) => event.kind === "interrupt" && !event.data.kind.startsWith("approve_"));
  const list = asked.map((event) => event.data).filter((one) => !open.value.some((other) => other.id === one.id));
  untracked(() => recall(list));
});

async function recall(list) {
  const ids = list.map((one) => one.id);
  if (ids.join() === earlier.value.map((one) => one.id).join()) return;
  await Promise.all(ids.filter((id) => !known.has(id)).map(look));
  earlier.value = list.filter((one) => known.has(one.id)).map((one) => ({ ...one, text: known.get(one.id) }));
}

async function look(id) {
  const found = await get(`/api/reviews/${id}`).catch((error) => error);
  if (found.answered) known.set(id, found.answer?.text ?? "left open");
}
