// How long the report may be, what it may cost, and who is asked.
import { get, Problem } from "../core/api.js";
import { html, useEffect, useState } from "../core/html.js";

const WORDS = [50, 20_000];
const MOST_USD = 10_000;

export function Terms({ editor }) {
  const choices = useChoices();
  const { plan } = editor;
  const [fewest, most] = choices?.words ?? WORDS;
  return html`<fieldset class="terms"><legend>Length, budget, sources</legend>
    <${Amount} editor=${editor} op="words" name="words" label="Maximum words" min=${fewest} max=${most} step="1"
      placeholder="as many as needed" />
    <${Amount} editor=${editor} op="budget" name="usd" label="Maximum cost in dollars" min="0" max=${MOST_USD} step="any"
      placeholder="as in the settings" />
    <${Sources} editor=${editor} choices=${choices} />
    ${editor.refused("sources") && html`<p class="refused" role="alert">${editor.refused("sources")}</p>`}
  </fieldset>`;
}

function useChoices() {
  const [choices, setChoices] = useState(null);
  useEffect(() => {
    get("/api/choices").then(setChoices, (error) => (error instanceof Problem ? null : Promise.reject(error)));
  }, []);
  return choices;
}

/** Taken over when one is done writing. What is out of bounds is said and not taken; emptied, it is the plan's own. */
function Amount({ editor, op, name, label, ...limits }) {
  const [value, own] = [editor.plan[name], editor.original[name] ?? null];
  const [text, setText] = useState(value ?? "");
  const [told, setTold] = useState({});
  useEffect(() => setText(value ?? ""), [value]);
  const emptied = () => {
    const stands = own === null ? "no limit" : `${own.toLocaleString("en")}, as planned`;
    const back = `Cleared: ${stands}.`;
    setText(own ?? "");
    setTold({ back });
    editor.drop(op, back);
  };
  const done = ({ currentTarget: { value: written, validity, validationMessage } }) => {
    setTold(validity.valid ? {} : { wrong: validationMessage });
    if (!validity.valid) return;
    if (!written) emptied();
    else if (Number(written) !== value && !editor.change({ op, [name]: Number(written) }, op)) setText(value ?? "");
  };
  const wrong = told.wrong ?? editor.refused(op);
  return html`<div class="amount"><label class="field"><span>${label}</span>
      <input type="number" value=${text} ...${limits} aria-invalid=${told.wrong ? "true" : undefined}
        aria-describedby="told-${op}" onInput=${(event) => setText(event.currentTarget.value)}
        onChange=${done} /></label>
    <p id="told-${op}" class=${wrong ? "refused" : "note"} role="status">${wrong || told.back}</p></div>`;
}

function Sources({ editor, choices }) {
  const { plan, original } = editor;
  const ready = (choices?.sources ?? []).filter((one) => one.available).map((one) => one.name);
  const names = [...new Set([...original.sources, ...plan.sources, ...ready])];
  const toggled = (name) => {
    const next = names.filter((one) => (one === name ? !plan.sources.includes(one) : plan.sources.includes(one)));
    if (next.length) editor.change({ op: "sources", names: next }, "sources");
  };
  if (!names.length) return null;
  return html`<div class="asked-sources" role="group" aria-label="Sources to search">
    ${names.map((name) => {
      const isOn = plan.sources.includes(name);
      const isLast = isOn && plan.sources.length === 1;
      return html`<label key=${name} class="tick">
        <input type="checkbox" checked=${isOn} disabled=${isLast} onChange=${() => toggled(name)} /> ${name}</label>`;
    })}
  </div>`;
}
