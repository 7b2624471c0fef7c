// What every picture has: a heading, a sentence that says what it shows, and the same as a table.
import { html, useLayoutEffect, useRef, useState } from "../core/html.js";
import { number } from "../core/words.js";

const FIRST = 100; // rows of a table that are shown at first

/** `table`: {columns: [title], rows: [[text]]}. `name` is unique on the page. */
export function Figure({ name, title, told, table, children }) {
  return html`<figure class="picture" aria-labelledby="picture-${name}">
    <figcaption><h2 id="picture-${name}">${title}</h2><p class="told" dir="auto">${told}</p></figcaption>
    ${children}
    ${table?.rows.length > 0 && html`<${AsTable} table=${table} title=${title} />`}
  </figure>`;
}

/** Its rows are made when it is opened: most people never do. */
function AsTable({ table, title }) {
  const [open, setOpen] = useState(false);
  const [shown, setShown] = useState(FIRST);
  const left = table.rows.length - shown;
  return html`<details class="as-table" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>As a table</summary>
    ${open &&
    html`<div class="scrolls" tabindex="0" role="region" aria-label="${title}, as a table">
      <table>
        <thead><tr>${table.columns.map((one) => html`<th scope="col">${one}</th>`)}</tr></thead>
        <tbody>
          ${table.rows.slice(0, shown).map(
            ([first, ...rest]) => html`<tr><th scope="row" dir="auto">${first}</th>${rest.map((cell) => html`<td
              dir="auto">${cell}</td>`)}</tr>`,
          )}
        </tbody>
      </table>
    </div>`}
    ${open && left > 0 && html`<p class="more"><button type="button" class="plain"
      onClick=${() => setShown(shown + 5 * FIRST)}>${number(left)} more</button></p>`}
  </details>`;
}

/** [ref, width in px]: pictures are laid out for the room there is, so that their letters keep their size. */
export function useWidth() {
  const box = useRef();
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measured = (px) => setWidth(Math.floor(px));
    const watch = new ResizeObserver(([entry]) => measured(entry.contentRect.width));
    measured(box.current.clientWidth);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return [box, width];
}

/** What colours and strokes mean. `keys`: [[class, words]] */
export function Legend({ keys }) {
  return html`<ul class="legend" aria-label="Legend">
    ${keys.map(
      ([kind, words]) => html`<li key=${kind}>
        <svg class="key ${kind}" width="22" height="12" aria-hidden="true"><line x1="1" y1="6" x2="21" y2="6" /><rect
          x="4" y="1" width="14" height="10" rx="2" /></svg>
        ${words}
      </li>`,
    )}
  </ul>`;
}
