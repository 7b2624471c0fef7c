// The cells of a table: arrow keys move, Enter or a click opens one, Enter again keeps it, Esc leaves it as it was.
import { html, useLayoutEffect, useRef } from "../core/html.js";
import { Mark, Outward } from "../core/parts.js";
import { linkable, MARKS, VERDICTS } from "../core/words.js";
import { Chunks } from "../core/chunks.js";
import { shownCell, typed } from "./sheet.js";

const ROW = 46; // px, about
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** `view`: rows as indices, in their order; `columns`: likewise. `at`: {row, col, open}: the cell one is in. */
export function Grid({ table, view, columns, widths, label, sort, onSort, at, onMove, onCell, readOnly }) {
  const box = useRef();
  const wants = useRef(false); // the cell shall have the focus, once it is drawn
  const here =
    at && view.includes(at.row) && columns.includes(at.col) ? at : { row: view[0], col: columns[0], open: false };
  useLayoutEffect(() => {
    if (!wants.current || here.open) return;
    wants.current = false;
    const cell = cellAt(box.current, here);
    cell?.focus({ preventScroll: true });
    cell?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  const go = (next) => {
    wants.current = true;
    onMove(next);
  };
  const pressed = (event) => {
    const cell = event.target.closest("td[data-row]");
    if (cell && !event.target.closest("a, textarea"))
      go({ row: Number(cell.dataset.row), col: Number(cell.dataset.col), open: true });
  };
  const key = (event) => {
    if (event.target.tagName !== "TD") return;
    const step = MOVES[event.key];
    if (!step && event.key !== "Enter" && event.key !== "F2") return;
    event.preventDefault();
    go(step ? moved(here, step, view, columns) : { ...here, open: true });
  };
  const keep = (text, leaves) => {
    const before = table.rows[here.row][here.col];
    if (!readOnly && text !== null && text !== shownCell(before)) onCell(here.row, here.col, typed(text, before));
    if (leaves) go({ ...moved(here, leaves, view, columns), open: false });
    else onMove({ ...here, open: false });
  };
  const wide = columns.reduce((sum, col) => sum + widths[col], 0);
  const row = (index, place) => html`<${Row} key=${index} row=${table.rows[index]} index=${index} place=${place}
    columns=${columns} keys=${table.columns}
    here=${here.row === index ? here : null} keep=${keep} readOnly=${readOnly} />`;
  return html`<div class="art-sheet" data-scrolls ref=${box} tabindex="0" role="region" aria-label=${label}>
    <table role="grid" aria-label=${label} aria-rowcount=${view.length + 1} aria-colcount=${table.columns.length}
      style=${{ minWidth: `${wide}rem` }} onClick=${pressed} onKeyDown=${key}>
      <colgroup>${columns.map((col) => html`<col key=${col} style=${{ width: `${widths[col]}rem` }} />`)}</colgroup>
      <thead><tr aria-rowindex="1">${columns.map(
        (col) => html`<${Head} key=${col} column=${table.columns[col]}
        col=${col} sort=${sort} onSort=${onSort} />`,
      )}</tr></thead>
      <${Chunks} items=${view} each=${row} height=${ROW} piece="tbody" />
    </table>
  </div>`;
}

const cellAt = (box, { row, col }) => box.querySelector(`td[data-row="${row}"][data-col="${col}"]`);

function moved(here, [down, right], view, columns) {
  const bounded = (list, value, step) => list[Math.min(list.length - 1, Math.max(0, list.indexOf(value) + step))];
  return { row: bounded(view, here.row, down), col: bounded(columns, here.col, right), open: false };
}

function Head({ column, col, sort, onSort }) {
  const way = sort?.key === column.key ? (sort.down ? "descending" : "ascending") : "none";
  return html`<th scope="col" aria-sort=${way} aria-colindex=${col + 1}>
    <button type="button" class="plain" title="Sort by this column" onClick=${() => onSort(column.key)}><span
      dir="auto">${column.title}</span>
      <span class="art-way"
        aria-hidden="true">${{ ascending: "▲", descending: "▼", none: "" }[way]}</span></button></th>`;
}

function Row({ row, index, place, columns, keys, here, keep, readOnly }) {
  return html`<tr aria-rowindex=${place + 2}>${columns.map((col) => {
    const isHere = here?.col === col;
    return html`<td key=${col} role="gridcell" data-row=${index} data-col=${col} aria-colindex=${col + 1}
      tabindex=${isHere ? 0 : -1} dir="auto">
      ${
        isHere && here.open
          ? html`<${Editor} text=${shownCell(row[col])} label=${`${keys[col].title}, row ${place + 1}`} keep=${keep}
          readOnly=${readOnly} />`
          : cell(row[col], keys[col].key)
      }
    </td>`;
  })}</tr>`;
}

const LONG = 200; // characters, from which a cell may be cut

/** No component of its own: a page of a table has a thousand of them. */
function cell(value, name) {
  if (name === "mark" && MARKS[value]) return html`<${Mark} mark=${value} />`;
  if (name === "verdict" && VERDICTS[value])
    return html`<span class="art-verdict"
    data-value=${value}>${VERDICTS[value]}</span>`;
  if (value === "for" || value === "against") return html`<span class="art-stand" data-value=${value}>${value}</span>`;
  if (typeof value === "string" && /^https?:/.test(value) && linkable(value)) return html`<${Outward} url=${value} />`;
  const text = shownCell(value);
  return text.length > LONG ? html`<div class="art-long">${text}</div>` : text;
}

/** What is written stays when one goes elsewhere; only Esc leaves the cell as it was. */
function Editor({ text, label, keep, readOnly }) {
  const box = useRef();
  const left = useRef(false);
  useLayoutEffect(() => {
    const field = box.current;
    field.focus();
    field.select();
    field.style.height = `${Math.max(field.parentElement.clientHeight, field.scrollHeight + 2)}px`;
  }, []);
  const leave = (value, move) => {
    if (left.current) return;
    left.current = true;
    keep(value, move);
  };
  const key = (event) => {
    if (event.isComposing) return;
    const move = { Enter: event.shiftKey ? null : [0, 0], Escape: [0, 0], Tab: [0, event.shiftKey ? -1 : 1] }[
      event.key
    ];
    event.stopPropagation();
    if (!move) return;
    event.preventDefault();
    leave(event.key === "Escape" ? null : event.target.value, move);
  };
  return html`<textarea ref=${box} aria-label=${label} dir="auto" readonly=${readOnly} onKeyDown=${key}
    onBlur=${(event) => leave(event.target.value, null)}>${text}</textarea>`;
}
