// What one side tells and the other does not.
import { html, useMemo, useState } from "../core/html.js";
import { addressOf, link, place, threadId, turn } from "../core/place.js";
import { Choice, Many, Mark, Outward } from "../core/parts.js";
import { focus, report, showStatement } from "../core/store.js";
import { count, usd, VERDICTS } from "../core/words.js";
import { Rewording } from "./rewording.js";

const HOW = { figure: "different figure", date: "different date", name: "different name", negation: "opposite meaning",
  verdict: "different verdict", mark: "different mark", sources: "different sources" };

export function Differences({ diff, nameOf }) {
  const [shown, setShown] = useState("all");
  const all = useMemo(() => entries(diff), [diff]);
  const kinds = [...new Set(all.map((one) => one.kind))];
  const kind = kinds.includes(shown) ? shown : "all";
  const sides = { a: nameOf(diff.a.name), b: nameOf(diff.b.name) };
  return html`
    <dl class="versus">
      <${Side} header=${diff.a} name=${sides.a} order="Before" />
      <${Side} header=${diff.b} name=${sides.b} order="After" />
    </dl>
    <p>${all.length ? count(all.length, "difference") : "No differences"};
      ${` ${count(diff.same, "statement is", "statements are")} the same on both sides.`}</p>
    ${kinds.length > 1 && html`<${Choice} label="Differences to show" value=${kind} onChange=${setShown} choices=${[
      { name: "all", label: `All ${all.length}` },
      ...kinds.map((name) => ({ name, label: `${LABELS[name]} ${all.filter((one) => one.kind === name).length}` })),
    ]} />`}
    <${Many} key=${kind} class="differences" first=${20}
      items=${kind === "all" ? all : all.filter((one) => one.kind === kind)}
      each=${(one) => html`<${Difference} key=${one.key} one=${one} diff=${diff} sides=${sides} />`} />`;
}

const LABELS = { changed: "Changed", added: "Added", dropped: "Dropped", source: "Sources", section: "Sections" };

function entries(diff) {
  const as = (kind, side, list) => list.map((held, at) => ({ kind, side, held, key: `${kind}${side}${at}` }));
  return [
    ...as("changed", "", diff.changed), ...as("added", "b", diff.added), ...as("dropped", "a", diff.dropped),
    ...as("source", "b", diff.sources_gained), ...as("source", "a", diff.sources_lost),
    ...as("section", "b", diff.sections_added), ...as("section", "a", diff.sections_dropped),
  ];
}

function Side({ header, name, order }) {
  const { status, confidence } = header;
  const told = [status ? `report ${status}` : "a draft", confidence && `confidence ${confidence}`, usd(header.usd)];
  return html`<div><dt>${order}: ${name}</dt><dd class="note">${told.filter(Boolean).join(", ")}</dd></div>`;
}

function Difference({ one, diff, sides }) {
  if (one.kind === "changed") return html`<${Changed} held=${one.held} diff=${diff} />`;
  const isNew = one.side === "b";
  return html`<li class="difference ${isNew ? "added" : "dropped"}">
    <p class="note"><b class="sign" aria-hidden="true">${isNew ? "+" : "−"}</b>
      ${` ${WHAT[one.kind]}Only in ${sides[one.side]}`}</p>
    ${body(one, diff[one.side].name)}
  </li>`;
}

const WHAT = { added: "", dropped: "", source: "Source. ", section: "Section. " };

function body({ kind, held }, side) {
  if (kind === "section") return html`<p dir="auto"><strong>${held}</strong></p>`;
  if (kind === "source")
    return html`<p dir="auto"><code>${held.id}</code> <${Outward} url=${held.url}>${held.title}</${Outward}></p>`;
  return html`<p class="statement" dir="auto">${held.text} <${Mark} mark=${held.mark} /></p>
    <${Told} statement=${held} side=${side} />`;
}

function Changed({ held: { before, after, how }, diff }) {
  return html`<li class="difference changed">
    <p class="note"><b class="sign" aria-hidden="true">±</b> Changed: ${how.map((name) => HOW[name] ?? name).join(", ")}</p>
    <${Rewording} before=${before.text} after=${after.text} />
    ${before.mark !== after.mark &&
    html`<p class="turned">Mark: <${Marked} mark=${before.mark} /> then <${Marked} mark=${after.mark} /></p>`}
    ${before.verdict !== after.verdict &&
    html`<p class="turned">Verdict: ${VERDICTS[before.verdict]} then ${VERDICTS[after.verdict]}</p>`}
    <${Told} statement=${before} side=${diff.a.name} word="Before" />
    <${Told} statement=${after} side=${diff.b.name} word="After" />
  </li>`;
}

const Marked = ({ mark }) => (mark ? html`<${Mark} mark=${mark} />` : "none");

/** Where it is told, and by whom it is supported. */
function Told({ statement, side, word = "" }) {
  const [thread, at] = side.split("@");
  const sources = statement.sources.map((one) => one.id).join(", ");
  const label = thread === threadId.value ? "Show in this thread" : "Open its thread";
  return html`<p class="note">${word && `${word}: `}${sources ? `${sources} · ` : ""}
    <a ...${leading(thread, at, statement.id)}>${label}</a></p>`;
}

const narrow = matchMedia("(max-width: 900px)"); // where the answer has no room beside this pane

function leading(thread, at, claim) {
  if (thread !== threadId.value) {
    const way = link({ thread, at });
    return { href: way.href, onClick: (event) => (way.onClick(event), (focus.value = { claim })) };
  }
  const there = { at: at ?? null, panel: narrow.matches ? "answer" : "timeline" };
  const onClick = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    turn(there, { keep: true });
    showStatement(at ? undefined : statementOf(claim), claim);
  };
  return { href: addressOf({ ...place.value, ...there }), onClick };
}

/** The name of the first sentence of this thread's report that tells a claim. */
function statementOf(claim) {
  for (const [at, section] of (report.value?.sections ?? []).entries()) {
    const sentence = section.sentences.findIndex((one) => one.claims.includes(claim));
    if (sentence >= 0) return `${at}-${sentence}`;
  }
  return undefined;
}
