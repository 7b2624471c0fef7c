// The middle of the page: the question, its status, and the answer so far.
import { computed, html, useEffect, useRef } from "../core/html.js";
import { Busy, Empty, Wrong } from "../core/parts.js";
import { place, turn } from "../core/place.js";
import {
  active, basis, focus, isEarlier, isReady, loading, moment, refresh, report, run, runs, showStatement, status, thread,
  trouble,
} from "../core/store.js";
import { ago, cut, STATUSES } from "../core/words.js";
import { FollowUp } from "../ask/followup.js";
import { LiveDraft, PastDraft } from "./draft.js";
import { Report } from "./report.js";
import { Status, Stepper } from "./status.js";
import { Verify } from "./verify.js";

/** The report is of another question than the one that is looked at. */
const isOlder = computed(() => {
  const made = report.value?.provenance.run;
  return Boolean(made && run.value && made !== run.value.id);
});

export function AnswerPane() {
  if (trouble.value && !thread.value) return html`<${Wrong} problem=${trouble.value} again=${refresh} />`;
  if (loading.value && !thread.value) return html`<${Busy}>Opening the thread …</${Busy}>`;
  if (!thread.value) return null;
  return html`<div class="answer-pane">
    <${Question} />
    <${Earlier} />
    ${active.value && !isReady.value && !moment.value && html`<${Stepper} />`}
    <${Body} />
    <${FollowUp} />
    <${Verify} />
  </div>`;
}

/** At a moment of the past that which was asked then. */
const asked = computed(() => moment.value?.values.user_inputs.goal || run.value?.question || "");

function Question() {
  const question = asked.value || thread.value.title;
  return html`<header class="asked">
    <h1 class=${question.length > 160 ? "long" : ""} dir="auto">${question}</h1>
    <${Status} />
  </header>`;
}

/** The questions of this thread, when there is more than one. */
function Earlier() {
  const list = useRef();
  const shown = moment.value ? runs.value.findLast((one) => one.question === asked.value) : run.value;
  useEffect(() => inSight(list.current), [shown?.id]);
  if (runs.value.length < 2) return null;
  return html`<nav class="turns" aria-label="Questions of this thread" ref=${list}><ol>${runs.value.map((one, at) => {
    const isShown = one.id === shown?.id;
    const isLast = at === runs.value.length - 1;
    const show = () => turn({ run: isLast ? null : one.id, at: null }, { keep: true });
    return html`<li key=${one.id}>
      <button type="button" class="plain" aria-current=${isShown ? "true" : undefined} onClick=${show}>
      <span class="n">${at + 1}</span><span class="grow" dir="auto" title=${one.question}>${cut(one.question, 120)}</span>
      <span class="note">${one.status === "done" ? ago(one.finished ?? one.started) : STATUSES[one.status]}</span>
      </button></li>`;
  })}</ol></nav>`;
}

/** The question that is shown, within the list alone: the page stays where it is. */
function inSight(list) {
  const one = list?.querySelector("[aria-current]");
  if (one) list.scrollTop = one.offsetTop - list.offsetTop - (list.clientHeight - one.offsetHeight) / 2;
}

function Body() {
  useLinked();
  if (basis.value === "moment") return html`<${PastDraft} />`;
  if (basis.value === "draft") return html`<${LiveDraft} />`;
  return basis.value === "report" ? html`<${OlderNote} /><${Report} />` : html`<${Nothing} />`;
}

/** A link may name the statement it is about. */
function useLinked() {
  const isThere = Boolean(report.value);
  useEffect(() => {
    if (isThere && place.value.statement && !focus.value.statement) showStatement(place.value.statement);
  }, [isThere]);
}

function OlderNote() {
  if (isOlder.value) {
    const before = runs.value.find((one) => one.id === report.value.provenance.run)?.question ?? report.value.question;
    const why = active.value ? "The new answer is not ready yet." : "There is no report on this question.";
    return html`<p class="banner note"><strong>${why}</strong> Below is the answer to the previous question,
      ${" "}“<span dir="auto">${cut(before, 160)}</span>”.</p>`;
  }
  if (isEarlier.value) {
    return html`<p class="banner note row apart">
      <span><strong>This is an earlier answer.</strong> The thread has continued since then.</span>
      <button type="button" class="small" onClick=${() => turn({ run: null }, { keep: true })}>Go to the latest</button></p>`;
  }
  return null;
}

const EMPTY = {
  queued: ["The run is queued.", "Nothing is lost if you close this page."],
  running: ["Nothing has been written yet.", "Sections appear here one by one, once their statements have been checked."],
  waiting: ["The run is waiting for your answer.", "The research continues as soon as you answer."],
  cancelled: ["The run was stopped before a report was written.", "Resume it, or ask again with other options."],
  failed: ["The run failed before a report was written.", "The log shows what happened. If you resume, it continues where it failed."],
  done: ["There is no report.", "The log shows what was done."],
};

function Nothing() {
  const [title, help] = EMPTY[status.value] ?? ["Nothing has been asked here yet.", "Write a question below."];
  return html`<${Empty} title=${title}><p>${help}</p></${Empty}>`;
}
