// Claims before anything is written of them: those that are unticked are left out.
import { html, useMemo, useState } from "../core/html.js";
import { Many, Mark } from "../core/parts.js";
import { count, VERDICTS } from "../core/words.js";
import { Body } from "./body.js";
import { Decisions } from "./decisions.js";
import { Shown } from "./shown.js";
import { useUnsent } from "./unsent.js";

const MOST = 1000; // that can be left out at once
const COLOURS = { supported: "green", partly: "orange", contradicted: "red", not_found: "orange" };

export function ClaimsApproval({ question, mayChange }) {
  const { claims = [], ...rest } = question.shown;
  const [list, setDropped] = useUnsent(question.id, "dropped", []);
  const dropped = useMemo(() => new Set(list), [list]);
  const [words, setWords] = useState("");
  const [verdict, setVerdict] = useState("");
  const verdicts = useMemo(() => [...new Set(claims.map((one) => one.verdict))], [claims]);
  const found = useMemo(() => matching(claims, words, verdict), [claims, words, verdict]);
  const toggled = (event) => {
    const id = event.target.dataset.claim;
    if (id) setDropped(dropped.has(id) ? list.filter((one) => one !== id) : [...list, id]);
  };
  const each = (one) =>
    html`<${Claim} key=${one.id} claim=${one} isOut=${dropped.has(one.id)} isFixed=${!mayChange} />`;
  return html`
    <${Body} question=${question}>
      <${Shown} shown=${rest} />
      <div class="row filter" role="search" aria-label="Claims">
        <input type="search" aria-label="Find claims" placeholder="Find among ${claims.length}" value=${words}
          onInput=${(event) => setWords(event.currentTarget.value)} />
        <select aria-label="Verdict" value=${verdict} onChange=${(event) => setVerdict(event.currentTarget.value)}>
          <option value="">All verdicts</option>
          ${verdicts.map((one) => html`<option value=${one}>${VERDICTS[one] ?? one}</option>`)}
        </select>
      </div>
      <p class="note" role="status">
        ${count(found.length, "claim")}${list.length ? `; ${list.length} left out` : ". Uncheck claims to leave them out"}.</p>
      <div onChange=${toggled}><${Many} items=${found} class="claims" each=${each} /></div>
      ${list.length > MOST && html`<p class="refused" role="alert">At most ${MOST} claims can be left out at once.</p>`}
    </${Body}>
    <${Decisions} question=${question} changes=${list.length ? { drop: list } : null} changed="Approve the others" />`;
}

function matching(claims, words, verdict) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return claims.filter((one) => {
    const text = `${one.id} ${one.text}`.toLowerCase();
    return (!verdict || one.verdict === verdict) && wanted.every((word) => text.includes(word));
  });
}

function Claim({ claim, isOut, isFixed }) {
  return html`<li class=${isOut ? "out" : ""}><label class="tick">
    <input type="checkbox" data-claim=${claim.id} checked=${!isOut} disabled=${isFixed} />
    <span><code>${claim.id}</code> <span dir="auto" class="text">${claim.text}</span> <${Mark} mark=${claim.mark} />
      <span class="chip ${COLOURS[claim.verdict] ?? ""}">${VERDICTS[claim.verdict] ?? claim.verdict}</span>
      ${claim.reasons?.length > 0 && html`<small>${claim.reasons.join("; ")}</small>`}</span>
  </label></li>`;
}
