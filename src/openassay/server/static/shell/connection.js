// Whether the server is there. What is lost is said, with what happens next; what comes back, too.
import { reachable, signedOut } from "../core/api.js";
import { effect, html, signal, useEffect, useState } from "../core/html.js";
import { active, refresh, say, stream } from "../core/store.js";

const online = signal(navigator.onLine);
addEventListener("online", () => (online.value = true));
addEventListener("offline", () => (online.value = false));

const PAUSE = 3_000; // ms between two looks whether the server is back, where no stream looks for it
let wasLost = false;

const isLost = () => !online.value || !reachable.value || stream.value.name === "lost";

effect(() => {
  if (isLost()) wasLost = true;
  else if (wasLost) {
    wasLost = false;
    say("Reconnected. Nothing was missed.");
    refresh();
  }
});

/** Nothing else asks by itself while no stream is open. */
async function knock() {
  if (reachable.value || signedOut.value) return;
  const answer = await fetch("/healthz", { cache: "no-store" }).catch(() => null);
  if (answer?.ok) reachable.value = true;
}
setInterval(knock, PAUSE);

export function Connection() {
  if (!isLost()) return html`<div class="connection" role="status"></div>`;
  const work = active.value ? " Nothing is lost: the research continues without this page." : "";
  return html`<div class="connection lost" role="status">
    <p>${online.value ? html`The server is not responding.${work} <${Next} />` : `You are offline.${work} You can still read what is shown.`}</p>
    <button type="button" class="small" onClick=${now}>Try now</button>
  </div>`;
}

function now() {
  dispatchEvent(new Event("online")); // whoever waits for a better time has it
  online.value = navigator.onLine;
  knock();
}

/** Not read out each second: only the sentence before it is. */
function Next() {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  const { name, at, attempt } = stream.value;
  if (name !== "lost") return html`<span aria-hidden="true">Retrying every few seconds.</span>`;
  const left = Math.max(0, Math.ceil((at - Date.now()) / 1000));
  return html`<span aria-hidden="true">Attempt ${attempt + 1} ${left ? `in ${left} s` : "now"}.</span>`;
}
