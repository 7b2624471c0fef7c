// How every approval ends: approve, as it is or with changes, skip, or reject; and a word on it.
import { html, useEffect, useRef, useState } from "../core/html.js";
import { answer, refusal, sending } from "./answering.js";
import { useUnsent } from "./unsent.js";

const LONGEST = 2000; // characters of a comment
const ACTS = ["input", "keyup", "click", "focusout"]; // after which something may be put right

/** `changes`: what is to be done otherwise, or null. `changed`: how approving that is called. */
export function Decisions({ question, changes, changed = "Approve with my changes" }) {
  const [comment, setComment] = useUnsent(question.id, "comment", "");
  const [isRejecting, setRejecting] = useState(false);
  useEffect(() => (refusal.value = null) ?? undefined, [JSON.stringify(changes)]); // it was about other changes
  const word = comment.trim() ? { comment: comment.trim() } : {};
  const decide = (decision, more = {}) => answer(question, { decision, ...word, ...more });
  const foot = useRef();
  const [unsettled, stopped] = useUnsettled(foot);
  const approve = () => stopped() || (changes ? decide("modify", changes) : decide("approve"));
  return html`<footer class="decide" ref=${foot}>
    <${Refusal} question=${question} />
    ${unsettled &&
    html`<p class="refused" role="alert">
      <strong>Not sent yet. Check “${unsettled.name}”:</strong> ${unsettled.why}</p>`}
    <${Comment} value=${comment} onInput=${setComment} isOpen=${isRejecting} />
    ${isRejecting
      ? html`<${Rejecting} onYes=${() => decide("reject")} onNo=${() => setRejecting(false)} />`
      : html`<${Buttons} question=${question} changes=${changes} changed=${changed} decide=${decide} approve=${approve}
          onReject=${() => setRejecting(true)} />`}
  </footer>`;
}

/** [{field, name, why}, stopped]: a field above whose text was not taken, which a person may not have seen. */
function useUnsettled(foot) {
  const [unsettled, setUnsettled] = useState(null);
  const stopped = () => {
    const field = foot.current.parentElement.querySelector(":is(input, textarea):invalid");
    const name = field?.ariaLabel ?? field?.labels[0].firstElementChild.textContent;
    setUnsettled(field && { field, name, why: field.validationMessage });
    field?.focus();
    return Boolean(field);
  };
  useEffect(() => {
    if (!unsettled) return undefined;
    const box = foot.current.parentElement;
    const isSettled = () => !box.contains(unsettled.field) || unsettled.field.validity.valid;
    const again = () => setTimeout(() => isSettled() && setUnsettled(null)); // once it is drawn
    ACTS.forEach((act) => box.addEventListener(act, again));
    return () => ACTS.forEach((act) => box.removeEventListener(act, again));
  }, [unsettled]);
  return [unsettled, stopped];
}

function Refusal({ question }) {
  const problem = refusal.value?.question === question.id ? refusal.value.problem : null;
  return problem && html`<p class="refused" role="alert"><strong>${problem.message}.</strong> ${problem.help}</p>`;
}

function Comment({ value, onInput, isOpen }) {
  return html`<details class="comment" open=${isOpen || Boolean(value)}>
    <summary>${isOpen ? "Why?" : "Add a comment"}</summary>
    <textarea rows="2" aria-label="Comment" maxlength=${LONGEST} dir="auto" value=${value}
      onInput=${(event) => onInput(event.currentTarget.value)}></textarea>
  </details>`;
}

function Buttons({ question, changes, changed, decide, approve, onReject }) {
  const may = (decision) => question.options.includes(decision);
  const busy = sending.value;
  return html`<div class="row">
    <button type="button" class="first-choice" disabled=${busy} onClick=${approve}>
      ${changes ? changed : "Approve"}</button>
    ${may("skip") &&
    html`<button type="button" disabled=${busy} onClick=${() => decide("skip")}
      title="Continue without a decision">${changes ? "Skip, without my changes" : "Skip"}</button>`}
    ${may("reject") &&
    html`<button type="button" class="danger end" disabled=${busy} onClick=${onReject}>Reject …</button>`}
  </div>`;
}

function Rejecting({ onYes, onNo }) {
  return html`<div class="rejecting" role="group" aria-label="Reject">
    <p>The research ends here, with what has been found. A comment is included in the report.</p>
    <div class="row">
      <button type="button" class="danger" disabled=${sending.value} onClick=${onYes}>Reject and end</button>
      <button type="button" ref=${(node) => node?.focus()} onClick=${onNo}>Do not reject</button>
    </div>
  </div>`;
}
