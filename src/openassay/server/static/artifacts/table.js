// A table artifact: filters, files, and what changes its rows and columns.
import { download } from "../core/api.js";
import { html, useMemo, useRef, useState } from "../core/html.js";
import { Dialog, Empty } from "../core/parts.js";
import { attempt } from "../core/store.js";
import { count, number, VERDICTS } from "../core/words.js";
import { fileName, kept } from "../core/file.js";
import { Grid } from "./grid.js";
import {
  asCsv,
  asMarkdown,
  seen,
  shownCell,
  variety,
  widths,
  withCell,
  withColumn,
  withName,
  withoutColumn,
  withoutRow,
  withRow,
} from "./sheet.js";

const PAGE = 12; // columns at once beside the first ones: a table has up to 200
const STAY = 5;
const FILTERS = [
  { key: "verdict", label: "Verdict", told: VERDICTS },
  { key: "mark", label: "Mark", told: {} },
];

/** `source`: where the server has it as a file, unless it was changed here. */
export function TableArtifact({ title, table, onChange, readOnly = false, source = null }) {
  const [look, setLook] = useState({ text: "", wanted: {}, sort: null });
  const [page, setPage] = useState(0);
  const [at, setAt] = useState(null);
  const view = useSteady(table, look);
  const columns = shownColumns(table, page);
  const wide = useMemo(() => widths(table), [table.columns, table.rows.length]);
  const isCut = view.length < table.rows.length;
  const change = (next) => {
    onChange(next);
    const last = Math.max(0, Math.ceil((next.columns.length - STAY) / PAGE) - 1);
    // A new column is shown, wherever it stands.
    setPage(next.columns.length > table.columns.length ? last : Math.min(page, last));
    if (!next.rows[at?.row] || !next.columns[at?.col]) setAt(null);
  };
  const sorted = (key) => setLook({ ...look, sort: nextSort(look.sort, key) });
  return html`<div class="stack art-table">
    <${Filters} table=${table} look=${look} setLook=${setLook} />
    <div class="row apart">
      <p class="note"
        role="status">${isCut ? `${number(view.length)} of ` : ""}${count(table.rows.length, "row")}</p>
      <${Files} title=${title} table=${table} view=${view} isCut=${isCut} source=${source} />
    </div>
    ${!readOnly && html`<${Tools} table=${table} at=${at} change=${change} />`}
    ${table.columns.length > STAY + PAGE && html`<${Pages} table=${table} page=${page} setPage=${setPage} />`}
    ${
      view.length && columns.length
        ? html`<${Grid} table=${table} view=${view} columns=${columns} widths=${wide} label=${title} sort=${look.sort}
        onSort=${sorted}
          at=${at} onMove=${setAt} onCell=${(row, col, value) => onChange(withCell(table, row, col, value))}
            readOnly=${readOnly} />`
        : html`<${Empty} title=${table.rows.length ? "No rows match." : "This table is empty."}>
          <p>${table.rows.length ? "Choose other filters." : "Add a column and a row."}</p></${Empty}>`
    }
    ${
      view.length > 0 &&
      !readOnly &&
      html`<p
      class="note art-hint"><kbd>Enter</kbd> opens a cell and saves it, <kbd>Esc</kbd> cancels,
        arrow keys move.</p>`
    }
  </div>`;
}

/** Which rows are seen, and in which order, changes with the filters and with rows that come and go, but not under
 *  somebody who types into a cell. */
function useSteady(table, look) {
  const last = useRef({});
  const now = { look, columns: table.columns, count: table.rows.length };
  const same = last.current.look === look && last.current.columns === now.columns && last.current.count === now.count;
  if (!same) last.current = { ...now, view: seen(table, look) };
  return last.current.view;
}

const nextSort = (sort, key) => (sort?.key !== key ? { key, down: false } : sort.down ? null : { key, down: true });

function shownColumns(table, page) {
  const all = table.columns.map((_, at) => at);
  if (all.length <= STAY + PAGE) return all;
  return [...all.slice(0, STAY), ...all.slice(STAY + page * PAGE, STAY + (page + 1) * PAGE)];
}

function Pages({ table, page, setPage }) {
  const [from, all] = [STAY + page * PAGE, table.columns.length];
  const to = Math.min(all, from + PAGE);
  return html`<div class="row note art-pages"><button type="button" class="small" disabled=${!page}
    onClick=${() => setPage(page - 1)}>Previous columns</button>
    <span role="status">Columns 1–${STAY} and ${from + 1}–${to} of ${all}</span>
    <button type="button" class="small" disabled=${to >= all}
      onClick=${() => setPage(page + 1)}>Next columns</button></div>`;
}

function Filters({ table, look, setLook }) {
  const wanted = (key, value) => setLook({ ...look, wanted: { ...look.wanted, [key]: value } });
  return html`<div class="art-filters row">
    <input type="search" aria-label="Filter rows" placeholder="Filter rows" value=${look.text}
      onInput=${(event) => setLook({ ...look, text: event.target.value })} />
    ${FILTERS.map(({ key, label, told }) => {
      const found = variety(table, key);
      return (
        found.length > 0 &&
        html`<select key=${key} aria-label=${label} value=${look.wanted[key] ?? ""}
        onChange=${(event) => wanted(key, event.target.value)}>
        <option value="">${label}: all</option>
        ${found.map(([text, n]) => html`<option key=${text} value=${text}>${told[text] ?? text} (${n})</option>`)}
      </select>`
      );
    })}
  </div>`;
}

const FILES = [
  { suffix: "csv", label: "CSV", media: "text/csv", write: asCsv },
  { suffix: "md", label: "Markdown", media: "text/markdown", write: asMarkdown },
];

function Files({ title, table, view, isCut, source }) {
  const save = ({ suffix, media, write }) => {
    const name = fileName(title, suffix);
    if (source && !isCut) attempt(() => download(source.path, { format: suffix, version: source.version }, name));
    else kept(write(table, view), name, media);
  };
  return html`<div class="row art-files"><span class="note">${isCut ? "Download these rows" : "Download"}</span>
    ${FILES.map(
      (one) => html`<button type="button" class="small" key=${one.suffix}
      onClick=${() => save(one)}>${one.label}</button>`,
    )}</div>`;
}

function Tools({ table, at, change }) {
  const [naming, setNaming] = useState(null); // {col} of the column that gets a name; {} for a new one
  const isCell = at && table.rows[at.row] && table.columns[at.col];
  const named = (title) => {
    setNaming(null);
    change(naming.col === undefined ? withColumn(table, title) : withName(table, naming.col, title));
  };
  return html`<div class="row art-tools" role="group" aria-label="Rows and columns">
    <button type="button" class="small" disabled=${!table.columns.length}
      onClick=${() => change(withRow(table))}>Add row</button>
    <button type="button" class="small" onClick=${() => setNaming({})}>Add column</button>
    ${
      isCell &&
      html`
      <button type="button" class="small" onClick=${() => setNaming({ col: at.col })}>Rename column</button>
      <button type="button" class="small danger" title=${shownCell(table.rows[at.row][0])}
        onClick=${() => change(withoutRow(table, at.row))}>Remove this row</button>
      <button type="button" class="small danger" title=${table.columns[at.col].title}
        onClick=${() => change(withoutColumn(table, at.col))}>Remove this column</button>`
    }
    ${
      naming &&
      html`<${Naming} title=${table.columns[naming.col]?.title ?? ""} onName=${named}
      onClose=${() => setNaming(null)} />`
    }
  </div>`;
}

function Naming({ title, onName, onClose }) {
  const [text, setText] = useState(title);
  const sent = (event) => {
    event.preventDefault();
    if (text.trim()) onName(text.trim());
  };
  return html`<${Dialog} title=${title ? "Rename column" : "Add column"} onClose=${onClose}><form class="stack"
    onSubmit=${sent}>
    <label class="field"><span>Column name</span><input autofocus required maxlength="200" value=${text}
      onInput=${(event) => setText(event.target.value)} /></label>
    <div class="row"><button class="first-choice">${title ? "Rename" : "Add"}</button></div>
  </form></${Dialog}>`;
}
