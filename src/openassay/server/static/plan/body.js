// What is asked and what there is to decide by. It scrolls; how to decide stays below it.
import { html } from "../core/html.js";
import { run } from "../core/store.js";
import { Deadline } from "./deadline.js";

export function Body({ question, children }) {
  const isApproval = question.kind.startsWith("approve_");
  return html`<div class="body">
    <p class="about note" dir="auto">${run.value?.question}</p>
    <${Deadline} question=${question} />
    ${isApproval && html`<h3 data-first tabindex="-1" dir="auto">${question.question}</h3>`}
    ${isApproval &&
    !question.options.includes("modify") &&
    html`<p class="note">It has been sent back as often as possible. Approve, skip or reject it.</p>`}
    ${children}
  </div>`;
}
