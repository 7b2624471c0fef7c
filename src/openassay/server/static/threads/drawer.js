// The threads where there is no room for a column of them.
import { html, useEffect, useRef } from "../core/html.js";
import { Dialog } from "../core/parts.js";
import { place } from "../core/place.js";
import { Account } from "../shell/account.js";
import { Threads } from "./threads.js";

export function ThreadsDrawer({ onClose }) {
  const first = useRef(place.value);
  useEffect(() => {
    if (place.value !== first.current) onClose(); // one was chosen
  }, [place.value]);
  return html`<${Dialog} title="Threads" side kind="start threads-drawer" onClose=${onClose}>
    <div class="stack"><div class="who">Signed in as <${Account} /></div><${Threads} name="search-drawer" /></div></${Dialog}>`;
}
