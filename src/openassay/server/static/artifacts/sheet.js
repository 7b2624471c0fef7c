// Tables without their looks: what of one is seen, how it is changed, and how it is written to a file.

export const shownCell = (cell) =>
  cell === null || cell === undefined ? "" : cell === true ? "yes" : cell === false ? "no" : String(cell);

/** What was typed into a cell: it stays a number or a yes, if it was one and still can be. */
export function typed(text, before) {
  if (typeof before === "boolean" && (text === "yes" || text === "no")) return text === "yes";
  if (text === "" && typeof before !== "string") return null;
  const number = Number(text);
  return typeof before !== "string" && Number.isFinite(number) && String(number) === text ? number : text;
}

// -- changes: each gives a new table ------------------------------------------------------------------------

export const withCell = (table, row, col, value) => ({
  ...table,
  rows: table.rows.with(row, table.rows[row].with(col, value)),
});
export const withRow = (table) => ({ ...table, rows: [...table.rows, table.columns.map(() => null)] });
export const withoutRow = (table, row) => ({ ...table, rows: table.rows.toSpliced(row, 1) });
export const withoutColumn = (table, col) => ({
  columns: table.columns.toSpliced(col, 1),
  rows: table.rows.map((row) => row.toSpliced(col, 1)),
});
export const withName = (table, col, title) => ({
  ...table,
  columns: table.columns.with(col, { ...table.columns[col], title }),
});

export function withColumn(table, title) {
  const taken = new Set(table.columns.map((column) => column.key));
  const bare =
    title
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .slice(0, 60) || "column";
  let key = bare;
  for (let n = 2; taken.has(key); n += 1) key = `${bare}-${n}`;
  return { columns: [...table.columns, { key, title }], rows: table.rows.map((row) => [...row, null]) };
}

// -- what is seen of it -------------------------------------------------------------------------------------

const texts = new WeakMap(); // a row -> all that can be found in it; a row that is changed is another

function textOf(row) {
  let text = texts.get(row);
  if (text === undefined) {
    text = row
      .filter((cell) => cell !== null && cell !== "")
      .map(shownCell)
      .join("\n")
      .toLowerCase();
    texts.set(row, text);
  }
  return text;
}

/** Indices of rows. `wanted`: {column key: text of the cell}; `sort`: {key, down}. */
export function seen(table, { text = "", wanted = {}, sort = null }) {
  const find = text.trim().toLowerCase();
  const must = Object.entries(wanted)
    .map(([key, value]) => [table.columns.findIndex((column) => column.key === key), value])
    .filter(([col, value]) => col >= 0 && value !== "");
  const found = [];
  table.rows.forEach((row, at) => {
    if (must.every(([col, value]) => shownCell(row[col]) === value) && (!find || textOf(row).includes(find)))
      found.push(at);
  });
  const by = sort ? table.columns.findIndex((column) => column.key === sort.key) : -1;
  return by < 0 ? found : found.sort(sorting(table.rows, by, sort.down));
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const isEmpty = (cell) => cell === null || cell === "";

/** Empty cells stand last, whichever way. */
function sorting(rows, col, down) {
  return (a, b) => {
    const [one, other] = [rows[a][col], rows[b][col]];
    if (isEmpty(one) || isEmpty(other)) return isEmpty(one) - isEmpty(other) || a - b;
    const order =
      typeof one === "number" && typeof other === "number"
        ? one - other
        : collator.compare(shownCell(one), shownCell(other));
    return (down ? -order : order) || a - b;
  };
}

/** [[text, how many]] of a column with few different texts. */
export function variety(table, key) {
  const col = table.columns.findIndex((column) => column.key === key);
  const found = new Map();
  if (col >= 0) for (const row of table.rows) found.set(shownCell(row[col]), (found.get(shownCell(row[col])) ?? 0) + 1);
  return [...found].filter(([text]) => text);
}

const SAMPLE = 80; // rows that tell how wide a column is

/** In rem, by the content of the columns. */
export function widths(table) {
  const sample = table.rows.slice(0, SAMPLE);
  return table.columns.map((column, col) => {
    const longest = sample.reduce((most, row) => Math.max(most, shownCell(row[col]).length), 0);
    const least = Math.min(9, column.title.length * 0.55 + 2.6);
    return Math.max(least, longest > 70 ? 20 : longest > 28 ? 13 : longest * 0.5 + 1.4);
  });
}

// -- files: as the server writes them -----------------------------------------------------------------------

const FORMULA = /^\s*[=+\-@\t\r＝＋－＠]/;
const NUMBER = /^[-+]?\d[\d.,]*%?$/;

/** A cell that a spreadsheet would calculate is marked as text by an apostrophe. */
const defused = (text) => (FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text);
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export function asCsv(table, rows) {
  const lines = [table.columns.map((column) => column.title), ...rows.map((at) => table.rows[at].map(shownCell))];
  return lines.map((cells) => `${cells.map((cell) => quoted(defused(cell))).join(",")}\r\n`).join("");
}

const plain = (text) =>
  text
    .split(/\s+/)
    .filter(Boolean)
    .join(" ")
    .replace(/([\\`*_[\]<>|#~])/g, "\\$1");

export function asMarkdown(table, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |\n`;
  const head =
    line(table.columns.map((column) => plain(column.title))) + `|${table.columns.map(() => "---").join("|")}|\n`;
  return head + rows.map((at) => line(table.rows[at].map((cell) => plain(shownCell(cell))))).join("");
}
