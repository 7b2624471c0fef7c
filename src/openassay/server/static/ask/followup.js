// At the foot of an answer: asking on, on the same thread.
import { patch } from "../core/api.js";
import { computed, html, useState } from "../core/html.js";
import { Choice, Wrong } from "../core/parts.js";
import { threadId, turn } from "../core/place.js";
import { attempt, moment, refresh, reopen, run, runs, status, thread } from "../core/store.js";
import { Box, room } from "./box.js";
import { may } from "../shell/account.js";
import { depths, MODES, modes, offered } from "./choices.js";
import { ask, refusal } from "./sending.js";
import { Stopping } from "./stopping.js";

const kept = (id) => `openassay.followup.${id}`; // what is written on each thread, until it is asked

const WORDS = {
  queued: "The run is queued. You can ask a follow-up when it has finished.",
  running: "The run is in progress. You can ask a follow-up when it has finished.",
  waiting: "The run is waiting for your answer. You can ask a follow-up when it has finished.",
};

/** The status of the last question, whichever is viewed: a thread has one active run. Null: no run is active. */
const standing = computed(() => {
  const last = runs.value.at(-1);
  const now = run.value?.id === last?.id ? status.value : last?.status;
  return now in WORDS ? now : null;
});

/** Nothing for readers: those who have only a link, for whom the thread is just a title, or a read-only token. */
export function FollowUp() {
  return thread.value?.created && may("write") ? html`<${Form} key=${thread.value.id} id=${thread.value.id} />` : null;
}

function Form({ id }) {
  const [goal, setGoal] = useState(sessionStorage.getItem(kept(id)) ?? "");
  const [depth, setDepth] = useState(null);
  const [wrong, setWrong] = useState(null);
  const [busy, setBusy] = useState(false);
  const write = (text) => (sessionStorage.setItem(kept(id), text), setGoal(text), setWrong(null));
  const held = standing.value !== null;
  const cannot = held || !goal.trim() || room(goal) < 0;
  const chosen = depth ?? runs.value.at(-1)?.depth ?? offered().defaults.depth;
  const submit = async (event) => {
    event?.preventDefault();
    if (busy || cannot) return;
    setBusy(true);
    setWrong(null);
    await asked(id, goal.trim(), chosen).then(() => write(""), (error) => setWrong(refusal(error)));
    setBusy(false);
  };
  return html`<form class="follow-up" aria-label="Follow-up" novalidate onSubmit=${submit}>
    <h2>Ask a follow-up</h2>
    ${held && html`<${AtWork} id=${id} />`}
    ${moment.value && html`<p class="note">You are viewing an earlier moment. A follow-up continues from the current state.</p>`}
    <div class="question">
      <${Box} id="follow-up" label="Your follow-up" placeholder="Ask a follow-up. It builds on what is in this thread." rows=${2}
        value=${goal} disabled=${held} wrong=${Boolean(wrong)} onInput=${write} onAsk=${submit} />
      ${wrong && html`<${Wrong} problem=${wrong} />`}
      <div class="foot">
        <${Choice} label="Depth of the follow-up" value=${chosen} choices=${depths()} disabled=${held}
          onChange=${setDepth} />
        <button type="submit" class="first-choice" disabled=${cannot}>${busy ? "Asking …" : "Ask"}</button>
      </div>
    </div>
    <${ModeOfThread} id=${id} />
  </form>`;
}

/** On "auto" a follow-up is about the documents, and searches the places, that the thread started with. */
async function asked(id, goal, depth) {
  const approvePlan = (thread.value.mode ?? offered().defaults.mode) === "plan";
  await ask({ goal, depth, source: "auto", threadId: id, approvePlan });
  if (threadId.value !== id) return; // somewhere else by now
  turn({ run: null, at: null });
  reopen();
}

function AtWork({ id }) {
  return html`<div class="at-work row apart"><p role="status">${WORDS[standing.value]}</p><${Stopping} id=${id} /></div>`;
}

/** Takes effect immediately, also on the active run. */
function ModeOfThread({ id }) {
  const mode = thread.value.mode ?? offered().defaults.mode;
  const choose = async (name) => {
    if (name === mode) return;
    const before = thread.value;
    thread.value = { ...before, mode: name };
    const done = await attempt(() => patch(`/api/threads/${id}/mode`, { mode: name }));
    if (!done && thread.value?.id === id) thread.value = { ...thread.value, mode: before.mode };
    await refresh();
  };
  return html`<div class="mode">
    <${Choice} label="Mode of this thread" value=${mode} choices=${modes()} onChange=${choose} />
    <p class="note" role="status">${MODES[mode]} Applies from now on.</p>
  </div>`;
}
