// Taking a source out: first what would change, then the doing of it.
import { get, onceOnly, post } from "../core/api.js";
import { html, signal, useEffect, useState } from "../core/html.js";
import { Busy, Dialog, Many, Outward, Wrong } from "../core/parts.js";
import { threadId, turn } from "../core/place.js";
import { attempt, claims, reopen, shelf } from "../core/store.js";
import { count, number } from "../core/words.js";

export const vetoing = signal(null); // the card somebody thinks of taking out
export const leaving = signal(new Set()); // documents whose veto is being carried out

export function VetoDialog() {
  const card = vetoing.value;
  return card && html`<${Asked} key=${card.key} card=${card} />`;
}

const addressOf = (card, what) => `/api/threads/${threadId.value}/sources/${card.document}/${what}`;
const close = () => (vetoing.value = null);

function Asked({ card }) {
  const [losses, setLosses] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const ask = () => (setProblem(null), get(addressOf(card, "consequences")).then(setLosses, setProblem));
  useEffect(() => void ask(), []);
  const confirm = async () => {
    setBusy(true);
    await carriedOut(card);
    setBusy(false);
  };
  return html`<${Dialog} title="Veto ${card.id}?" kind="veto" onClose=${close}>
    <p dir="auto"><strong>${card.title}</strong></p>
    ${problem && html`<${Wrong} problem=${problem} again=${ask} />`}
    ${losses && html`<${Losses} losses=${losses} />`}
    ${!problem && !losses && html`<${Busy}>Checking what rests on it …<//>`}
    <p class="note">A veto is permanent: this thread and its later questions will not use the source. Only what rested on
      it is redone. To get the source back, fork from an earlier moment.</p>
    <div class="row">
      <button type="button" class="danger" disabled=${!losses || busy} onClick=${confirm}>Remove ${card.id}</button>
      <button type="button" onClick=${close}>Keep it</button>
    </div>
  <//>`;
}

async function carriedOut(card) {
  const done = `${card.id} is being removed. What rested on it is being redone.`;
  const begun = await attempt(() => post(addressOf(card, "veto"), undefined, { headers: onceOnly() }), done);
  if (!begun) return;
  leaving.value = new Set(leaving.value).add(card.document);
  close();
  turn({ panel: "sources", run: null, at: null });
  await reopen();
}

function Losses({ losses: { lost, weaker, sentences, unanswered, untouched } }) {
  const texts = [...new Set(sentences)];
  return html`<div class="losses stack" role="status">
    <p class="sum">${summed(lost.length, weaker.length, untouched)}</p>
    <${Listed} title="Would be removed: nothing else supports them" items=${lost.map(worded)} open />
    <${Listed} title="Would become weaker: other sources remain" items=${weaker.map(worded)} />
    <${Listed} title="Questions left without an answer" items=${unanswered} open />
    <${Listed} title="Sentences of the report that are affected" items=${texts} />
  </div>`;
}

/** "3 statements would go, 2 become weaker, 7 stay." */
function summed(lost, weaker, untouched) {
  if (!lost && !weaker) return "No statement rests on it; the report would not change.";
  const parts = [lost && `${count(lost, "statement")} would be removed`, weaker && `${number(weaker)} would become weaker`];
  return `${parts.filter(Boolean).join(", ")}, ${number(untouched)} would stay.`;
}

const worded = (id) => (claims.value.has(id) ? `${id}: ${claims.value.get(id).text}` : id);

function Listed({ title, items, open = false }) {
  if (!items.length) return null;
  return html`<details open=${open}><summary>${title} <span class="count">${items.length}</span></summary>
    <${Many} items=${items} first=${30} each=${(text) => html`<li key=${text} dir="auto">${text}</li>`} /></details>`;
}

/** What the thread does without. */
export function Vetoed() {
  const gone = shelf.value.vetoed;
  if (!gone.length) return null;
  return html`<section class="vetoed" aria-labelledby="vetoed">
    <h3 id="vetoed">Vetoed <span class="count">${gone.length}</span></h3>
    <p class="note">This thread does not use them, not even for later questions.</p>
    <${Many} items=${gone} each=${(one) =>
      html`<li key=${one.document} dir="auto"><${Outward} url=${one.url}>${one.title || one.url}<//></li>`} />
  </section>`;
}
