// Documents that were given before: they can go with any question, until they are deleted.
import { get, Problem, remove } from "../core/api.js";
import { html, useEffect, useState } from "../core/html.js";
import { Busy, Many, useBusy, Wrong } from "../core/parts.js";
import { attempt } from "../core/store.js";
import { ago, bytes } from "../core/words.js";
import { draft } from "./draft.js";
import { choose, leaveOut } from "./uploads.js";

const PAGE = 200;

export function Library() {
  const [open, setOpen] = useState(false);
  return html`<details class="fold" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>Earlier documents <span class="note">stored for you on this server</span></summary>
    ${open && html`<${Shelf} />`}
  </details>`;
}

function Shelf() {
  const [found, setFound] = useState(null);
  const [wrong, setWrong] = useState(null);
  const more = (cursor, before) => page(cursor, before).then(setFound, refused);
  const refused = (error) => (error instanceof Problem ? setWrong(error) : Promise.reject(error));
  // What was given since is shown too.
  useEffect(() => void more(null, []), [draft.value.documents.length]);
  if (wrong) return html`<${Wrong} problem=${wrong} again=${() => (setWrong(null), more(null, []))} />`;
  if (!found) return html`<${Busy}>Loading your documents …<//>`;
  const { documents, next } = found;
  if (!documents.length) return html`<p class="note">None yet. Add some above, or drop them anywhere on this page.</p>`;
  const each = (one) => html`<${Given} key=${one.id} one=${one} gone=${() => more(null, [])} />`;
  return html`<${Many} items=${documents} class="shelf" each=${each} />
    ${next && html`<button type="button" onClick=${() => more(next, documents)}>Show older</button>`}`;
}

async function page(cursor, before) {
  const { documents, nextCursor } = await get("/api/documents", { limit: PAGE, cursor });
  return { documents: [...before, ...documents], next: nextCursor };
}

function Given({ one, gone }) {
  const [sure, setSure] = useState(false);
  const on = draft.value.documents.some((chosen) => chosen.id === one.id);
  const [busy, away] = useBusy(async () => {
    if (!sure) return setSure(true);
    if (await attempt(() => remove(`/api/documents/${one.id}`), `${one.name} was deleted.`)) (leaveOut(one.id), gone());
    return setSure(false);
  });
  return html`<li>
    <label class="tick"><input type="checkbox" checked=${on} onChange=${() => (on ? leaveOut(one.id) : choose(one))} />
      <span><bdi>${one.name}</bdi> <small>${bytes(one.size)}, ${ago(one.created)}</small></span></label>
    <button type="button" class="plain small ${sure ? "danger" : ""}"
      aria-label="Delete ${one.name}${sure ? " permanently" : ""}"
      aria-disabled=${String(busy)} onClick=${away} onBlur=${() => setSure(false)}>${sure ? "Delete permanently" : "Delete"}</button>
  </li>`;
}
