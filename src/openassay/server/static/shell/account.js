// Who one is here, and what is left of this month's money.
import { get, signedOut, token } from "../core/api.js";
import { effect, html, signal, untracked, useState } from "../core/html.js";
import { Dialog } from "../core/parts.js";
import { generation } from "../core/store.js";
import { count, usd } from "../core/words.js";
import { belongs, leave } from "./owner.js";

const account = signal(null);

/** Whether one may "write" or "share"; until it is known, whatever is offered is offered. */
export const may = (scope) => account.value?.scopes.includes(scope) ?? true;

effect(() => {
  if (signedOut.value) return;
  generation.value; // money is spent by runs
  untracked(() => get("/api/account").then(known, () => {}));
});

function known(told) {
  if (belongs(told.user)) account.value = told;
  else location.reload();
}

export function Account() {
  const [isOpen, setOpen] = useState(false);
  if (!account.value) return null;
  return html`<button type="button" class="plain person" aria-haspopup="dialog" onClick=${() => setOpen(true)}>${account.value.user}</button>
    ${isOpen && html`<${Details} onClose=${() => setOpen(false)} />`}`;
}

function Details({ onClose }) {
  const { user, scopes, budget, limits } = account.value;
  return html`<${Dialog} title="Signed in as ${user}" onClose=${onClose}>
    <dl class="facts">
      <dt>Permissions</dt><dd>${scopes.join(", ")}</dd>
      <dt>This month</dt><dd>${usd(budget.spent)} spent${budget.held ? `, ${usd(budget.held)} reserved for active runs` : ""}${
        budget.cap === null ? "; no limit" : `; ${usd(budget.left)} of ${usd(budget.cap)} left`}</dd>
      <dt>Active</dt><dd>${limits.runsAtWork} of ${count(limits.runs, "run")}</dd>
      <dt>Requests</dt><dd>${limits.requestsPerMinute} per minute</dd>
    </dl>
    ${token() && html`<div><button type="button" onClick=${leave}>Sign out</button></div>`}
  </${Dialog}>`;
}
