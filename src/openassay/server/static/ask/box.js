// The box a question is written into: Enter asks, Shift+Enter starts a new line.
import { html, useEffect, useRef } from "../core/html.js";
import { count } from "../core/words.js";
import { offered } from "./choices.js";

const NEAR = 200; // characters before the end from which they are counted

/** The server counts characters, not the halves that some of them are made of here. */
export const room = (text) => offered().longestQuestion - [...text.trim()].length;

/** `first`: one can write at once. */
export function Box({ id, label, placeholder, value, onInput, onAsk, rows = 3, ...more }) {
  const { first = false, disabled = false, wrong = false } = more;
  const box = useRef();
  useEffect(() => {
    if (!first) return;
    box.current.focus({ preventScroll: true });
    box.current.setSelectionRange(value.length, value.length);
  }, []);
  const key = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    onAsk();
  };
  const left = room(value);
  return html`<div class="box">
    <label class="unseen" for=${id}>${label}</label>
    <textarea ref=${box} id=${id} data-ask rows=${rows} dir="auto" placeholder=${placeholder} value=${value}
      disabled=${disabled} aria-invalid=${String(wrong || left < 0)} aria-describedby="${id}-room" enterkeyhint="send"
      onInput=${(event) => onInput(event.target.value)} onKeyDown=${key}></textarea>
    <p id="${id}-room" class="room ${left < 0 ? "over" : ""}" aria-live="polite">${left < NEAR && told(left)}</p>
  </div>`;
}

const told = (left) => (left < 0 ? `${count(-left, "character")} too many` : `${count(left, "character")} left`);
