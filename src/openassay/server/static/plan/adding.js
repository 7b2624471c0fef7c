// One sub-question more.
import { html, useState } from "../core/html.js";
import { asking, heading, LONGEST_TEXT, LONGEST_TITLE, MOST_QUESTIONS, nameable } from "./edits.js";

const OWN = "\u0000own";
const NEW = "\u0000new";
const UNADDED = "This sub-question is not in the plan yet. Add it, or clear the field.";

export function AddQuestion({ editor }) {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(OWN);
  const [title, setTitle] = useState("");
  const isFull = editor.plan.questions.length >= MOST_QUESTIONS;
  const wrong = editor.refused("add");
  const named = () => (place === OWN ? {} : { section: heading(place === NEW ? title : place) });
  const add = (event) => {
    event.preventDefault();
    const edit = () => ({ op: "add", text: asking(text), ...named() });
    if (!editor.change(edit, "add", `Added: ${text}`)) return;
    setText("");
    setTitle("");
    setPlace(OWN);
  };
  if (isFull) {
    return html`<p class="note">A plan can have at most ${MOST_QUESTIONS} sub-questions. Remove one to add another.</p>`;
  }
  return html`<form class="add-question" novalidate onSubmit=${add}>
    <div class="row"><input type="text" aria-label="New sub-question" placeholder="Add a sub-question" dir="auto"
        maxlength=${LONGEST_TEXT} value=${text} aria-invalid=${wrong ? "true" : undefined}
        ref=${(node) => node?.setCustomValidity(text.trim() ? wrong || UNADDED : "")}
        onInput=${(event) => setText(event.currentTarget.value)} />
      <button type="submit" disabled=${!text.trim()}>Add</button></div>
    ${text.trim() &&
    html`<${Where} editor=${editor} place=${place} setPlace=${setPlace} title=${title} setTitle=${setTitle} />`}
    ${wrong && html`<p class="refused" role="alert">${wrong}</p>`}
  </form>`;
}

function Where({ editor, place, setPlace, title, setTitle }) {
  return html`<div class="row where">
    <select aria-label="Add to section" value=${place} onChange=${(event) => setPlace(event.currentTarget.value)}>
      <option value=${OWN}>In a section of its own</option>
      ${nameable(editor.plan).map((one) => html`<option value=${one}>Under: ${one}</option>`)}
      <option value=${NEW}>In a new section …</option>
    </select>
    ${place === NEW &&
    html`<input type="text" aria-label="New section title" placeholder="Title of the section"
      maxlength=${LONGEST_TITLE} value=${title} onInput=${(event) => setTitle(event.currentTarget.value)} />`}
  </div>`;
}
