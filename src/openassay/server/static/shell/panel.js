// The right-hand side: one pane at a time, chosen by its tab and named in the address.
import { ArtifactsPane } from "../artifacts/artifacts.js";
import { computed, html, signal, useEffect, useRef } from "../core/html.js";
import { place, turn } from "../core/place.js";
import { events, sourceCount, thread } from "../core/store.js";
import { LogPane } from "../log/log.js";
import { PicturesPane } from "../pictures/pictures.js";
import { SourcesPane } from "../sources/sources.js";
import { TimelinePane } from "../timeline/timeline.js";

const PANES = [
  { name: "sources", label: "Sources", pane: SourcesPane, count: () => sourceCount.value },
  { name: "artifacts", label: "Artifacts", pane: ArtifactsPane },
  { name: "pictures", label: "Pictures", pane: PicturesPane },
  { name: "timeline", label: "Timeline", pane: TimelinePane },
  { name: "log", label: "Log", pane: LogPane, count: () => events.value.length },
];
const TABS = [{ name: "answer", label: "Answer" }, ...PANES];
const width = matchMedia("(max-width: 900px)");
export const narrow = signal(width.matches);
width.addEventListener("change", () => (narrow.value = width.matches));

/** "answer" is a pane of its own where there is no room beside it. */
export const panel = computed(() => {
  const named = TABS.find((one) => one.name === place.value.panel)?.name ?? "answer";
  return narrow.value || named !== "answer" ? named : "sources";
});

export function Panel() {
  const shown = PANES.find((one) => one.name === panel.value) ?? PANES[0]; // beneath the answer nobody sees it
  return html`<aside class="panel" aria-label="Sources and details">
    <div class="tabs" role="tablist" aria-label="Panes" onKeyDown=${moved}>
      ${TABS.map((one) => html`<${Tab} key=${one.name} one=${one} on=${one.name === panel.value} />`)}
    </div>
    ${narrow.value && panel.value !== "answer" && html`<h1 class="unseen">${thread.value?.title} – ${shown.label}</h1>`}
    <div class="pane" role="tabpanel" id="pane" aria-labelledby="tab-${shown.name}" tabindex="0"><${shown.pane} /></div>
  </aside>`;
}

function Tab({ one, on }) {
  const n = one.count?.();
  const button = useRef();
  useEffect(() => {
    if (on) button.current.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [on]);
  return html`<button type="button" ref=${button} role="tab" id="tab-${one.name}" class=${one.name === "answer" ? "narrow" : ""} aria-selected=${on ? "true" : "false"}
    aria-controls=${one.name === "answer" ? "main" : "pane"} tabindex=${on ? 0 : -1} onClick=${() => turn({ panel: one.name })}>
    ${one.label}${n ? html` <span class="count">${n}</span>` : ""}</button>`;
}

function moved(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...event.currentTarget.querySelectorAll("[role=tab]")].filter((tab) => tab.offsetParent);
  const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
}
