// The drawer in which a run asks: questions one by one, the plan, and whatever else is to be approved.
import { html, useEffect, useRef } from "../core/html.js";
import { Busy, Dialog } from "../core/parts.js";
import { count } from "../core/words.js";
import { close, elsewhere, goingOn, open, plannerOpen } from "./answering.js";
import { Breakpoint } from "./breakpoint.js";
import { PlanApproval } from "./outline.js";
import { Question } from "./question.js";

export { plannerOpen } from "./answering.js";

const TITLES = {
  clarification: "Please clarify",
  planning: "Before the research",
  approve_plan: "The plan",
  approve_harvest: "Before reading",
  approve_claims: "What was found",
  approve_review: "The review",
  approve_output: "Before publishing",
};
const FORMS = { clarification: Question, planning: Question, approve_plan: PlanApproval };

export function Planner() {
  const question = open.value[0];
  if (!plannerOpen.value || !(question || goingOn.value)) return null;
  return html`<${Dialog} side kind="planner" title=${TITLES[question?.kind] ?? (question ? "A question" : "Continuing")}
    onClose=${close}>
    <${Told} />
    ${question ? html`<${Asked} key=${question.id} question=${question} />` : html`<${GoingOn} />`}
  </${Dialog}>`;
}

/** For wherever one looks while something waits. */
export function PlannerButton() {
  const waiting = open.value.length;
  if (!waiting) return null;
  return html`<button type="button" class="first-choice planner-button" aria-haspopup="dialog"
    onClick=${() => (plannerOpen.value = true)}>${count(waiting, "question")} for you</button>`;
}

function Told() {
  return html`<div role="status">${elsewhere.value && html`<p class="elsewhere">${elsewhere.value}</p>`}</div>`;
}

/** The focus goes along from question to question, so that it is read out and the keyboard stays where one is. The
 *  drawer opens after what is in it was made, and nothing that is closed takes the focus. */
function Asked({ question }) {
  const box = useRef();
  useEffect(() => queueMicrotask(() => box.current?.querySelector("[data-first]")?.focus()), []);
  const Form = FORMS[question.kind] ?? Breakpoint;
  return html`<div class="asked" ref=${box}><${Form} question=${question} /></div>`;
}

function GoingOn() {
  const box = useRef();
  useEffect(() => box.current.focus(), []);
  return html`<div class="going-on" ref=${box} tabindex="-1">
    <${Busy}>Continuing …</${Busy}>
    <p class="note">If there is another question, it appears here. You can close this; the research continues.</p>
  </div>`;
}
