// Four pictures, one at a time; the address says which.
import { html } from "../core/html.js";
import { Busy, Choice } from "../core/parts.js";
import { place, threadId, turn } from "../core/place.js";
import { loading, moment } from "../core/store.js";
import { CoveragePicture } from "./coverage.js";
import { EvidencePicture } from "./evidence.js";
import { PipelinePicture } from "./pipeline.js";
import { SpendingPicture } from "./spending.js";

const PICTURES = [
  { name: "evidence", label: "Evidence", about: "Which claims rest on which sources", picture: EvidencePicture },
  { name: "coverage", label: "Coverage", about: "How well each section is supported", picture: CoveragePicture },
  { name: "spend", label: "Spend", about: "Cost and time, step by step", picture: SpendingPicture },
  { name: "graph", label: "Graph", about: "The stages, and which of them is running", picture: PipelinePicture },
];

export function PicturesPane() {
  const shown = PICTURES.find((one) => one.name === place.value.picture) ?? PICTURES[0];
  return html`<div class="pictures">
    <${Choice} label="Picture" value=${shown.name} choices=${PICTURES}
      onChange=${(name) => turn({ picture: name })} />
    ${moment.value && html`<p class="then">Shown as it was at the moment chosen on the timeline.</p>`}
    ${loading.value ? html`<${Busy} />` : html`<${shown.picture} key=${`${threadId.value} ${shown.name}`} />`}
  </div>`;
}
