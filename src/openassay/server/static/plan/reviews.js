// Questions of all threads that wait for the person.
import { get, Problem } from "../core/api.js";
import { html, useEffect, useState } from "../core/html.js";
import { link, threadId } from "../core/place.js";
import { generation } from "../core/store.js";
import { count } from "../core/words.js";
import { left } from "./deadline.js";

const PAUSE = 30_000; // ms; threads that nobody looks at may ask too

/** Nothing where nothing waits. */
export function ReviewsList() {
  const list = useWaiting();
  if (!list.length) return null;
  return html`<section class="reviews" aria-label="Waiting for you">
    <h2>${count(list.length, "question")} for you</h2>
    <ul>${list.map((one) => html`<${Waiting} key=${one.id} one=${one} />`)}</ul>
  </section>`;
}

function useWaiting() {
  const [list, setList] = useState([]);
  const seen = [generation.value, threadId.value];
  useEffect(() => {
    let isOver = false;
    const look = async () => {
      const found = await get("/api/reviews").catch(unknown);
      if (found && !isOver) setList(found.reviews);
    };
    look();
    const timer = setInterval(look, PAUSE);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, seen);
  return list;
}

/** What is shown stays until the server answers again. */
const unknown = (error) => (error instanceof Problem ? null : Promise.reject(error));

function Waiting({ one }) {
  const isHere = one.threadId === threadId.value;
  return html`<li><a ...${link({ thread: one.threadId })} aria-current=${isHere ? "true" : undefined}>
    <strong dir="auto">${one.question}</strong>
    <span class="note" dir="auto">${one.about}</span>
    ${one.due && html`<span class="note">${one.overdue ? "overdue" : left(one.due)}</span>`}
  </a></li>`;
}
