// The left-hand side: all threads, the one on which something happened last first.
import { html } from "../core/html.js";
import { Busy, Wrong } from "../core/parts.js";
import { link, threadId } from "../core/place.js";
import { status as statusHere } from "../core/store.js";
import { ago, STATUSES, usd } from "../core/words.js";
import { may } from "../shell/account.js";
import { ReviewsList } from "../plan/reviews.js";
import { found, load, loadMore, words } from "./list.js";

export function ThreadsPane() {
  return html`<nav class="threads" aria-label="Threads"><${Threads} /></nav>`;
}

export function Threads({ name = "search-threads" }) {
  const { threads, next, problem, loading } = found.value;
  return html`
    ${may("write") && html`<a class="button new" ...${link({})}>New question</a>`}
    <div class="search"><label class="unseen" for=${name}>Search your threads</label>
      <input id=${name} type="search" placeholder="Search your threads" value=${words.value} maxlength="200"
        onInput=${(event) => (words.value = event.currentTarget.value)} /></div>
    <${ReviewsList} />
    ${problem && html`<${Wrong} problem=${problem} again=${load} />`}
    <ul class="list">${threads.map((one) => html`<${Row} key=${one.id} one=${one} />`)}</ul>
    ${!threads.length && !problem && (loading ? html`<${Busy} />` : html`<p class="note none">${words.value.trim() ? "No threads match." : "No questions yet."}</p>`)}
    ${next && html`<p class="more"><button type="button" class="plain" disabled=${loading} onClick=${loadMore}>More</button></p>`}`;
}

function Branch() {
  return html`<svg class="branch" viewBox="0 0 12 12" width="12" height="12" role="img" aria-label="Branch:">
    <path d="M3 11V2M3 8c4 0 6-1 6-5" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" /></svg>`;
}

function Row({ one }) {
  const isHere = one.id === threadId.value;
  const status = isHere ? (statusHere.value ?? one.status) : one.status;
  return html`<li><a class="thread" aria-current=${isHere ? "page" : null} ...${link({ thread: one.id })}>
    <span class="title" dir="auto">${one.parent && html`<${Branch} />`}${one.title || "New thread"}</span>
    <span class="line"><span class="dot ${status ?? "none"}" aria-hidden="true"></span>${STATUSES[status] ?? "no questions"} · ${ago(one.updated)}${
      one.turns > 1 ? ` · ${one.turns} questions` : ""}${one.usd ? ` · ${usd(one.usd)}` : ""}${one.damaged ? " · damaged" : ""}</span>
  </a></li>`;
}
