// Prose: paragraphs, lists and tables, and statements with their marks and sources. What is hovered, pressed or moved to is heard by one
// listener (reader.js), so that thousands of statements cost nothing.
import { html, useMemo } from "../core/html.js";
import { Mark } from "../core/parts.js";
import { cards } from "../core/store.js";
import { MARKS } from "../core/words.js";
import { isDoubted, isFact } from "./statements.js";

export function Prose({ sentences, at }) {
  const blocks = useMemo(() => split(sentences), [sentences]);
  return blocks.map(({ kind, parts, table }) => {
    const key = parts[0][0].index;
    if (kind === "text") return html`<${Part} key=${key} part=${parts[0]} at=${at} />`;
    if (kind === "list") return html`<ul class="items" key=${key}>${parts.map(
      (part) => html`<${Part} key=${part[0].index} tag="li" part=${part} at=${at} />`,
    )}</ul>`;
    return html`<${Cells} key=${key} table=${table} at=${at} />`;
  });
}

/** The paragraphs, lists and tables of a section, where they stand, as in export/layout.py:
    [{kind, parts: [[{sentence, index}]], table}] */
function split(sentences) {
  const blocks = [];
  let part = null; // the paragraph or item that goes on
  sentences.forEach((sentence, index) => {
    const { cell, item, opens } = sentence;
    if (part && !cell && !item && !opens) return part.push({ sentence, index });
    const kind = cell ? (cell.column ? "table" : "timeline") : item ? "list" : "text";
    const placed = [{ sentence, index }];
    if (kind !== "text" && blocks.at(-1)?.kind === kind) blocks.at(-1).parts.push(placed);
    else blocks.push({ kind, parts: [placed] });
    part = cell ? null : placed;
  });
  for (const block of blocks) if (block.parts[0][0].sentence.cell) block.table = tableOf(block.parts.flat());
  return blocks;
}

function tableOf(cells) {
  const columns = [...new Set(cells.map(({ sentence }) => sentence.cell.column))];
  const rows = new Map();
  for (const item of cells) {
    const { row, column } = item.sentence.cell;
    if (!rows.has(row)) rows.set(row, columns.map(() => []));
    rows.get(row)[columns.indexOf(column)].push(item);
  }
  const timeline = columns.length === 1 && columns[0] === "";
  const name = cells.map(({ sentence }) => sentence.cell.rows).find(Boolean) ?? "";
  return { titles: timeline ? ["When", "What"] : [name, ...columns], rows: [...rows] };
}

function Cells({ table, at }) {
  const [first, ...titles] = table.titles;
  return html`<div class="scrolls cells" tabindex="0" role="region" aria-label="Table"><table>
    <thead><tr>${first ? html`<th scope="col">${first}</th>` : html`<td></td>`}${titles.map(
      (title) => html`<th scope="col" dir="auto" key=${title}>${title}</th>`,
    )}</tr></thead>
    <tbody>${table.rows.map(
      ([name, row]) => html`<tr key=${name}><th scope="row" dir="auto">${name}</th>${row.map(
        (cell, n) => html`<td key=${n}>${cell.map(
          ({ sentence, index }) => html`<${Statement} key=${index} sentence=${sentence} name="${at}-${index}"
            doubted=${isDoubted(sentence)}>${sentence.cell.text}</${Statement}> `,
        )}</td>`,
      )}</tr>`,
    )}</tbody></table></div>`;
}

/** A paragraph or an item. Rendered again only if it has changed: a judgement elsewhere does not affect it. */
function Part({ part, at, tag = "p" }) {
  const doubted = part.map(({ sentence }) => isDoubted(sentence));
  const titles = cards.value;
  return useMemo(
    () => html`<${tag} class="text">${part.map(
      ({ sentence, index }, n) =>
        html`<${Sentence} key=${index} sentence=${sentence} name="${at}-${index}" doubted=${doubted[n]} /> `,
    )}</${tag}>`,
    [part, at, doubted.join(), titles],
  );
}

function Sentence({ sentence, name, doubted }) {
  return isFact(sentence)
    ? html`<${Statement} sentence=${sentence} name=${name} doubted=${doubted} />`
    : html`<span class="frame" dir="auto">${words(sentence)}</span>`;
}

/** What no passage says by itself: it opens the passages of all its claims. */
function Follows({ count }) {
  return html`<b class="follows" title="Follows from ${count} statements of the sources taken together"><span
    aria-hidden="true">∴</span><span class="unseen">follows from ${count} statements</span></b>`;
}

/** A text whose beginning may be in bold. */
function words({ text, lead }) {
  return lead && text.startsWith(lead) ? html`<b class="lead">${lead}</b>${text.slice(lead.length)}` : text;
}

/** `children` stand for its text where that is more than a sentence. */
export function Statement({ sentence, name, doubted = false, children }) {
  const { kind, mark, citations, cited_beside: isCitedBeside, claims } = sentence;
  return html`<span class="statement" id="statement-${name}" data-name=${name} data-kind=${MARKS[mark]?.kind ?? "none"}
    role="group" tabindex="-1"><span class="says" dir="auto">${children ?? words(sentence)}</span> ${
      kind === "synthesis" && html`<${Follows} count=${claims.length} /> `
    }<${Mark} mark=${mark} />
    ${!isCitedBeside && html`<${Cites} sources=${citations} claim=${claims[0]} />`}
    ${doubted && html`<em class="doubted">marked as doubtful</em>`}</span>`;
}

/** Those of a statement are on the way of the Tab key only while one is at it; others (`always`) all the time. */
export function Cites({ sources, claim, always = false }) {
  return sources.map(
    (id) => html` <button type="button" class="cite" key=${id} tabindex=${always ? 0 : -1} data-source=${id}
      data-claim=${claim} title=${cards.value.get(id)?.title ?? id}>${id}</button>`,
  );
}
