// How the question is to be answered: what most people look at, and the rest behind a fold.
import { Choice } from "../core/parts.js";
import { html } from "../core/html.js";
import { number } from "../core/words.js";
import { depths, MODES, modes, offered } from "./choices.js";
import { change, draft } from "./draft.js";

const write = (name) => (event) => change({ [name]: event.target.value });

export function Main() {
  const { defaults } = offered();
  const depth = draft.value.depth ?? defaults.depth;
  const mode = draft.value.mode ?? defaults.mode;
  return html`<div class="settings">
    <section>
      <h2>Depth</h2>
      <${Choice} label="Depth" value=${depth} choices=${depths()} onChange=${(name) => change({ depth: name })} />
      <p class="note">${depths().find((one) => one.name === depth)?.about}</p>
    </section>
    <section>
      <h2>Mode</h2>
      <${Choice} label="Mode" value=${mode} choices=${modes()} onChange=${(name) => change({ mode: name })} />
      <p class="note">${MODES[mode]}</p>
    </section>
    <section>
      <h2><label for="budget">Budget</label></h2>
      <div class="budget"><span aria-hidden="true">$</span>
        <input id="budget" type="number" min="0" max="10000" step="any" inputmode="decimal" value=${draft.value.usd}
          placeholder=${Number(defaults.usd).toFixed(2)} aria-describedby="budget-note" onInput=${write("usd")} /></div>
      <p class="note" id="budget-note">The most the question may cost. It stops before that is exceeded.</p>
    </section>
  </div>`;
}

const PLAIN = { autocapitalize: "off", autocomplete: "off", spellcheck: false }; // names, not prose

const ALL = "style, length, background, model, domains";

export function More() {
  const { defaults, styles, words } = offered();
  const { style, words: length, context, model, domains } = draft.value;
  const set = [style, length, context.trim(), model.trim(), domains.trim()].filter(Boolean).length;
  return html`<details class="fold">
    <summary>More options <span class="note">${set ? `${set} set` : ALL}</span></summary>
    <div class="more-options">
      <label class="field"><span>Style</span>
        <select value=${style} onChange=${write("style")}>
          <option value="">Default${defaults.style && `: ${defaults.style}`}</option>
          ${styles.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
        </select></label>
      <label class="field"><span>Length in words, ${number(words[0])} to ${number(words[1])}</span>
        <input type="number" min=${words[0]} max=${words[1]} inputmode="numeric" placeholder=${defaults.words}
          value=${length} onInput=${write("words")} /></label>
      <label class="field"><span>Model</span>
        <input ...${PLAIN} placeholder=${defaults.model ?? "vendor:model"}
          value=${model} onInput=${write("model")} /></label>
      <label class="field"><span>Only these domains</span>
        <input ...${PLAIN} inputmode="url" placeholder="nature.com, esa.int"
          value=${domains} onInput=${write("domains")} /></label>
      <label class="field wide"><span>Background information</span>
        <textarea rows="3" dir="auto" placeholder="What the report is for, what you already know, what to leave out."
          value=${context} onInput=${write("context")}></textarea></label>
    </div>
  </details>`;
}
