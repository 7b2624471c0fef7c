// How well each section is supported, and what could not be found.
import { computed, html } from "../core/html.js";
import { Empty } from "../core/parts.js";
import { count, MARKS, number, percent, VERDICTS } from "../core/words.js";
import { basis, WHEN } from "./basis.js";
import { Figure, useWidth } from "./figure.js";
import { jump } from "./jump.js";

const KINDS = [
  { name: "agreed", sign: "✓✓", words: MARKS["✓✓"].short },
  { name: "one", sign: "✓", words: MARKS["✓"].short },
  { name: "single", sign: "⚠", words: MARKS["⚠"].short },
  { name: "bare", sign: "", words: "without a mark" },
  { name: "frame", sign: "", words: "about the research" },
];
const SIGNS = new Map(KINDS.filter((kind) => kind.sign).map((kind) => [kind.sign, kind.name]));

/** [{title, statements, marks: {agreed: 2 ...}, verdicts: Map}] */
const counted = computed(() => {
  const verdicts = new Map((basis.value?.claims ?? []).map((claim) => [claim.id, claim.verdict]));
  return (basis.value?.sections ?? []).map((section, at) => {
    const marks = Object.fromEntries(KINDS.map((kind) => [kind.name, 0]));
    const found = new Map();
    for (const { kind, mark, claims } of section.sentences) {
      marks[kind === "frame" ? "frame" : SIGNS.get(mark) ?? "bare"] += 1;
      for (const verdict of claims.map((id) => verdicts.get(id)).filter(Boolean)) {
        found.set(verdict, (found.get(verdict) ?? 0) + 1);
      }
    }
    const all = section.sentences.length;
    const weakest = section.sentences.findIndex((sentence) => sentence.mark === "⚠");
    return { at, title: section.title, marks, verdicts: found, all, facts: all - marks.frame, weakest };
  });
});

const table = computed(() => ({
  columns: ["Section", ...KINDS.map((kind) => `${kind.sign} ${kind.words}`.trim()), "Verdicts of its claims"],
  rows: counted.value.map(({ title, marks, verdicts }) => [
    title, ...KINDS.map((kind) => number(marks[kind.name])), spelled(verdicts) || "none",
  ]),
}));

const spelled = (verdicts) => [...verdicts].map(([name, n]) => `${number(n)} ${VERDICTS[name] ?? name}`).join(", ");

export function CoveragePicture() {
  const given = basis.value;
  if (!given?.sections.length) return html`<${Empty} title="Nothing has been written yet">
    <p>Sections appear here as soon as they are checked.</p></${Empty}>`;
  return html`<${Figure} name="coverage" title="Coverage"
    told=${[sentence(counted.value), WHEN[given.of]].filter(Boolean).join(" ")} table=${table.value}>
    ${given.coverage && html`<${Checked} coverage=${given.coverage} />`}
    <${Bars} sections=${counted.value} />
  </${Figure}>
  ${given.missing.length > 0 && html`<${Missing} questions=${given.missing} />`}`;
}

function sentence(sections) {
  const sum = (name) => sections.reduce((total, section) => total + section.marks[name], 0);
  const facts = sections.reduce((total, section) => total + section.facts, 0);
  const stated = KINDS.filter((kind) => kind.name !== "frame" && sum(kind.name));
  const parts = stated.map((kind) => `${number(sum(kind.name))} ${kind.words}`).join(", ");
  const told = `The text states facts in ${count(facts, "sentence")} of ${count(sections.length, "section")}`;
  return `${told}${parts && `: ${parts}`}.`;
}

function Checked({ coverage: { checked, total } }) {
  const share = total ? checked / total : 0;
  return html`<div class="checked">
    <p><strong>${number(checked)} of ${number(total)}</strong> statements checked ${total > 0 && html`<span
      class="note">(${percent(share)})</span>`}</p>
    <svg width="100%" height="8" aria-hidden="true"><rect class="track" width="100%" height="8" rx="4" /><rect
      class="done" width=${`${100 * share}%`} height="8" rx="4" /></svg>
  </div>`;
}

function Bars({ sections }) {
  const [box, width] = useWidth();
  const longest = Math.max(1, ...sections.map((section) => section.all));
  return html`<div class="bars" ref=${box}>
    <svg width="0" height="0" class="patterns" aria-hidden="true"><defs>
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect
        width="6" height="6" class="under" /><rect width="2.4" height="6" class="over" /></pattern>
    </defs></svg>
    <ul>${width > 0 && sections.map((section) => html`<${Bar} key=${section.at} section=${section}
      scale=${width / longest} />`)}</ul>
  </div>`;
}

function Bar({ section, scale }) {
  const marks = KINDS.map((kind) => ({ ...kind, n: section.marks[kind.name] })).filter((part) => part.n);
  const verdicts = Object.entries(VERDICTS).map(([name, words]) => ({ name, words, n: section.verdicts.get(name) }))
    .filter((part) => part.n);
  return html`<li class="bar">
    <h3 dir="auto">${section.title}</h3>
    <${Strip} lead="Sentences" title=${section.title} parts=${marks} scale=${scale} tall=${18} />
    ${verdicts.length > 0 && html`<${Strip} lead="Claims" title=${section.title} parts=${verdicts} scale=${scale}
      tall=${7} />`}
    ${section.weakest >= 0 && html`<button type="button" class="plain small"
      onClick=${() => jump(`${section.at}-${section.weakest}`)}>
      Show the first single-source statement<span class="unseen"> of ${section.title}</span></button>`}
  </li>`;
}

/** Parts side by side, and the same in words. */
function Strip({ title, lead, parts, scale, tall }) {
  let from = 0;
  const pieces = parts.map((part) => {
    const piece = { ...part, x: from, wide: Math.max(1, part.n * scale - 2) };
    from += part.n * scale;
    return piece;
  });
  const told = parts.map((part) => `${part.n} ${part.words}`).join(", ") || "none";
  return html`<svg width="100%" height=${tall} role="img" aria-label=${`${title}, ${lead.toLowerCase()}: ${told}`}>
      ${pieces.map((piece) => html`<rect key=${piece.name} class=${piece.name} x=${piece.x} width=${piece.wide}
        height=${tall} rx="3" />`)}
    </svg>
    <p class="parts"><span class="note">${lead}</span>
      ${parts.map((part) => html`<span key=${part.name} class="part"><i class="swatch ${part.name}"
        aria-hidden="true"></i>${number(part.n)} ${part.sign ?? ""} ${part.words}</span>`)}
      ${!parts.length && html`<span class="note">nothing stated</span>`}
    </p>`;
}

function tried({ queries, documents, reason }) {
  const told = `${count(queries.length, "search", "searches")}, ${count(documents, "document")} read`;
  return `${told}${reason && `; ${reason}`}.`;
}

/** What was searched and not found is a result too. */
function Missing({ questions }) {
  return html`<section class="missing" aria-labelledby="missing">
    <h2 id="missing">Searched for, but not found</h2>
    <ul class="stack">
      ${questions.map(
        (one) => html`<li key=${one.question} class="card">
          <p dir="auto"><strong>${one.question}</strong></p>
          <p class="note" dir="auto">${tried(one)}</p>
          ${one.queries.length > 0 && html`<details><summary>What was searched for</summary><ul
            class="queries">${one.queries.map((query) => html`<li dir="auto">${query}</li>`)}</ul></details>`}
        </li>`,
      )}
    </ul>
  </section>`;
}
