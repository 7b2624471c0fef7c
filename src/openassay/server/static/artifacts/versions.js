// The versions of an artifact: who made them and when, the newest first.
import { get } from "../core/api.js";
import { html, useEffect, useState } from "../core/html.js";
import { pathOf } from "./artifact.js";
import { count, moment } from "../core/words.js";

export function Versions({ one, look }) {
  const { name, latest, old } = one;
  const [versions, setVersions] = useState([]);
  useEffect(() => {
    let left = false;
    get(`${pathOf(name)}/versions`).then(
      (told) => left || setVersions(told.versions.toReversed()),
      () => left || setVersions([]),
    );
    return () => (left = true);
  }, [name, latest.tag]);
  if (versions.length < 2) return null;
  const shown = old?.version ?? latest.version;
  return html`<details class="art-versions"><summary>${count(versions.length, "version")}</summary>
    <ol>${versions.map(
      (each) => html`<li key=${each.version}><button type="button" class="plain"
      aria-current=${each.version === shown ? "true" : undefined} onClick=${() => look(each.version)}>
      <b>Version ${each.version}</b> <span
        class="note">${each.by === "openassay" ? "made by OpenAssay" : "edited by a person"} · ${moment(each.created)}</span>
      ${each.version === latest.version && html`<span class="chip">latest</span>`}</button></li>`,
    )}</ol>
  </details>`;
}
