// How sure a report is, how it was made and reviewed, and how to take it along.
import { download } from "../core/api.js";
import { html } from "../core/html.js";
import { Outward } from "../core/parts.js";
import { threadId } from "../core/place.js";
import { attempt, runs } from "../core/store.js";
import { count, cut, day, moment, number, seconds, usd } from "../core/words.js";
import { weakest } from "./statements.js";

const BASES = {
  report: "a finished report",
  draft: "the last draft, which was not finished",
  analysis: "verified statements; no draft was finished",
  results: "what was found; nothing was verified in time",
  nothing: "nothing usable was found",
};
const LEVELS = { high: "green", medium: "orange", low: "red" };
const SHORT = { complete: "", partial: "partial", no_data: "nothing found", cancelled: "stopped early" };

export function Headline({ made }) {
  const { checked, total } = made.coverage;
  return html`<details class="headline">
    <summary><span class="chip ${LEVELS[made.confidence]}">confidence ${made.confidence}</span>
      ${SHORT[made.status] && html`<span class="chip orange">${SHORT[made.status]}</span>`}
      <span>${number(checked)} of ${count(total, "drafted statement")} checked</span>
      <span>hallucination score ${made.hallucination_score.toFixed(2)}</span>
      <span>${usd(made.spend.usd)}</span><span>${seconds(made.metadata.seconds)}</span></summary>
    <dl class="facts">
      <dt>Confidence</dt><dd>High if the review gave 8 of 10 or more, low if the report is incomplete, otherwise
        medium. The evidence alone scores ${made.confidence_score.toFixed(2)} of 1.</dd>
      <dt>Statements checked</dt><dd>Each drafted statement is looked up in the passages it cites. ${number(checked)} of
        ${number(total)} were supported; the others are left out or reworded. ${published()}</dd>
      <dt>Hallucination score</dt><dd>The share of drafted statements that no passage supports, counted before they were
        dropped. 0 is best.</dd>
      <dt>Spent</dt>
      <dd>${usd(made.spend.usd)}, ${number(made.spend.tokens)} tokens, ${count(made.spend.requests, "request")}.</dd>
    </dl>
  </details>`;
}

/** Why the walk through them has another count than the draft. */
function published() {
  const places = weakest.value.reduce((sum, one) => sum + one.names.length, 0);
  const told = count(weakest.value.length, "statement");
  return `The report makes ${told}, including its answers, in ${count(places, "place")}.`;
}

const FORMATS = [
  ["md", "Markdown"], ["html", "HTML page"], ["pdf", "PDF"], ["docx", "Word (DOCX)"], ["json", "JSON"],
  ["zip", "Bundle with all sources"],
];

/** Files are of the last report that was finished. */
export function Exports() {
  const name = (format) => `${cut(document.title.replace(/[^\p{L}\p{N}]+/gu, "-"), 60) || "report"}.${format}`;
  const path = `/api/threads/${threadId.value}/export`;
  const save = (format) => attempt(() => download(path, { format }, name(format)), "Saved.");
  return html`<details class="save"><summary class="button">Save as</summary>
    <div class="card stack">${FORMATS.map(
      ([format, label]) => html`<button type="button" class="plain" key=${format}
        onClick=${() => save(format)}>${label}</button>`,
    )}
      <button type="button" class="plain" onClick=${() => print()}>Print</button>
      ${runs.value.length > 1 &&
      html`<p class="note">Files contain the latest report of this thread; printing uses what is shown.</p>`}</div>
  </details>`;
}

export function About({ made }) {
  return html`<footer class="about">
    <${Review} review=${made.review} />
    <details><summary>How this report was made</summary>
      <dl class="facts">${facts(made).map(
        ([name, value]) => html`<dt key=${name}>${name}</dt><dd dir="auto">${value}</dd>`,
      )}</dl>
      <${Listed} title="Sub-questions" items=${made.provenance.sub_questions} />
      <${Listed} title="Queries" items=${made.provenance.queries} />
    </details>
  </footer>`;
}

function facts({ metadata, provenance, sources, basis, spend }) {
  const groups = new Set(sources.map((card) => card.group)).size;
  const reasoning = Object.entries(metadata.reasoning).map(([who, steps]) => `${who} (${count(steps, "step")})`);
  const research = [
    count(provenance.sub_questions.length, "sub-question"),
    count(provenance.queries.length, "query", "queries"),
    count(metadata.rounds, "round"),
  ];
  const paid = Object.entries(spend.by_model).map(
    ([who, one]) => `${who}: ${count(one.calls, "call")}, ${usd(one.usd)}`,
  );
  return [
    ["Based on", BASES[basis] ?? basis],
    ["Sources", `${count(metadata.sources, "source")} in ${count(groups, "independent group")}`],
    ["Research", research.join(", ")],
    ["Drafts", `${metadata.iterations}, ${count(metadata.words, "word")}`],
    ["Reasoning", reasoning.join(", ") || "built in, without a language model"],
    ["Models and searches", paid.join("; ") || "no paid calls"],
    ["Finished", `${moment(metadata.finished)}, after ${seconds(metadata.seconds)}`],
    ["Run", `${provenance.run} of thread ${provenance.thread}`],
    ["Settings", `${metadata.settings}, OpenAssay ${metadata.version}`],
  ];
}

const Listed = ({ title, items }) =>
  items.length
    ? html`<h3>${title}</h3>
        <ul class="sought">${items.map((text, at) => html`<li key=${at} class="chip" dir="auto">${text}</li>`)}</ul>`
    : null;

function Review({ review }) {
  if (!review) return null;
  const remarks = review.issues.length ? `, ${count(review.issues.length, "remark")}` : "";
  return html`<details class="review"><summary>Review: ${review.score.toFixed(1)} of 10${remarks}</summary>
    <dl class="scores">${Object.entries(review.scores).map(
      ([name, score]) => html`<div key=${name}><dt>${name}</dt><dd>
        <meter min="0" max="10" low="5" high="8" optimum="10" value=${score} aria-label=${name}></meter>
        ${" "}${score.toFixed(1)}</dd></div>`,
    )}</dl>
    <ul class="remarks">${review.issues.map(
      (issue, at) => html`<li key=${at}><span class="chip ${SEVERE[issue.severity] ?? ""}">${issue.severity}</span>
        <span dir="auto">${issue.description}
          ${" "}<span class="note">(${issue.location})${issue.fix ? ` ${issue.fix}.` : ""}</span></span></li>`,
    )}</ul>
  </details>`;
}

const SEVERE = { critical: "red", major: "orange", minor: "blue" };

/** On paper nobody can open a card. */
export function PrintedSources({ sources }) {
  const by = (card) => [card.author, day(card.published)].filter(Boolean).map((text) => `, ${text}`).join("");
  return html`<section class="printed"><h2>Sources</h2><ol>${sources.map(
    (card) => html`<li key=${card.id}><b>${card.id}</b> <span dir="auto">${card.title}${by(card)}.</span>
      ${" "}<${Outward} url=${card.url} /></li>`,
  )}</ol></section>`;
}
