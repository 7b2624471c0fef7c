// How long there is to answer, and what happens then.
import { html, useEffect, useState } from "../core/html.js";
import { refresh } from "../core/store.js";

export const THEN = {
  guess: "then it continues with its best guess",
  approve: "then it continues as it is",
  end: "then it ends with what has been found",
};
const SOON = 120_000; // ms
const LATE = 10_000; // ms after the end within which the timer has surely answered

export function left(due, now = Date.now()) {
  const seconds = Math.max(0, Math.round((new Date(due) - now) / 1000));
  if (seconds >= 7_200) return `${Math.round(seconds / 3_600)} h left`;
  return seconds >= 90 ? `${Math.round(seconds / 60)} min left` : `${seconds} s left`;
}

export function Deadline({ question }) {
  const [now, setNow] = useState(Date.now());
  const rest = question.due ? new Date(question.due) - now : Infinity;
  useEffect(() => {
    if (rest === Infinity || rest < -LATE) return undefined;
    const tick = () => {
      if (rest <= 0) refresh();
      setNow(Date.now());
    };
    const timer = setTimeout(tick, rest < SOON ? 1_000 : 15_000);
    return () => clearTimeout(timer);
  }, [now, question.due]);
  if (!question.due) return null;
  const told = `${left(question.due, now)}, ${THEN[question.onTimeout]}.`;
  return html`<p class="deadline ${rest < SOON ? "soon" : ""}" role="timer">
    ${rest > 0 ? told : "Time is up. OpenAssay now decides by itself."}</p>`;
}
