// What the question is about, where it is about documents: chosen, dropped onto the page, or given before.
import { html, useEffect, useRef, useState } from "../core/html.js";
import { bytes, count } from "../core/words.js";
import { offered } from "./choices.js";
import { change, draft } from "./draft.js";
import { drop, give, leaveOut, uploads } from "./uploads.js";

export function AddFiles() {
  const input = useRef();
  const { suffixes } = offered().files;
  const chosen = () => {
    give([...input.current.files]);
    input.current.value = "";
  };
  return html`<button type="button" class="plain" onClick=${() => input.current.click()}>Add documents</button>
    <input ref=${input} hidden type="file" multiple aria-label="Documents to add"
      accept=${suffixes.join(",")} onChange=${chosen} />`;
}

/** Chips of what goes with the question, and of what is on its way. */
export function Chosen() {
  const { documents } = draft.value;
  if (!documents.length && !uploads.value.length) return null;
  return html`<ul class="chosen" aria-label="Documents for this question" aria-live="polite">
    ${documents.map((one) => html`<${Chip} key=${one.id} one=${one} off=${() => leaveOut(one.id)} />`)}
    ${uploads.value.map((one) => html`<${Chip} key=${one.id} one=${one} off=${() => drop(one.id)} />`)}
  </ul>`;
}

const NOTES = { waits: "queued", sends: "uploading …", refused: "not accepted" };

function Chip({ one, off }) {
  return html`<li class="file ${one.state ?? "there"}">
    ${one.state === "sends" && html`<span class="spinner" aria-hidden="true"></span>`}
    <span class="name" title=${one.name}><bdi>${one.name}</bdi></span>${" "}
    <small>${NOTES[one.state] ?? bytes(one.size)}</small>
    <button type="button" class="plain icon small" aria-label="Remove ${one.name}" onClick=${off}>✕</button>
    ${one.reason && html`<p class="reason">${one.reason}${" "}
      ${one.again && html`<button type="button" class="plain small" onClick=${one.again}>Upload again</button>`}</p>`}
  </li>`;
}

/** Documents stay here unless the person says otherwise. */
export function Beside() {
  if (!draft.value.documents.length) return null;
  return html`<label class="tick beside">
    <input type="checkbox" checked=${draft.value.web} onChange=${(event) => change({ web: event.target.checked })} />
    <span>Also search the web <small>${draft.value.web
      ? "Queries based on your question are sent to search services; the documents themselves are not."
      : "Nothing about your documents is sent to a search service."}</small></span>
  </label>`;
}

/** Wherever on the page files are let go: without this the browser would open them and leave. */
export function DropZone() {
  const [over, setOver] = useState(0);
  useEffect(() => {
    let gone;
    const on = { dragover, drop: dropped, dragleave: left };
    function dragover(event) {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      clearTimeout(gone);
      setOver(event.dataTransfer.items.length || 1);
    }
    function left() {
      gone = setTimeout(() => setOver(0), 100); // it also leaves one element for the next
    }
    function dropped(event) {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      setOver(0);
      give(files(event.dataTransfer));
    }
    for (const [name, act] of Object.entries(on)) addEventListener(name, act);
    return () => (clearTimeout(gone), Object.entries(on).forEach(([name, act]) => removeEventListener(name, act)));
  }, []);
  return over ? html`<div class="drop"><p><strong>Drop to add ${count(over, "document")}.</strong></p>
    <p class="note">${offered().files.suffixes.join(" ")}</p></div>` : null;
}

/** Folders cannot be read this way: they come as files without content that no request can send. */
function files(transfer) {
  const isFolder = (item) => item.webkitGetAsEntry?.()?.isDirectory;
  const items = [...transfer.items].filter((item) => item.kind === "file");
  return items.filter((item) => !isFolder(item)).map((item) => item.getAsFile()).filter(Boolean);
}
