// What nobody could tell, and what was done to find out.
import { html } from "../core/html.js";
import { count } from "../core/words.js";

export function Missing({ missing }) {
  return html`<ul class="unfound">${missing.map((one, at) => html`<li key=${at} class="card">
    <p dir="auto"><strong>${one.question}</strong></p>
    <p class="note">${count(one.documents, "document")} read for it${one.reason ? `; ${one.reason}` : ""}.</p>
    ${one.queries.length > 0
      ? html`<p class="note">Searched for:</p><ul class="sought">${one.queries.map(
          (query) => html`<li class="chip" key=${query} dir="auto">${query}</li>`,
        )}</ul>`
      : html`<p class="note">Nothing was searched for.</p>`}
  </li>`)}</ul>`;
}
