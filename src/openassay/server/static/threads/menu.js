// What can be done with a whole thread: a link to it, another name, an end.
import { patch, remove } from "../core/api.js";
import { html, useState } from "../core/html.js";
import { Dialog, useBusy } from "../core/parts.js";
import { go, threadId } from "../core/place.js";
import { attempt, refresh, thread } from "../core/store.js";
import { may } from "../shell/account.js";
import { tellDeleted } from "./gone.js";
import { load } from "./list.js";
import { ShareDialog } from "./share.js";

const DIALOGS = { share: ShareDialog, rename: RenameDialog, delete: DeleteDialog };

export function ThreadMenu() {
  const [open, setOpen] = useState(null);
  const Shown = DIALOGS[open];
  return html`
    ${may("share") && html`<button type="button" class="plain" aria-haspopup="dialog" onClick=${() => setOpen("share")}>Share</button>`}
    ${may("write") && html`<details class="menu" onFocusOut=${(event) => event.currentTarget.contains(event.relatedTarget) || (event.currentTarget.open = false)}>
      <summary aria-label="More actions" title="More actions">⋯</summary>
      <div class="card"><button type="button" class="plain" onClick=${() => setOpen("rename")}>Rename</button>
        <button type="button" class="plain" onClick=${() => setOpen("delete")}>Delete</button></div>
    </details>`}
    ${Shown && html`<${Shown} onClose=${() => setOpen(null)} />`}`;
}

function RenameDialog({ onClose }) {
  const [title, setTitle] = useState(thread.value.title); // what is typed outlives a refresh
  const [busy, rename] = useBusy(async () => {
    const isDone = await attempt(() => patch(`/api/threads/${threadId.value}`, { title: title.trim() }));
    if (isDone) onClose();
    refresh();
  });
  const submit = (event) => (event.preventDefault(), rename());
  return html`<${Dialog} title="Rename this thread" onClose=${onClose}><form class="stack" onSubmit=${submit}>
    <label class="field"><span>Title</span><input dir="auto" required maxlength="200" value=${title}
      onInput=${(event) => setTitle(event.currentTarget.value)} /></label>
    <div><button class="first-choice" aria-disabled=${String(busy)}>Rename</button></div>
  </form></${Dialog}>`;
}

function DeleteDialog({ onClose }) {
  const id = threadId.value;
  const [busy, confirm] = useBusy(async () => {
    if (await attempt(() => remove(`/api/threads/${id}`), "The thread was deleted.")) {
      go({}, { keep: false });
      tellDeleted(id);
      load();
    }
    onClose();
  });
  return html`<${Dialog} title="Delete this thread?" onClose=${onClose}>
    <p>This permanently deletes its reports, history and links, and the snapshots that no other thread uses. What was spent stays on record.</p>
    <div class="row"><button type="button" class="danger" aria-disabled=${String(busy)} onClick=${confirm}>${
      busy ? "Deleting …" : "Delete permanently"}</button>
      <button type="button" onClick=${onClose}>Keep it</button></div>
  </${Dialog}>`;
}
