// A finished report: answers first, then sections, figures, what sources disagree on and what nobody could tell.
import { computed, html, useSignal } from "../core/html.js";
import { Mark } from "../core/parts.js";
import { report } from "../core/store.js";
import { count, MARKS } from "../core/words.js";
import { About, Exports, Headline, PrintedSources } from "./about.js";
import { Disputes } from "./disputes.js";
import { Missing } from "./missing.js";
import { Reader } from "./reader.js";
import { Prose, Statement } from "./section.js";
import { isDoubted, statementOf, weakest } from "./statements.js";
import { VerifyButton } from "./verify.js";

export function Report() {
  const made = report.value;
  const only = useSignal(null);
  return html`<article class="report" data-only=${only.value}>
    ${!isSame(made.title, made.question) && html`<h2 class="title" dir="auto">${made.title}</h2>`}
    <${Headline} made=${made} />
    <div class="row tools"><${VerifyButton} /><${Exports} /></div>
    <${Notes} made=${made} />
    <${Legend} only=${only} />
    <${Reader} find=${statementOf}>
      <${Answers} answers=${made.answers} />
      ${made.sections.map((section, at) => html`<${Section} key=${at} section=${section} at=${at} made=${made} />`)}
    </${Reader}>
    <${About} made=${made} />
    <${PrintedSources} sources=${made.sources} />
  </article>`;
}

const bare = (text) => text.toLowerCase().replace(/[\s?.!]+$/u, "").replace(/\s+/gu, " ");
const isSame = (a, b) => bare(a) === bare(b);

/** What to know before one reads: it is not whole, something failed, somebody was not asked. */
function Notes({ made }) {
  const all = [...made.notices, ...made.errors.map((error) => `Something failed: ${error}`)];
  if (!all.length) return null;
  return html`<div class="notes"><h2 class="unseen">Please note</h2>
    <ul>${all.map((text) => html`<li key=${text} dir="auto">${text}</li>`)}</ul></div>`;
}

/** mark -> how many statements, each counted once, and in how many places. */
const counts = computed(() => {
  const found = {};
  for (const { sentence, names } of weakest.value) {
    const { statements, places } = found[sentence.mark] ?? { statements: 0, places: 0 };
    found[sentence.mark] = { statements: statements + 1, places: places + names.length };
  }
  return found;
});

const MEANING = { agreed: "independent sources agree", one: "one credible source", single: "one source only" };

/** What the signs mean; pressing one shows where they are. */
function Legend({ only }) {
  const known = Object.entries(MARKS).filter(([mark]) => counts.value[mark]);
  if (!known.length) return null;
  return html`<div class="legend row" role="group" aria-label="How well the statements are supported: highlight them in the text">
    ${known.map(
      ([mark, { kind, told }]) => html`<button type="button" class="small" key=${kind} title="${told} ${where(mark)}"
        aria-pressed=${only.value === kind ? "true" : "false"}
        onClick=${() => (only.value = only.value === kind ? null : kind)}>
        <${Mark} mark=${mark} /><span>${MEANING[kind]}</span><span class="count">${counts.value[mark].statements}</span></button>`,
    )}
  </div>`;
}

function where(mark) {
  const { statements, places } = counts.value[mark];
  return `${count(statements, "statement")} in ${count(places, "place")}.`;
}

function Answers({ answers }) {
  const named = answers.map((answer, at) => ({ answer, name: `answer-${at}` }));
  const sure = named.filter(({ answer }) => !answer.disputed);
  const disputed = named.filter(({ answer }) => answer.disputed);
  return html`<${AnswerList} list=${sure} title=${sure.length > 1 ? "Answers" : "Answer"} />
    <${AnswerList} list=${disputed} title="Sources disagree on the answer" kind="disputed" />`;
}

function AnswerList({ list, title, kind = "" }) {
  if (!list.length) return null;
  return html`<section class="answers ${kind}"><h2>${title}</h2><ul>${list.map(
    ({ answer, name }) => html`<li key=${name}><${Statement} sentence=${answer} name=${name} doubted=${isDoubted(answer)}>
      ${answer.text}${answer.about && html` <span class="note">(${answer.about})</span>`}</${Statement}></li>`,
  )}</ul></section>`;
}

/** A section, and what is known about it beyond its sentences. */
function Section({ section, at, made }) {
  return html`<section class="section ${section.role}">
    ${section.title && html`<h2 dir="auto">${section.title}</h2>`}
    <${Prose} sentences=${section.sentences} at=${at} />
    ${section.role === "disagreements" && html`<${Disputes} disputes=${made.disputes} />`}
    ${section.role === "not_found" && html`<${Missing} missing=${made.not_found} />`}
    ${at === figuresAfter(made) && made.figures.length > 0 && html`<${Figures} figures=${made.figures} />`}
  </section>
  ${at === made.sections.length - 1 && html`<${Untold} made=${made} />`}`;
}

/** The last section of the body, else the first of all. */
function figuresAfter(made) {
  return Math.max(0, made.sections.findLastIndex((section) => section.role === "body"));
}

/** Disagreements and empty searches are results, even where no section speaks of them. */
function Untold({ made }) {
  const has = (role) => made.sections.some((section) => section.role === role);
  return html`
    ${!has("disagreements") && made.disputes.length > 0 &&
    html`<section class="section"><h2>What the sources disagree on</h2><${Disputes} disputes=${made.disputes} /></section>`}
    ${!has("not_found") && made.not_found.length > 0 &&
    html`<section class="section"><h2>What could not be found</h2><${Missing} missing=${made.not_found} /></section>`}`;
}

function Figures({ figures }) {
  return html`<div class="key-figures"><h3>Key figures</h3>
    <div class="scrolls" tabindex="0" role="region" aria-label="Key figures"><table>
      <thead><tr><th scope="col">What</th><th scope="col">Value and sources</th><th scope="col">When</th></tr></thead>
      <tbody>${figures.map((figure, at) => html`<tr key=${at}><td dir="auto">${figure.what}</td>
        <td><${Statement} sentence=${figure} name="figure-${at}"><b>${figure.value}</b></${Statement}>
          ${figure.disputed && html` <span class="chip orange">disputed</span>`}</td>
        <td dir="auto">${figure.when}</td></tr>`)}</tbody></table></div></div>`;
}
