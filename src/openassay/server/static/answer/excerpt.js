// A passage of a snapshot, with the text around it.
import { get, Problem } from "../core/api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../core/html.js";
import { Busy, Wrong } from "../core/parts.js";
import { threadId } from "../core/place.js";

const KEPT = 300; // texts
const texts = new Map();

/** The text of a document around a place; asked for once. */
export function textAround(document, start, end) {
  const path = `/api/threads/${threadId.value}/documents/${document}`;
  const key = `${path} ${start} ${end}`;
  if (!texts.has(key)) {
    if (texts.size >= KEPT) texts.delete(texts.keys().next().value);
    texts.set(key, get(path, { start, end }));
    texts.get(key).catch(() => texts.delete(key));
  }
  return texts.get(key);
}

/** {before, passage, after}. Offsets count characters, of which some are two to JavaScript. */
export function parted({ text, start }, span) {
  const characters = [...text];
  const [from, to] = [Math.max(0, span.start - start), Math.max(0, span.end - start)];
  return {
    before: characters.slice(0, from).join(""),
    passage: characters.slice(from, to).join(""),
    after: characters.slice(to).join(""),
  };
}

/** [what was found or null, what was wrong or null, a function that asks again] */
export function useText(document, start, end) {
  const [held, setHeld] = useState({});
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let isWanted = true;
    textAround(document, start, end).then(
      (text) => isWanted && setHeld({ text }),
      (problem) => isWanted && problem instanceof Problem && setHeld((before) => ({ text: before.text, problem })),
    );
    return () => (isWanted = false);
  }, [document, start, end, tries]);
  return [held.text ?? null, held.problem ?? null, () => setTries(tries + 1)];
}

const NEAR = 240; // characters on either side

/** A short piece of text, cut at word boundaries. */
const before = (text) => (text.length > NEAR ? `… ${text.slice(-NEAR).replace(/^\S*\s/u, "")}` : text);
const after = (text) => (text.length > NEAR ? `${text.slice(0, NEAR).replace(/\s\S*$/u, "")} …` : text);

/** The passage in its context, for reading on the spot. `shown(mark)` is called once its words are there. */
export function Excerpt({ span, shown }) {
  const [text, problem, again] = useText(span.document, span.start, span.end);
  const words = useRef();
  useLayoutEffect(() => void (words.current && shown?.(words.current)), [text?.hash]);
  if (problem) return html`<${Wrong} problem=${problem} again=${again} />`;
  if (text?.hash !== span.document) return html`<${Busy}>Opening the snapshot …</${Busy}>`;
  const found = parted(text, span);
  return html`<p class="excerpt" dir="auto"><span class="around">${before(found.before)}</span><mark
    ref=${words}>${found.passage}</mark><span class="around">${after(found.after)}</span></p>`;
}
