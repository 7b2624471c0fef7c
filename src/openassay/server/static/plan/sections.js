// A section of the plan and its sub-questions, each of which can be reworded, moved and removed where it stands.
import { html, useEffect, useRef, useState } from "../core/html.js";
import { asking, heading, LONGEST_TITLE, nameable, shifted, shiftedSection } from "./edits.js";

const NEW = "\u0000new"; // no title can be this

export function Section({ group, editor, over, refocus }) {
  const rows = group.questions.map(
    (one) => html`<${Row} key=${one.id} group=${group} question=${one} editor=${editor} refocus=${refocus}
      over=${over?.id === one.id ? over : null} />`,
  );
  if (group.isLone) return rows;
  return html`<li class="section">
    <${Heading} group=${group} editor=${editor} refocus=${refocus} />
    ${rows.length ? html`<ol>${rows}</ol>` : html`<p class="note">No sub-questions.</p>`}
  </li>`;
}

function Heading({ group, editor, refocus }) {
  const id = `section ${group.title}`;
  const shift = (step) => {
    refocus(id, step < 0 ? "up" : "down");
    editor.change(shiftedSection(editor.plan, group.title, step), id, `Moved the section ${group.title}.`);
  };
  const rename = (text) =>
    editor.change(() => ({ op: "rename_section", title: group.title, name: heading(text) }), id, "Renamed.");
  const gone = () =>
    editor.change({ op: "remove_section", title: group.title }, id, "Removed the section.") && toUndo();
  return html`<div class="heading" data-row=${id}>
    <${Words} label="Title of the section" value=${group.title} commit=${rename} editor=${editor} at=${id} />
    <${Movers} shift=${shift} what="section" up=${shiftedSection(editor.plan, group.title, -1)}
      down=${shiftedSection(editor.plan, group.title, 1)} />
    <${Remove} what="section" onClick=${gone} />
  </div>`;
}

function Row({ group, question, editor, over, refocus }) {
  const { id, number } = question;
  const shift = (step) => {
    refocus(id, step < 0 ? "up" : "down");
    const told = `Moved ${step < 0 ? "up" : "down"}: ${question.text}`;
    editor.change(shifted(editor.plan, group, question, step), id, told);
  };
  const reword = (text) => editor.change(() => ({ op: "reword", question: id, text: asking(text) }), id, "Reworded.");
  const gone = () => editor.change({ op: "remove", question: id }, id, `Removed: ${question.text}`) && toUndo();
  const target = over ? (over.after ? "over-after" : "over-before") : "";
  return html`<li class="sub-question ${target} ${state(question)}" data-row=${id} data-question=${id}>
    <span class="grip" draggable="true" title="Drag to move" aria-hidden="true">⠿</span>
    <span class="number" aria-hidden="true">${number}</span>
    <${Words} label="Sub-question ${number}" value=${question.text} commit=${reword} editor=${editor} at=${id} />
    <${Movers} shift=${shift} what="sub-question ${number}" up=${shifted(editor.plan, group, question, -1)}
      down=${shifted(editor.plan, group, question, 1)} />
    <${Remove} what="sub-question ${number}" onClick=${gone} />
    <div class="under">
      <${State} question=${question} /><${Belongs} group=${group} question=${question} editor=${editor} /></div>
  </li>`;
}

const toUndo = () => setTimeout(() => document.querySelector("[data-undo]")?.focus());
const state = ({ isNew, was, isMoved }) => (isNew ? "new" : was ? "reworded" : isMoved ? "moved" : "");

function State({ question }) {
  const { isNew, was, isMoved, text } = question;
  const isReworded = was && was !== text && !isNew;
  return html`${isNew && html`<span class="chip green">New</span>`}
    ${isReworded && html`<span class="chip blue">Reworded</span><del class="note" dir="auto">${was}</del>`}
    ${isMoved && !isNew && html`<span class="chip">Moved</span>`}`;
}

/** Text that is written over where it stands: Enter, or going elsewhere, changes it; Esc restores it. */
function Words({ label, value, commit, editor, at }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const isOther = text.trim() !== value;
  const wrong = useRef(""); // stays while the text does, whatever is changed elsewhere
  if (!isOther || editor.refused(at)) wrong.current = editor.refused(at);
  const isRefused = isOther && wrong.current;
  const leave = () => {
    setText(value);
    if (isRefused) editor.clear();
  };
  const done = () => (isOther ? commit(text) : leave());
  const key = (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      done();
    } else if (event.key === "Escape" && text !== value) {
      event.preventDefault();
      event.stopPropagation();
      leave();
    }
  };
  return html`<div class="words">
    <textarea rows="1" aria-label=${label} dir="auto" value=${text} onKeyDown=${key} onBlur=${done}
      ref=${(node) => node?.setCustomValidity(isRefused ? `${wrong.current} Press Esc to undo.` : "")}
      aria-invalid=${isRefused ? "true" : undefined}
      onInput=${(event) => setText(event.currentTarget.value)}></textarea>
    ${wrong.current && html`<p class="refused" role="alert">${wrong.current}</p>`}
  </div>`;
}

function Movers({ shift, what, up, down }) {
  return html`<span class="movers">
    <button type="button" class="plain icon small" data-act="up" disabled=${!up} aria-label="Move ${what} up"
      title="Move up" onClick=${() => shift(-1)}>↑</button>
    <button type="button" class="plain icon small" data-act="down" disabled=${!down} aria-label="Move ${what} down"
      title="Move down" onClick=${() => shift(1)}>↓</button>
  </span>`;
}

function Remove({ what, onClick }) {
  return html`<button type="button" class="plain icon small" aria-label="Remove ${what}" title="Remove"
    onClick=${onClick}>✕</button>`;
}

function Belongs({ group, question, editor }) {
  const [isNaming, setNaming] = useState(false);
  const { id, number } = question;
  const put = (title) =>
    editor.change(() => ({ op: "assign", question: id, section: heading(title) }), id, `Moved to ${title}.`);
  const chosen = (event) => {
    const { value } = event.currentTarget;
    if (value === NEW) setNaming(true);
    else if (value !== group.title) put(value);
  };
  const end = () => setNaming(false);
  if (isNaming) return html`<${NewTitle} commit=${(title) => put(title) && end()} cancel=${end} />`;
  const titles = nameable(editor.plan).filter((title) => title !== group.title);
  return html`<select class="belongs" aria-label="Section of sub-question ${number}" value=${group.title}
    onChange=${chosen}>
    <option value=${group.title}>${group.isLone ? "In a section of its own" : `Under: ${group.title}`}</option>
    ${titles.map((title) => html`<option value=${title}>Move under: ${title}</option>`)}
    <option value=${NEW}>Move under a new section …</option>
  </select>`;
}

function NewTitle({ commit, cancel }) {
  const [title, setTitle] = useState("");
  const key = (event) => {
    if (event.key === "Escape") cancel();
    if (event.key === "Enter") commit(title);
    if (event.key === "Escape" || event.key === "Enter") event.preventDefault();
  };
  return html`<span class="naming row">
    <input type="text" aria-label="Title of the new section" maxlength=${LONGEST_TITLE} value=${title} onKeyDown=${key}
      ref=${(node) => node && !title && node.focus()} onInput=${(event) => setTitle(event.currentTarget.value)} />
    <button type="button" class="small" disabled=${!title.trim()} onClick=${() => commit(title)}>Move there</button>
    <button type="button" class="small plain" onClick=${cancel}>Cancel</button></span>`;
}
