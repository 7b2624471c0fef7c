// What the question would cost, said before it is asked. Nothing is spent by asking that.
import { post, Problem, reachable } from "../core/api.js";
import { html, useEffect, useMemo, useState } from "../core/html.js";
import { count, number, sentence, usd } from "../core/words.js";
import { room } from "./box.js";
import { wishes } from "./draft.js";

const PAUSE = 400; // ms in which nothing was written

/** The last one until there is a new one; undefined: none yet. One that is superseded is given up. */
function useQuote(body) {
  const [made, setMade] = useState();
  useEffect(() => {
    if (!body) return undefined;
    const ending = new AbortController();
    const timer = setTimeout(() => fetched(body, ending.signal).then((found) => found && setMade(found)), PAUSE);
    return () => (clearTimeout(timer), ending.abort());
  }, [body, reachable.value]);
  return made;
}

async function fetched(body, abort) {
  try {
    return await post("/api/quote", JSON.parse(body), { abort });
  } catch (error) {
    if (error.name === "AbortError") return null;
    if (!(error instanceof Problem)) throw error;
    return error;
  }
}

export function Quote({ given }) {
  const isReady = given.goal.trim() && room(given.goal) >= 0;
  const body = useMemo(() => (isReady ? JSON.stringify(wishes(given)) : ""), [given]);
  const made = useQuote(body);
  const wrong = made instanceof Problem && made.status !== 0;
  const text = body && (made ? told(made) : "Estimating …");
  return html`<p class="quote ${wrong ? "refused" : ""}" role="status">${text}</p>`;
}

function told(made) {
  if (!(made instanceof Problem)) return estimate(made);
  if (made.status === 0) return "";
  return [made.message, made.help].filter(Boolean).map(sentence).join(" ");
}

function estimate(made) {
  const most = `at most ${usd(made.mostUsd)}`;
  if (made.model === "embedded") {
    return made.usd ? `About ${usd(made.usd)} for searches, ${most}.` : "Free: uses the embedded reasoner.";
  }
  const searches = made.searchUsd ? ` (${usd(made.searchUsd)} of it for searches)` : "";
  const price = made.usd ? `About ${usd(made.usd)}${searches}, ${most}` : "Free";
  const by = html`<span class="by">to <bdi>${made.model}</bdi></span>`;
  return html`${price}, about ${roughly(made.seconds)}, ${count(made.calls, "call")} ${by}`;
}

/** To ten seconds, or to the minute. */
function roughly(s) {
  return s < 90 ? `${Math.max(10, Math.round(s / 10) * 10)} s` : `${number(Math.round(s / 60))} min`;
}
