// Which words of a statement were changed.
import { html } from "../core/html.js";

const MOST = 160_000; // pairs of words that are compared; beyond that both statements are shown as they are

/** [{kind: "same" | "gone" | "new", text}] */
export function rewording(before, after) {
  const [a, b] = [words(before), words(after)];
  let [head, tail] = [0, 0];
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  return joined([
    ...a.slice(0, head).map(same),
    ...(left.length * right.length > MOST ? [...left.map(gone), ...right.map(fresh)] : between(left, right)),
    ...a.slice(a.length - tail).map(same),
  ]);
}

const words = (text) => text.match(/\s+|[^\s]+/g) ?? [];
const same = (text) => ({ kind: "same", text });
const gone = (text) => ({ kind: "gone", text });
const fresh = (text) => ({ kind: "new", text });

/** By the longest sequence of words that both have. */
function between(a, b) {
  const wide = b.length + 1;
  const long = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      long[i * wide + j] =
        a[i] === b[j] ? long[(i + 1) * wide + j + 1] + 1 : Math.max(long[(i + 1) * wide + j], long[i * wide + j + 1]);
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) [found[found.length], i, j] = [same(a[i]), i + 1, j + 1];
    else if (long[(i + 1) * wide + j] >= long[i * wide + j + 1]) found.push(gone(a[i++]));
    else found.push(fresh(b[j++]));
  }
  return [...found, ...a.slice(i).map(gone), ...b.slice(j).map(fresh)];
}

/** Neighbours of a kind as one. */
function joined(pieces) {
  const found = [];
  for (const piece of pieces) {
    const last = found.at(-1);
    if (last?.kind === piece.kind) last.text += piece.text;
    else found.push({ ...piece });
  }
  return found;
}

const TAGS = { same: "span", gone: "del", new: "ins" };

export const Rewording = ({ before, after }) =>
  html`<p class="statement" dir="auto">
    ${rewording(before, after).map(({ kind, text }) => html`<${TAGS[kind]}>${text}</${TAGS[kind]}>`)}
  </p>`;
