// Text of others with the words that were looked for marked.
import { html } from "../core/html.js";
import { needle } from "./sieve.js";

export function Found({ text }) {
  const sought = needle.value;
  if (!sought || !text) return text;
  return text.split(sought).map((part, at) => (at % 2 ? html`<mark>${part}</mark>` : part));
}
