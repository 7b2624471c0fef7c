// The plan, open to change: sub-questions under sections.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../core/html.js";
import { count } from "../core/words.js";
import { AddQuestion } from "./adding.js";
import { Body } from "./body.js";
import { Decisions } from "./decisions.js";
import { useDragging } from "./dragging.js";
import { applied, changesTold, outline, Refused, withEdit } from "./edits.js";
import { Section } from "./sections.js";
import { Shown } from "./shown.js";
import { Terms } from "./terms.js";
import { useUnsent } from "./unsent.js";

export function PlanApproval({ question }) {
  const editor = useEditor(question);
  const { edits } = editor;
  const { plan, ...rest } = question.shown;
  return html`
    <${Body} question=${question}>
      <${Basis} plan=${plan} />
      <${Shown} shown=${rest} />
      <${Outline} editor=${editor} />
      <${AddQuestion} editor=${editor} />
      <${Terms} editor=${editor} />
      <${Changes} editor=${editor} />
      <p class="unseen" role="status">${editor.said}</p>
    </${Body}>
    <${Decisions} question=${question} changes=${edits.length ? { edits } : null} />`;
}

/** Every change is tried at once. What it cannot be is said where it was wanted (`wrong.at`). */
function useEditor(question) {
  const original = question.shown.plan;
  const [edits, setEdits] = useUnsent(question.id, "edits", []);
  const [wrong, setWrong] = useState(null);
  const [said, setSaid] = useState("");
  const plan = useMemo(() => applied(original, edits), [edits]);
  const change = (wanted, at, told = "") => {
    try {
      const list = [wanted instanceof Function ? wanted() : wanted].flat().filter(Boolean);
      setEdits(list.reduce((made, edit) => withEdit(original, made, edit), edits));
      setWrong(null);
      setSaid(told);
      return true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setWrong({ at, text: error.message });
      return false;
    }
  };
  const drop = (op, told) => {
    setEdits(edits.filter((one) => one.op !== op));
    setWrong(null);
    setSaid(told);
  };
  const undo = () => {
    setEdits(edits.slice(0, -1));
    setWrong(null);
    setSaid("Undone.");
  };
  const refused = (at) => (wrong?.at === at ? wrong.text : "");
  return { original, plan, edits, change, drop, undo, refused, clear: () => setWrong(null), said };
}

function Basis({ plan }) {
  const size = `${count(plan.questions.length, "sub-question")}, ${count(plan.queries.length, "query", "queries")}`;
  return html`<div class="basis">
    <p class="note">${size}; ${plan.depth}.${plan.methodology ? ` ${plan.methodology}` : ""}</p>
    ${plan.constraints.length > 0 &&
    html`<ul class="row" aria-label="Constraints">
      ${plan.constraints.map((one) => html`<li class="chip" dir="auto">${one}</li>`)}</ul>`}
    ${plan.warnings.map((one) => html`<p class="warning" dir="auto">${one}</p>`)}
  </div>`;
}

function Outline({ editor }) {
  const list = useRef();
  const wanted = useRef(null); // {id, act}: rows that are moved lose the focus
  const dragging = useDragging(editor);
  useLayoutEffect(() => {
    if (!wanted.current) return;
    const buttons = [...list.current.querySelectorAll(`[data-row="${CSS.escape(wanted.current.id)}"] [data-act]`)];
    const same = buttons.find((one) => one.dataset.act === wanted.current.act);
    (same && !same.disabled ? same : buttons.find((one) => !one.disabled))?.focus();
    wanted.current = null;
  });
  return html`<ol class="outline" ref=${list} aria-label="Sub-questions" ...${dragging.handlers}>
    ${outline(editor.plan).map(
      (group) => html`<${Section} key=${group.questions[0]?.id ?? group.title} group=${group} editor=${editor}
        over=${dragging.over} refocus=${(id, act) => (wanted.current = { id, act })} />`,
    )}
  </ol>`;
}

function Changes({ editor }) {
  if (!editor.edits.length) return null;
  const told = changesTold(editor.original, editor.edits);
  return html`<section class="changes" aria-label="Your changes">
    <div class="row apart"><h4>${count(told.length, "change")} by you</h4>
      <button type="button" class="small" data-undo onClick=${editor.undo}>Undo last</button></div>
    <ul>${told.map(([what, text]) => html`<li><b>${what}:</b> <span dir="auto">${text}</span></li>`)}</ul>
  </section>`;
}

