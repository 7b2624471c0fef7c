// Stops the active run of a thread: now, or after the current step.
import { post } from "../core/api.js";
import { html, useState } from "../core/html.js";
import { useBusy } from "../core/parts.js";
import { attempt, refresh } from "../core/store.js";

export function Stopping({ id }) {
  const [isAsked, setAsked] = useState(false);
  const [busy, stop] = useBusy(async (drain) => {
    await attempt(() => post(`/api/threads/${id}/cancel`, { drain }), drain ? "The run will stop after this step." : "Stopped.");
    await refresh();
    setAsked(false);
  });
  const off = String(busy);
  return html`<div class="row" role="group" aria-label="Stop the research">
    ${!isAsked
      ? html`<button type="button" class="small" onClick=${() => setAsked(true)}>Stop</button>`
      : html`<button type="button" class="small danger" aria-disabled=${off} onClick=${() => stop(false)}>Stop now</button>
          <button type="button" class="small" aria-disabled=${off} onClick=${() => stop(true)}>After this step</button>
          <button type="button" class="small plain" onClick=${() => setAsked(false)}>Keep going</button>`}
  </div>`;
}
