// Links that show the report to whoever has them.
import { get, Problem, post, remove } from "../core/api.js";
import { html, useEffect, useState } from "../core/html.js";
import { Busy, copy, Dialog, useBusy, Wrong } from "../core/parts.js";
import { threadId } from "../core/place.js";
import { attempt } from "../core/store.js";
import { day, moment } from "../core/words.js";

export function ShareDialog({ onClose }) {
  const api = `/api/threads/${threadId.value}/shares`;
  const [kept, setKept] = useState(null); // or a Problem
  const [made, setMade] = useState(null);
  const load = () => get(api).then((told) => setKept(told.shares), (error) => (error instanceof Problem ? setKept(error) : Promise.reject(error)));
  useEffect(() => void load(), []);
  const [busy, make] = useBusy((days) => attempt(async () => setMade(await post(api, { days }))).then(load));
  const [, revoke] = useBusy((id) => attempt(() => remove(`${api}/${id}`), "The link was revoked.").then(load));
  const submit = (event) => (event.preventDefault(), make(Number(event.currentTarget.elements.days.value)));
  return html`<${Dialog} title="Share this report" onClose=${onClose}>
    <p>Anyone with the link can see the report, its sources and the passages it cites, and nothing else of yours.</p>
    <form class="row" onSubmit=${submit}>
      <label class="row">Valid for <select name="days"><option value="1">a day</option><option value="7" selected>a week</option>
        <option value="30">30 days</option><option value="365">a year</option></select></label>
      <button class="first-choice" aria-disabled=${String(busy)}>${busy ? "Creating a link …" : "Create link"}</button>
    </form>
    ${made && html`<${Made} made=${made} />`}
    ${kept instanceof Problem ? html`<${Wrong} problem=${kept} again=${load} />` : kept ? html`<${Kept} shares=${kept} revoke=${revoke} />` : html`<${Busy} />`}
  </${Dialog}>`;
}

function Made({ made }) {
  return html`<div class="card stack" role="status">
    <label class="field"><span>The link, valid until ${day(made.expires)}. It is shown only once.</span>
      <input readonly value=${made.url} onFocus=${(event) => event.currentTarget.select()} /></label>
    <div class="row"><button type="button" onClick=${() => copy(made.url, "The link was copied.")}>Copy</button>
      <a class="button" href=${made.url} target="_blank" rel="noopener">Preview</a></div>
  </div>`;
}

function Kept({ shares, revoke }) {
  const good = shares.filter((one) => one.good);
  if (!good.length) return html`<p class="note">There are no links to this report.</p>`;
  return html`<table><caption class="unseen">Active links</caption><thead><tr><th>Created</th><th>Valid until</th><th></th></tr></thead>
    <tbody>${good.map(
      (one) => html`<tr key=${one.id}><td>${moment(one.created)}</td><td>${day(one.expires)}</td>
        <td><button type="button" class="small" onClick=${() => revoke(one.id)}>Revoke<span class="unseen"> the link created ${moment(one.created)}</span></button></td></tr>`,
    )}</tbody></table>`;
}
