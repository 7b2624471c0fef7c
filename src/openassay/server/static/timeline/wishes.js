// The parts of the form in which one says what a branch does differently.
import { html } from "../core/html.js";
import { Many } from "../core/parts.js";
import { shelf } from "../core/store.js";
import { count } from "../core/words.js";

const value = (set) => (event) => set(event.currentTarget.value);

const Field = ({ label, children }) => html`<label class="field"><span>${label}</span>${children}</label>`;

const Text = ({ label, text, set, ...more }) => html`<${Field} label=${label}>
  <input type="text" value=${text} onInput=${value(set)} ...${more} /></${Field}>`;

const Figure = ({ label, figure, set, ...more }) => html`<${Field} label=${label}>
  <input type="number" value=${figure} onInput=${value(set)} ...${more} /></${Field}>`;

function Select({ label, chosen, set, options }) {
  return html`<${Field} label=${label}><select value=${chosen} onChange=${value(set)}>
    <option value="">unchanged</option>
    ${options.map((one) => html`<option key=${one.name} value=${one.name} disabled=${one.disabled}>
      ${one.label ?? one.name}</option>`)}
  </select></${Field}>`;
}

const named = (names) => (names ?? []).map((name) => ({ name }));
const usual = (what) => (what ? `unchanged (default: ${what})` : "unchanged");

const Part = ({ title, open = false, children }) => html`<details class="card wish" open=${open}>
  <summary>${title}</summary><div class="stack">${children}</div></details>`;

/** How it is told. */
export function Told({ form, set, choices }) {
  const [min, max] = choices?.words ?? [50, 20_000];
  return html`<${Part} title="Writing" open=${true}>
    <${Text} label="Deliverable" text=${form.deliverable} set=${set("deliverable")} maxlength="500"
      placeholder="for example: a one-page memo" />
    <div class="row">
      <${Select} label="Style" chosen=${form.style} set=${set("style")} options=${named(choices?.styles)} />
      <${Figure} label="Words" figure=${form.words} set=${set("words")} min=${min} max=${max} placeholder="unchanged" />
    </div>
  </${Part}>`;
}

/** What is asked. */
export function Asked({ form, set, choices }) {
  const depths = named(choices?.depths.map((one) => one.name));
  return html`<${Part} title="Question and plan">
    <${Field} label="Question"><textarea rows="3" dir="auto" maxlength=${choices?.longestQuestion ?? 2000}
      value=${form.question} onInput=${value(set("question"))}></textarea></${Field}>
    <${Select} label="Depth" chosen=${form.depth} set=${set("depth")} options=${depths} />
    <${Steps} steps=${form.steps} set=${set("steps")} />
  </${Part}>`;
}

function Steps({ steps, set }) {
  if (!steps.length)
    return html`<p class="note">There was no plan at this moment. Fork from a later one to change sub-questions.</p>`;
  const change = (at) => (part) => set(steps.map((one, index) => (index === at ? { ...one, ...part } : one)));
  const add = () => set([...steps, { id: "", text: "", was: "", gone: false }]);
  return html`<fieldset class="steps-of-form"><legend>Sub-questions</legend>
    <ol class="stack tight">
      ${steps.map((one, at) => html`<${Step} key=${at} one=${one} number=${at + 1} change=${change(at)} />`)}</ol>
    <button type="button" class="plain" onClick=${add}>Add a sub-question</button>
  </fieldset>`;
}

function Step({ one, number, change }) {
  const word = one.gone ? "Keep" : "Remove";
  return html`<li class="row ${one.gone ? "gone" : ""}">
    <input type="text" dir="auto" maxlength="500" aria-label="Sub-question ${number}" value=${one.text}
      disabled=${one.gone} onInput=${value((text) => change({ text }))} />
    <button type="button" class="small" aria-label="${word} sub-question ${number}"
      onClick=${() => change({ gone: !one.gone })}>${word}</button>
  </li>`;
}

const WEB = [{ name: "yes", label: "also searched" }, { name: "no", label: "not searched" }];

/** What it rests on. */
export function RestsOn({ form, set, choices, evidence }) {
  const found = (choices?.sources ?? []).map(({ name, available, reason }) =>
    available ? { name } : { name, label: `${name} (${reason})`, disabled: true },
  );
  const sources = [{ name: "auto", label: "whatever is available" }, ...found];
  return html`<${Part} title="Sources">
    <div class="row">
      <${Select} label="Search in" chosen=${form.source} set=${set("source")} options=${sources} />
      <${Select} label="Web in addition to your documents" chosen=${form.web} set=${set("web")} options=${WEB} />
    </div>
    <${Without} form=${form} set=${set("without")} evidence=${evidence} />
  </${Part}>`;
}

/** Sources are called as they were at that moment, or as the report calls them. */
function Without({ form, set, evidence }) {
  const numbered = evidence.filter((one) => one.id);
  const list = numbered.length ? numbered : shelf.value.sources;
  if (!list.length) return html`<p class="note">There were no numbered sources to leave out at this moment.</p>`;
  const chosen = form.without;
  const toggle = ({ target }) =>
    set(target.checked ? [...chosen, target.name] : chosen.filter((one) => one !== target.name));
  return html`<fieldset onChange=${toggle}>
    <legend>Leave out${chosen.length ? ` (${count(chosen.length, "source")})` : ""}</legend>
    <${Many} class="without" items=${list} first=${40} each=${(one) => html`<li key=${one.id}><label class="row">
      <input type="checkbox" name=${one.id} checked=${chosen.includes(one.id)} />
      <span><code>${one.id}</code> <span dir="auto">${one.title || one.host || one.url}</span></span></label></li>`} />
  </fieldset>`;
}

/** Who does it, and for how much. */
export function Work({ form, set, choices }) {
  const { model, usd } = choices?.defaults ?? {};
  return html`<${Part} title="Model and budget">
    <div class="row">
      <${Text} label="Model" text=${form.model} set=${set("model")} maxlength="200" placeholder=${usual(model)} />
      <${Figure} label="Budget in dollars" figure=${form.usd} set=${set("usd")} min="0" max="10000" step="any"
        placeholder=${usual(usd)} />
    </div>
  </${Part}>`;
}
