// The status of the run: what it is doing, for how long, what it has cost, and how to stop or resume it.
import { post } from "../core/api.js";
import { computed, html, useEffect, useState } from "../core/html.js";
import {
  attempt, events, isReady, queued, questions, reopen, run, spend, stages, status, thread,
} from "../core/store.js";
import { count, seconds, STATUSES, usd } from "../core/words.js";
import { PlannerButton } from "../plan/planner.js";

const WORK = {
  prepare: "reading your documents", withdraw: "removing sources", understand: "understanding the question",
  clarify: "asking for clarification", gate: "weighing the question", question: "asking you", plan: "planning",
  approve_plan: "waiting for you to approve the plan",
  dispatch: "choosing what to search for", search: "searching", fuse: "sorting what was found",
  approve_harvest: "waiting for you to approve the pages", harvest: "reading pages",
  select: "choosing passages", read: "looking for evidence",
  consolidate: "comparing sources", analyse: "weighing the evidence", verify: "checking statements",
  approve_claims: "waiting for you to approve the claims", write: "writing", review: "reviewing",
  approve_review: "waiting for you to approve the review",
  approve_output: "waiting for you to approve the report", publish: "publishing", fallback: "saving what was found",
};
const PHASES = [
  { label: "Planning", of: ["pending", "planning"] },
  { label: "Searching", of: ["searching"] },
  { label: "Analysing", of: ["analyzing"] },
  { label: "Writing", of: ["writing", "revising"] },
  { label: "Reviewing", of: ["reviewing", "completed"] },
];
const COLOURS = { running: "blue", queued: "blue", waiting: "orange", failed: "red", cancelled: "orange", done: "green" };

const working = computed(() => [...stages.value].filter(([, state]) => state === "working").map(([name]) => name));
const phase = computed(() => {
  const last = events.value.findLast((event) => event.kind === "enter");
  const name = last?.stage === "publish" ? "completed" : (last?.data.status ?? "pending");
  return Math.max(0, PHASES.findIndex((one) => one.of.includes(name)));
});
const done = computed(() => {
  const found = { searches: 0, pages: 0, findings: 0 };
  for (const { kind, stage, data } of events.value) {
    if (kind === "search" && stage === "search") found.searches += 1;
    else if (kind === "read" && stage === "harvest") found.pages += 1;
    else if (kind === "finding") found.findings += data.findings ?? 0;
  }
  return found;
});

export function Status() {
  if (!run.value || isReady.value) return null;
  return html`<div class="status">
    <p class="row" role="status">
      <span class="chip ${COLOURS[status.value] ?? ""}">${STATUSES[status.value] ?? status.value}</span><span>${now()}</span></p>
    <p class="row note"><${Elapsed} /><${Money} /><span>${run.value.depth}</span></p>
    <${PlannerButton} /><${Acts} />
  </div>`;
}

function now() {
  if (status.value === "queued") return `${queued.value ? `Number ${queued.value} in the queue. ` : ""}It starts by itself.`;
  if (status.value === "waiting") return questions.value[0]?.question ?? "The run continues when you have answered.";
  if (status.value === "running") return sentence(working.value.map((name) => WORK[name] ?? name).join(", ") || "starting");
  if (status.value === "cancelled") return "The run was stopped. What was found is kept; you can resume it at any time.";
  if (status.value === "failed") return run.value.error || "The run failed. What was found is kept; you can try to resume it.";
  return "";
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function Elapsed() {
  const [, tick] = useState(0);
  const { started, finished } = run.value;
  const isOver = ["done", "failed", "cancelled"].includes(status.value);
  useEffect(() => {
    const timer = isOver ? 0 : setInterval(() => tick((n) => n + 1), 1_000);
    return () => clearInterval(timer);
  }, [isOver]);
  const last = events.value.at(-1)?.time;
  const end = isOver ? new Date(finished ?? last ?? started) : Date.now();
  const past = Math.max(0, (end - new Date(started)) / 1000);
  return html`<span>${past < 60 ? `${Math.round(past)} s` : seconds(past)}</span>`;
}

function Money() {
  const last = spend.value.at(-1)?.data;
  if (last) return html`<span>${usd(last.total_usd)}${last.cap_usd ? ` of at most ${usd(last.cap_usd)}` : ""}</span>`;
  return html`<span>${usd(status.value === "done" ? thread.value?.usd : 0)} spent</span>`;
}

function Acts() {
  const [isAsked, setAsked] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const api = `/api/threads/${thread.value?.id}`;
  const once = async (work, done) => {
    setBusy(true);
    await attempt(work, done);
    setBusy(false);
  };
  const stop = async (drain) => {
    await once(() => post(`${api}/cancel`, { drain }), drain ? "The run will stop after this step." : "Stopped.");
    setAsked(false);
  };
  const goOn = () => once(async () => {
    await post(`${api}/resume`, {});
    await reopen();
  });
  if (["cancelled", "failed"].includes(status.value)) {
    return html`<p><button type="button" class="first-choice" disabled=${isBusy} onClick=${goOn}>Resume</button></p>`;
  }
  if (!["queued", "running", "waiting"].includes(status.value)) return null;
  return html`<p class="row" role="group" aria-label="Stop the research">
    ${!isAsked
      ? html`<button type="button" class="small" onClick=${() => setAsked(true)}>Stop</button>`
      : html`<button type="button" class="small danger" disabled=${isBusy} onClick=${() => stop(false)}>Stop now</button>
          <button type="button" class="small" disabled=${isBusy} onClick=${() => stop(true)}>After this step</button>
          <button type="button" class="small plain" onClick=${() => setAsked(false)}>Keep going</button>`}
  </p>`;
}

/** The way to the report, with the step it is at. */
export function Stepper() {
  const { searches, pages, findings } = done.value;
  const read = pages ? [`${count(pages, "page")} read`] : [];
  const sofar = [count(searches, "search", "searches"), ...read, count(findings, "finding")];
  return html`<div class="progress">
    <ol class="stepper" aria-label="Steps to the report">${PHASES.map(
      (one, at) => html`<${Step} key=${one.label} label=${one.label} by=${at - phase.value} />`,
    )}</ol>
    <p class="note">${sofar.join(" · ")}</p>
  </div>`;
}

function Step({ label, by }) {
  if (!by) return html`<li class="current" aria-current="step">${label}</li>`;
  return by < 0 ? html`<li class="past">${label}<span class="unseen">, done</span></li>` : html`<li>${label}</li>`;
}
