// A report before it is published: its title, its sections, what the review says, and wishes for another version.
import { html, useMemo } from "../core/html.js";
import { count } from "../core/words.js";
import { Body } from "./body.js";
import { Decisions } from "./decisions.js";
import { Critique, Issues, Shown } from "./shown.js";
import { useUnsent } from "./unsent.js";

const MOST_WISHES = 20;

export function DraftApproval({ question, mayChange }) {
  const { draft, critique, issues, ...rest } = question.shown;
  const [dropped, setDropped] = useUnsent(question.id, "dropped", []);
  const [title, setTitle] = useUnsent(question.id, "title", draft.title);
  const [wishes, setWishes] = useUnsent(question.id, "wishes", "");
  const fixes = wishes.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, MOST_WISHES);
  const isRenamed = title.trim() && title.trim() !== draft.title;
  const changes = {
    ...(dropped.length && { drop: dropped }),
    ...(isRenamed && { title: title.trim() }),
    ...(fixes.length && { fixes }),
  };
  const toggle = (name) =>
    setDropped(dropped.includes(name) ? dropped.filter((one) => one !== name) : [...dropped, name]);
  const each = (one) => html`<${DraftSection} key=${one.title} section=${one} isOut=${dropped.includes(one.title)}
    mayChange=${mayChange} toggle=${toggle} />`;
  const sections = useMemo(() => draft.sections.map(each), [dropped]); // it may have thousands of sentences
  return html`
    <${Body} question=${question}>
      ${critique && html`<${Critique} critique=${critique} />`}
      ${(issues ?? critique?.issues)?.length > 0 && html`<${Issues} issues=${issues ?? critique.issues} />`}
      <${Shown} shown=${rest} />
      <article class="draft">
        <label class="field"><span>Title</span><textarea rows="1" maxlength="200" dir="auto" value=${title}
          disabled=${!mayChange} onInput=${(event) => setTitle(event.currentTarget.value)}
          ref=${(node) => node?.setCustomValidity(title.trim() ? "" : "A report needs a title.")}></textarea></label>
        ${sections}
      </article>
      ${mayChange &&
      html`<label class="field">
        <span>What to change, one request per line. The draft is rewritten and comes back to you.</span>
        <textarea rows="3" dir="auto" placeholder="Give the year with every figure." value=${wishes}
          onInput=${(event) => setWishes(event.currentTarget.value)}></textarea></label>`}
    </${Body}>
    <${Decisions} question=${question} changes=${Object.keys(changes).length ? changes : null}
      changed=${fixes.length ? `Send back with ${count(fixes.length, "request")}` : undefined} />`;
}

function DraftSection({ section, isOut, mayChange, toggle }) {
  const { title, sentences } = section;
  return html`<section class=${isOut ? "out" : ""}>
    <div class="row apart"><h4 dir="auto">${title || "Untitled"}</h4>
      ${mayChange &&
      title &&
      html`<button type="button" class="small" aria-pressed=${isOut ? "true" : "false"}
        aria-label="Leave out: ${title}" onClick=${() => toggle(title)}>
        ${isOut ? "Left out" : "Leave out"}</button>`}</div>
    <p dir="auto">${sentences.map(sentence)}</p>
  </section>`;
}

const sentence = ({ text, claims }) =>
  html`<span>${text}${claims.length > 0 && html`<small> ${claims.join(", ")}</small>`} </span>`;
