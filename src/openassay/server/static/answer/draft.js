// What there is of a report before it is one: while it is written, and as it stood at a moment of the past.
import { get, Problem } from "../core/api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../core/html.js";
import { Empty } from "../core/parts.js";
import { threadId, turn } from "../core/place.js";
import { draft, moment, sections } from "../core/store.js";
import { count, cut, time } from "../core/words.js";
import { Reader } from "./reader.js";
import { Prose } from "./section.js";

const NEAR = 40; // px from the end within which one follows what is written
const TAIL = 1_500; // characters shown of what a model writes

export function LiveDraft() {
  const { text } = draft.value;
  const end = useFollowing(draft.value);
  const last = sections.value.at(-1);
  return html`<section class="live" aria-label="The draft so far">
    <p class="unseen" role="status">${last ? `Section ${sections.value.length} is ready: ${last.title}` : "Writing has started."}</p>
    <p class="banner note"><strong>Draft.</strong> Each section appears once its statements have been checked; the review may
      still change it.</p>
    <${Drafted} />
    ${text &&
    html`<div class="writing"><p class="note">Being written; not checked yet</p>
      <p class="text" dir="auto">${text.length > TAIL ? `… ${text.slice(-TAIL)}` : text}</p></div>`}
    <span ref=${end}></span>
  </section>`;
}

/** Stays at the end if the reader has scrolled there; otherwise the page does not move. */
function useFollowing(changed) {
  const end = useRef();
  const follows = useRef(false);
  useEffect(() => {
    const main = document.getElementById("main");
    const scroller = () => (main.scrollHeight > main.clientHeight + 1 ? main : document.scrollingElement);
    const look = () => {
      const one = scroller();
      follows.current = one.scrollTop > 0 && one.scrollHeight - one.scrollTop - one.clientHeight < NEAR;
    };
    document.addEventListener("scroll", look, true);
    return () => document.removeEventListener("scroll", look, true);
  }, []);
  useLayoutEffect(() => {
    if (follows.current) end.current.scrollIntoView({ block: "end" });
  }, [changed]);
  return end;
}

function Drafted() {
  const find = (name) => {
    const [section, at] = name.split("-");
    return sections.value[section]?.sentences[at];
  };
  return html`<${Reader} find=${find}>${sections.value.map(
    (section, at) => html`<section class="section" key=${section.title}>
      ${section.title && html`<h2 dir="auto">${section.title}</h2>`}
      <${Prose} sentences=${section.sentences} at=${at} /></section>`,
  )}</${Reader}>`;
}

// -- the past ---------------------------------------------------------------------------------------------

export function PastDraft() {
  return html`<${Banner} /><${Past} values=${moment.value.values} />`;
}

function Past({ values: { draft: made, plan, evidence } }) {
  if (made?.sections?.length) return html`<${Drafted} />`;
  if (made?.text) return html`<p class="text plain-draft" dir="auto">${made.text}</p>`;
  const planned = plan ? `${count(plan.dag.length, "sub-question")} planned` : "no plan yet";
  return html`<${Empty} title="Nothing had been written at that moment.">
    <p>${planned}, ${count(evidence.length, "document")} available. The other panes show both.</p></${Empty}>`;
}

function Banner() {
  const known = useMoment(moment.value.checkpointId);
  const where = known ? ` at moment ${known.number}, ${time(known.time)}` : " at an earlier moment";
  return html`<div class="banner past row apart" role="status">
    <p><strong>This is the answer as it was${where}.</strong>
      ${known?.summary && html` <span class="note" dir="auto">${cut(known.summary, 160)}</span>`}</p>
    <button type="button" class="small" onClick=${() => turn({ at: null })}>Back to now</button>
  </div>`;
}

/** Its number and time, which the state does not tell. */
function useMoment(checkpoint) {
  const [moments, setMoments] = useState([]);
  const known = moments.find((one) => one.checkpoint === checkpoint);
  useEffect(() => {
    if (known) return;
    get(`/api/threads/${threadId.value}/history`, { limit: 500 }).then(
      (told) => setMoments(told.moments),
      (problem) => problem instanceof Problem || Promise.reject(problem),
    );
  }, [checkpoint]);
  return known;
}
