// How a question gets to the server: once, however often it has to be sent.
import { onceOnly, post, Problem } from "../core/api.js";
import { sentence } from "../core/words.js";
import { kept } from "./draft.js";

const KEPT = "openassay.sent"; // {said, headers}: the question that has no answer yet
const TRIES = 5;

/** {threadId, runId, status}. The same question goes by the same name until it was taken, also after a reload: a
 *  connection that broke before the answer came does not make two of it. */
export async function ask(body) {
  const said = JSON.stringify(body);
  const before = kept(KEPT);
  const headers = before.said === said ? before.headers : onceOnly();
  sessionStorage.setItem(KEPT, JSON.stringify({ said, headers }));
  const begun = await taken(body, headers);
  sessionStorage.removeItem(KEPT);
  return begun;
}

/** The server may still be handling the first attempt; it says when to try again. */
async function taken(body, headers) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await post("/api/threads/start", body, { headers });
    } catch (error) {
      if (!(error.status === 409 && error.retryAfter) || attempt === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, error.retryAfter * 1000));
    }
  }
}

const KEPT_TEXT = "What you wrote is kept.";
const FIELDS = {
  goal: "The question", usd: "The budget", words: "The length", context: "The background", model: "The model",
  domains: "The domains", documents: "The documents", source: "The sources", style: "The style",
};

/** What a refusal means for somebody who asks, as core/parts.js shows it. */
export function refusal(error) {
  if (!(error instanceof Problem)) throw error;
  return { message: sentence(error.message), help: whatNext(error), errors: error.errors.map(named) };
}

function whatNext({ status, help, errors, retryAfter }) {
  if (errors.length) return ""; // they tell it themselves
  if (status === 0) return `${KEPT_TEXT} Press Ask again when the connection is back; the question will be asked only once.`;
  if (status === 429) {
    const way = help.includes("Retry-After") ? "" : help; // what programs go by is the time below
    const then = retryAfter ? `Ask again in ${Math.ceil(retryAfter)} seconds.` : "Ask again later.";
    return [way, then, KEPT_TEXT].filter(Boolean).join(" ");
  }
  if (status === 402) return [help, "A lower depth or budget may help."].filter(Boolean).join(" ");
  if (status >= 500) return `${KEPT_TEXT} Press Ask again.`;
  return help;
}

function named({ at = "", message = "" }) {
  const field = at.split(".")[1] ?? "";
  return { at: FIELDS[field] ?? (field || "The request"), message };
}
