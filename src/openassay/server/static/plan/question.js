// A question in words: options to choose from, or an answer of one's own.
import { html } from "../core/html.js";
import { answer, earlier, refusal, sending, skipAll } from "./answering.js";
import { Body } from "./body.js";
import { useUnsent } from "./unsent.js";

const CUSTOM = "Custom"; // stands for an answer of one's own, and is none itself
const LONGEST = 2000; // characters
const ANY = "any"; // leaves a planning question to defaults

export function Question({ question }) {
  const [chosen, choose] = useUnsent(question.id, "chosen", question.options.length ? "" : CUSTOM);
  const [own, setOwn] = useUnsent(question.id, "own", "");
  const hasOptions = question.options.length > 0;
  const isOwn = chosen === CUSTOM;
  const value = isOwn ? own.trim() : chosen;
  const problem = refusal.value?.question === question.id ? refusal.value.problem : null;
  const submit = (event) => {
    event.preventDefault();
    if (value && !sending.value) answer(question, value);
  };
  return html`<form class="ask-one" onSubmit=${submit}>
    <${Body} question=${question}>
      <${Earlier} />
      <${Progress} question=${question} />
      <fieldset aria-describedby=${problem && !isOwn ? "refused" : undefined}>
        <legend data-first=${hasOptions || undefined} tabindex="-1" dir="auto">${question.question}</legend>
        ${hasOptions && html`<${Options} question=${question} chosen=${chosen} choose=${choose} />`}
        ${isOwn && html`<${Own} question=${question} value=${own} onInput=${setOwn} isWrong=${Boolean(problem)} />`}
      </fieldset>
      ${problem &&
      html`<p class="refused" id="refused" role="alert"><strong>${problem.message}.</strong> ${problem.help}</p>`}
    </${Body}>
    <${Actions} question=${question} value=${value} />
  </form>`;
}

/** What was said before, so that one need not remember it. */
function Earlier() {
  if (!earlier.value.length) return null;
  return html`<section class="earlier" aria-label="Your answers so far">
    <dl>${earlier.value.map(
      (one) => html`<div key=${one.id}><dt dir="auto">${one.question}</dt><dd dir="auto">${one.text}</dd></div>`,
    )}</dl>
  </section>`;
}

function Progress({ question }) {
  const { number, of } = question.shown;
  if (!of || of < 2) return null;
  return html`<p class="progress-line"><span>Question ${number} of ${of}</span>
    <progress value=${number} max=${of} aria-label="Questions"></progress></p>`;
}

function Options({ question, chosen, choose }) {
  const all = [...question.options.filter((one) => one !== CUSTOM), CUSTOM];
  return html`<div class="options">
    ${all.map(
      (one) => html`<label key=${one} class=${one === chosen ? "chosen" : ""}>
        <input type="radio" name="option" value=${one} checked=${one === chosen} onChange=${() => choose(one)} />
        <span dir="auto">${one === CUSTOM ? html`${CUSTOM} <small>in your own words</small>` : one}</span>
      </label>`,
    )}
  </div>`;
}

function Own({ question, value, onInput, isWrong }) {
  return html`<label class="field own"><span>Your answer</span>
    <textarea rows="3" maxlength=${LONGEST} dir="auto" value=${value}
      data-first=${!question.options.length || undefined} aria-invalid=${isWrong ? "true" : undefined}
      aria-describedby=${isWrong ? "refused" : undefined}
      onInput=${(event) => onInput(event.currentTarget.value)} onKeyDown=${sent}></textarea></label>`;
}

/** Enter writes a line; with Ctrl or ⌘ it sends. */
function sent(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form.requestSubmit();
}

function Actions({ question, value }) {
  const busy = sending.value;
  const isPlanning = question.kind === "planning";
  return html`<footer class="decide row">
    <button type="submit" class="first-choice" disabled=${!value || busy}>
      ${isLast(question) ? "Answer" : "Answer and continue"}</button>
    ${isPlanning &&
    html`<button type="button" disabled=${busy} onClick=${() => answer(question, ANY)}
      title="Uses the default">No preference</button>
      <button type="button" class="plain" disabled=${busy} onClick=${() => skipAll(question)}
        title="Switches this thread to Auto; the remaining questions use the defaults">Skip the questions</button>`}
  </footer>`;
}

const isLast = ({ shown }) => !shown.of || shown.number >= shown.of;
