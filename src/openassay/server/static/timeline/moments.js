// Every moment as a line, to jump to.
import { html } from "../core/html.js";
import { Many } from "../core/parts.js";
import { count, time, usd } from "../core/words.js";
import { begins, choose, chosen, costs, moments } from "./history.js";
import { phaseOf } from "./stages.js";

export function Moments() {
  const list = moments.value;
  const one = list[chosen.value];
  return html`<section class="stack tight" aria-labelledby="moments-title">
    <h3 id="moments-title">All moments <span class="count">${list.length}</span></h3>
    <${Many} tag="ol" class="moments" items=${list} reach=${one && ((other) => other === one)}
      each=${(each, index) => html`<${Line} key=${each.checkpoint} one=${each} index=${index} on=${each === one} />`} />
  </section>`;
}

function Line({ one, index, on }) {
  const branches = begins.value.get(index)?.length ?? 0;
  const [phase, cost] = [phaseOf(one), costs.value[index]];
  const opens = index > 0 && phase !== phaseOf(moments.value[index - 1]);
  return html`<li class=${opens ? "opens" : ""}>
    <button type="button" class="plain moment" aria-current=${on ? "true" : undefined} onClick=${() => choose(index)}>
      <span class="number">${one.number}</span>
      <span class="told"><span dir="auto">${one.summary || "no description"}</span>
        ${branches > 0 && html` <span class="chip blue">${count(branches, "branch", "branches")} started here</span>`}</span>
      <span class="phase">${phase}</span>
      <span class="note when">${time(one.time)}${cost ? ` · ${usd(cost)}` : ""}</span>
    </button>
  </li>`;
}
