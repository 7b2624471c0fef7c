// Files on their way to the server, one after the other. Each is taken or refused on its own.
import { Problem, request } from "../core/api.js";
import { signal } from "../core/html.js";
import { number, sentence } from "../core/words.js";
import { offered } from "./choices.js";
import { change, draft } from "./draft.js";

export const uploads = signal([]); // {id, name, size, state: "waits" | "sends" | "refused", reason, again}
let line = Promise.resolve();
let given = 0;
const ending = new Map(); // id -> what ends its upload

export function give(files) {
  for (const file of files) {
    const id = ++given;
    const reason = hindrance(file);
    const state = reason ? "refused" : "waits";
    uploads.value = [...uploads.value, { id, name: file.name, size: file.size, state, reason, again: null }];
    if (!reason) queue(id, file);
  }
}

function queue(id, file) {
  ending.set(id, new AbortController());
  line = line.then(() => send(id, file));
}

/** What the server would refuse anyway, but only after all of it was sent. */
function hindrance(file) {
  const { maxMb, most } = offered().files;
  const coming = uploads.value.filter((one) => one.state !== "refused").length;
  if (file.size > maxMb * 1e6) return `The file is larger than ${number(maxMb)} MB. Split it.`;
  const isFull = draft.value.documents.length + coming >= most;
  return isFull ? `A question can have at most ${number(most)} documents. Remove one first.` : "";
}

async function send(id, file) {
  if (!ending.has(id)) return; // removed while it was queued
  note(id, { state: "sends" });
  const form = new FormData();
  form.append("file", file);
  try {
    const answer = await request("POST", "/api/documents", { body: form, abort: ending.get(id).signal });
    const { documents } = await answer.json();
    drop(id);
    choose(documents[0]);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Problem)) throw error;
    const again = isPassing(error) ? () => sendAgain(id, file) : null;
    note(id, { state: "refused", reason: told(error, file.name), again });
  }
}

function sendAgain(id, file) {
  note(id, { state: "waits", reason: "", again: null });
  queue(id, file);
}

const isPassing = ({ status }) => status === 0 || status === 429 || status >= 500;

function told({ status, message, help }, name) {
  const reason = message.startsWith(`${name}: `) ? message.slice(name.length + 2) : message; // its chip has the name
  return [reason, status === 0 ? "" : help].filter(Boolean).map(sentence).join(" ");
}

const note = (id, what) => (uploads.value = uploads.value.map((one) => (one.id === id ? { ...one, ...what } : one)));

/** Forget a file that was refused, or stop one that is on its way. */
export function drop(id) {
  ending.get(id)?.abort();
  ending.delete(id);
  uploads.value = uploads.value.filter((one) => one.id !== id);
}

/** With the question. The same content has the same id, however often it was given. */
export function choose({ id, name, size }) {
  const others = draft.value.documents.filter((one) => one.id !== id);
  change({ documents: [...others, { id, name, size }] });
}

export const leaveOut = (id) => change({ documents: draft.value.documents.filter((one) => one.id !== id) });
/** After the question was asked: what was not taken belonged to it. */
export const forget = () => (uploads.value = []);
export const isSending = () => uploads.value.some((one) => one.state !== "refused");
