// Where a question is asked.
import { html, useEffect, useState } from "../core/html.js";
import { Empty, Wrong } from "../core/parts.js";
import { go } from "../core/place.js";
import { number } from "../core/words.js";
import { may } from "../shell/account.js";
import { Box, room } from "./box.js";
import { learn, offered, unknown } from "./choices.js";
import { AddFiles, Beside, Chosen, DropZone } from "./documents.js";
import { blank, change, draft, wishes } from "./draft.js";
import { Examples } from "./examples.js";
import { Library } from "./library.js";
import { Main, More } from "./options.js";
import { Places } from "./places.js";
import { Quote } from "./quote.js";
import { ask, refusal } from "./sending.js";
import { forget, isSending } from "./uploads.js";

export function AskScreen() {
  return may("write") ? html`<${Form} />` : html`<${Reader} />`;
}

function Reader() {
  return html`<${Empty} title="Your token lets you read, but not ask.">
    <p>Choose one of your threads, or ask the administrator of this server for a token with write access.</p></${Empty}>`;
}

function Form() {
  const [wrong, setWrong] = useState(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => setWrong(null), [draft.value]); // it was said of what was there before
  const submit = async (event) => {
    event?.preventDefault();
    if (busy) return;
    const hindered = hindrance();
    setWrong(hindered);
    if (hindered) return focusBox();
    setBusy(true);
    await asked().catch((error) => (setWrong(refusal(error)), focusBox()));
    setBusy(false);
  };
  return html`<form class="ask" novalidate onSubmit=${submit}>
    <header><h1>What do you want to know?</h1>
      <p>OpenAssay searches, reads and writes a report in which every statement shows the passage it rests on.</p></header>
    <${Question} wrong=${wrong} busy=${busy} onAsk=${submit} />
    ${!draft.value.goal.trim() && !draft.value.documents.length && html`<${Examples} />`}
    ${unknown.value && html`<${Wrong} problem=${unknown.value} again=${learn} />`}
    <${Main} />
    <div class="folds"><${Places} /><${Library} /><${More} /></div>
    <${DropZone} />
  </form>`;
}

function Question({ wrong, busy, onAsk }) {
  const given = draft.value;
  return html`<div class="question">
    <${Box} id="question" label="Your question" first
      placeholder="Ask a question, or drop documents here and ask about them."
      value=${given.goal} wrong=${Boolean(wrong)} onInput=${(goal) => change({ goal })} onAsk=${onAsk} />
    <${Chosen} />
    <${Beside} />
    ${wrong && html`<${Wrong} problem=${wrong} />`}
    <div class="foot">
      <${AddFiles} />
      <${Quote} given=${given} />
      <button type="submit" class="first-choice" aria-disabled=${String(busy)}>${busy ? "Asking …" : "Ask"}</button>
    </div>
  </div>
  <p class="note keys">Press <kbd>Enter</kbd> to ask, <kbd>Shift</kbd> <kbd>Enter</kbd> for a new line.</p>`;
}

const focusBox = () => document.getElementById("question")?.focus();

/** What need not be sent to be refused. */
function hindrance() {
  const { goal } = draft.value;
  const refused = (message, help) => ({ message, help });
  if (!goal.trim()) return refused("Write a question first.");
  if (room(goal) < 0) {
    const most = `A question can have at most ${number(offered().longestQuestion)} characters.`;
    return refused(most, "Shorten it, or move background information to “More options”.");
  }
  return isSending() ? refused("A document is still being uploaded.", "Wait until it has finished, or remove the document.") : null;
}

async function asked() {
  const { mode } = draft.value;
  const approvePlan = (mode ?? offered().defaults.mode) === "plan";
  const { threadId } = await ask({ ...wishes(draft.value), ...(mode && { modeOverride: mode }), approvePlan });
  blank();
  forget();
  go({ thread: threadId });
}
