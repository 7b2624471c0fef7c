// Markdown as elements. What is not known here stays text: there is no HTML, and links lead only to web pages.
import { html } from "../core/html.js";
import { Many, Outward } from "../core/parts.js";
import { showSource } from "../core/store.js";

const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const RULE = /^\s*(?:-{3,}|\*{3,}|_{3,})\s*$/;
const BAR = /^\s*\|?(?:\s*:?-{1,}:?\s*\|)+\s*(?::?-{1,}:?)?\s*$/;
// Every part has a bound, so a text made of brackets or stars is read in time that grows with its length alone.
const INLINE = new RegExp(
  [
    String.raw`\\([\\${"`"}*_{}\[\]()#+\-.!<>|~])`,
    "`([^`]{1,2000})`",
    String.raw`\*\*([^*\n]{1,2000})\*\*`,
    String.raw`\*([^*\s][^*\n]{0,2000})\*`,
    String.raw`(?<![\p{L}\p{N}_])_([^_\s][^_\n]{0,2000})_(?![\p{L}\p{N}_])`,
    String.raw`!?\[(\[?[^\[\]\n]{1,1000}\]?)\]\(([^()\s]{1,2000})\)`,
    String.raw`<a id="[a-z0-9-]{1,40}"><\/a>()`,
  ].join("|"),
  "gu",
);

export function Markdown({ text }) {
  return html`<${Many} tag="div" class="art-prose" items=${blocks(text)} first=${120}
    each=${(block, at) => html`<${Block} key=${at} block=${block} />`} />`;
}

/** [{kind, ...}]: heading, code, table, list, rule, quote, text. */
export function blocks(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const found = [];
  for (let at = 0; at < lines.length;) {
    const read = READERS.map((reader) => reader(lines, at)).find(Boolean);
    if (read.block) found.push(read.block);
    at = read.next;
  }
  return found;
}

const READERS = [blank, fence, heading, rule, table, list, quote, paragraph];

const isPlain = (line) =>
  line.trim() && !HEADING.test(line) && !ITEM.test(line) && !RULE.test(line) && !/^(```|>)/.test(line);
const cells = (line) =>
  line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());

function blank(lines, at) {
  return lines[at].trim() ? null : { next: at + 1 };
}

function fence(lines, at) {
  if (!lines[at].startsWith("```")) return null;
  let end = at + 1;
  while (end < lines.length && !lines[end].startsWith("```")) end += 1;
  return { block: { kind: "code", text: lines.slice(at + 1, end).join("\n") }, next: end + 1 };
}

function heading(lines, at) {
  const found = HEADING.exec(lines[at]);
  return found && { block: { kind: "heading", level: found[1].length, text: found[2] }, next: at + 1 };
}

function rule(lines, at) {
  return RULE.test(lines[at]) ? { block: { kind: "rule" }, next: at + 1 } : null;
}

function table(lines, at) {
  if (!lines[at].includes("|") || !BAR.test(lines[at + 1] ?? "")) return null;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  return { block: { kind: "table", head: cells(lines[at]), rows: lines.slice(at + 2, end).map(cells) }, next: end };
}

function list(lines, at) {
  const items = [];
  let end = at;
  for (let found; end < lines.length && (found = ITEM.exec(lines[end])); end += 1) {
    items.push({ depth: Math.min(3, found[1].length >> 1), number: found[2], text: found[3] });
  }
  return items.length ? { block: { kind: "list", items }, next: end } : null;
}

function quote(lines, at) {
  let end = at;
  while (end < lines.length && lines[end].startsWith(">")) end += 1;
  return end > at
    ? {
        block: {
          kind: "quote",
          text: lines
            .slice(at, end)
            .map((line) => line.replace(/^>\s?/, ""))
            .join("\n"),
        },
        next: end,
      }
    : null;
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && isPlain(lines[end])) end += 1;
  return { block: { kind: "text", text: lines.slice(at, end).join("\n") }, next: end };
}

const TAGS = ["h3", "h4", "h5", "h6", "h6", "h6"]; // below the headings of the page

function Block({ block }) {
  if (block.kind === "heading")
    return html`<${TAGS[block.level - 1]}
    dir="auto">${inline(block.text)}</${TAGS[block.level - 1]}>`;
  if (block.kind === "code") return html`<pre tabindex="0"><code>${block.text}</code></pre>`;
  if (block.kind === "rule") return html`<hr />`;
  if (block.kind === "quote") return html`<blockquote dir="auto">${inline(block.text)}</blockquote>`;
  if (block.kind === "list")
    return html`<ul>${block.items.map(
      (item, at) => html`<li key=${at}
    data-depth=${item.depth} data-numbered=${Boolean(item.number)} dir="auto">
    ${item.number ? `${item.number}. ` : ""}${inline(item.text)}</li>`,
    )}</ul>`;
  if (block.kind === "table")
    return html`<div class="scrolls"><table>
    ${
      block.head.some(Boolean) &&
      html`<thead><tr>${block.head.map(
        (cell) => html`<th
      scope="col">${inline(cell)}</th>`,
      )}</tr></thead>`
    }
    <tbody>${block.rows.map(
      (row) =>
        html`<tr>${row.map(
          (cell) => html`<td
      dir="auto">${inline(cell)}</td>`,
        )}</tr>`,
    )}</tbody></table></div>`;
  return html`<p dir="auto">${inline(block.text)}</p>`;
}

export function inline(text) {
  const found = [];
  let last = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > last) found.push(text.slice(last, match.index));
    found.push(piece(match));
    last = match.index + match[0].length;
  }
  if (last < text.length) found.push(text.slice(last));
  return found;
}

function piece([whole, escaped, code, bold, starred, underlined, label, target]) {
  if (escaped) return escaped;
  if (code) return html`<code>${code}</code>`;
  if (bold) return html`<strong>${inline(bold)}</strong>`;
  if (starred || underlined) return html`<em>${inline(starred || underlined)}</em>`;
  if (label) return reference(label, target, whole);
  return "";
}

/** A source of this report is shown in its pane. */
function reference(label, target, whole) {
  const source = /^#(s\d{1,6})$/i.exec(target)?.[1].toUpperCase();
  if (source)
    return html`<button type="button" class="cite" aria-label=${`Source ${source}`}
    onClick=${() => showSource(source)}>${source}</button>`;
  return /^https?:/i.test(target) ? html`<${Outward} url=${target}>${label}</${Outward}>` : whole;
}
