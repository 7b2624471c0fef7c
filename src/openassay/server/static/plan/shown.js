// Whatever else a reviewer is to see, readable without knowing how it is stored.
import { html } from "../core/html.js";
import { Many } from "../core/parts.js";
import { count, number } from "../core/words.js";

const HIDDEN = new Set(["breakpoint", "key", "id", "number", "of", "document", "content_hash", "spans"]);
const SEVERITIES = { critical: "red", major: "orange" };
const DEEP = 3; // levels; below that it is counted

export function Shown({ shown }) {
  const { critique, issues, ...rest } = shown;
  const named = Object.entries(rest).filter(([name, value]) => !HIDDEN.has(name) && !isNothing(value));
  return html`${critique && html`<${Critique} critique=${critique} />`}
    ${issues?.length > 0 && html`<${Issues} issues=${issues} />`}
    ${named.length > 0 &&
    html`<div class="shown">
      ${named.map(([name, value]) => html`<${Field} key=${name} name=${name} value=${value} />`)}</div>`}`;
}

const isNothing = (value) =>
  value === null || value === "" || (typeof value === "object" && !Object.keys(value).length);

const isPlain = (value) => typeof value !== "object" || value === null;

/** Lists of things are folded: there may be hundreds. */
function Field({ name, value }) {
  const [label, told] = [spoken(name), html`<${Value} value=${value} deep=${0} />`];
  const isFolded = Array.isArray(value) && !value.every(isPlain);
  if (!isFolded) return html`<div class="field-shown"><h4>${label}</h4>${told}</div>`;
  return html`<details class="field-shown">
    <summary>${label} <span class="count">${value.length}</span></summary>${told}</details>`;
}

function Value({ value, deep }) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return number(Math.round(value * 1000) / 1000);
  if (isPlain(value)) return html`<span dir="auto">${String(value ?? "none")}</span>`;
  if (Array.isArray(value) && value.every(isPlain)) return html`<span dir="auto">${value.join(", ")}</span>`;
  if (deep >= DEEP) return count(Object.keys(value).length, "entry", "entries");
  const inner = (one) => html`<${Value} value=${one} deep=${deep + 1} />`;
  if (Array.isArray(value)) return html`<${Many} items=${value} each=${(one) => html`<li>${inner(one)}</li>`} />`;
  const named = Object.entries(value).filter(([name, one]) => !HIDDEN.has(name) && !isNothing(one));
  return html`<dl>
    ${named.map(([name, one]) => html`<div key=${name}><dt>${spoken(name)}</dt><dd>${inner(one)}</dd></div>`)}</dl>`;
}

/** "critique.score" is read as "Critique score". */
function spoken(name) {
  const words = name.replaceAll(/[._]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const ADVICE = {
  approve: "The review recommends approval",
  revise: "The review asks for a revision",
  reject: "The review advises against approval",
};
const tenth = (score) => number(Math.round(score * 10) / 10);

export function Critique({ critique }) {
  const { score, scores = {}, recommendation } = critique;
  return html`<div class="critique">
    <strong>${tenth(score)} of 10.</strong> <span>${ADVICE[recommendation] ?? recommendation}.</span>
    <ul class="row">
      ${Object.entries(scores).map(
        ([name, one]) => html`<li class="chip" key=${name}>${spoken(name)} ${tenth(one)}</li>`,
      )}
    </ul>
  </div>`;
}

export function Issues({ issues }) {
  return html`<ul class="issues" aria-label="Issues">${issues.map(
    (one) => html`<li><span class="chip ${SEVERITIES[one.severity] ?? ""}">${one.severity}</span>
      <span dir="auto">${one.description}</span>
      ${one.fix && one.fix !== one.description && html`<small dir="auto">Suggested fix: ${one.fix}</small>`}</li>`,
  )}</ul>`;
}
