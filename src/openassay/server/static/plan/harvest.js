// Before pages are read: how many, from where, and what it costs.
import { html } from "../core/html.js";
import { count, number, usd } from "../core/words.js";
import { Body } from "./body.js";
import { Decisions } from "./decisions.js";
import { Shown } from "./shown.js";
import { useUnsent } from "./unsent.js";

const SHOWN_HOSTS = 50; // more are not listed
const MOST_PAGES = 1000;

export function HarvestApproval({ question }) {
  const { pages, passages, usd: price, hosts, ...rest } = question.shown;
  const [struck, setStruck] = useUnsent(question.id, "struck", []);
  const [most, setMost] = useUnsent(question.id, "most", "");
  const [others, setOthers] = useUnsent(question.id, "others", "");
  const without = [...new Set([...struck, ...others.split(/[\s,]+/).filter(Boolean)])];
  const changes = { ...(most !== "" && { pages: Number(most) }), ...(without.length && { without }) };
  const figures = { Pages: number(pages), Passages: number(passages), Cost: price ? `about ${usd(price)}` : "nothing" };
  return html`
    <${Body} question=${question}>
      <dl class="figures">
        ${Object.entries(figures).map(([name, told]) => html`<div key=${name}><dt>${name}</dt><dd>${told}</dd></div>`)}
      </dl>
      ${hosts.length > 0 && html`<${Hosts} hosts=${hosts} struck=${struck} setStruck=${setStruck} />`}
      <div class="terms">
        <label class="field"><span>Maximum number of pages to fetch</span>
          <input type="number" min="0" max=${MOST_PAGES} placeholder=${pages} value=${most}
            onInput=${(event) => setMost(event.currentTarget.value)} /></label>
        <label class="field"><span>Never read from these hosts</span>
          <input type="text" placeholder="example.com, example.org" value=${others}
            onInput=${(event) => setOthers(event.currentTarget.value)} /></label>
      </div>
      <${Shown} shown=${rest} />
    </${Body}>
    <${Decisions} question=${question} changes=${Object.keys(changes).length ? changes : null} />`;
}

function Hosts({ hosts, struck, setStruck }) {
  const toggle = (host) => setStruck(struck.includes(host) ? struck.filter((one) => one !== host) : [...struck, host]);
  const all = `From ${count(hosts.length, "host")}${hosts.length === SHOWN_HOSTS ? " or more" : ""}`;
  return html`<fieldset class="hosts"><legend>${all}${struck.length ? `, ${struck.length} excluded` : ""}</legend>
    <ul>${hosts.map((host) => {
      const isOut = struck.includes(host);
      return html`<li key=${host}><label class="tick ${isOut ? "out" : ""}">
        <input type="checkbox" checked=${!isOut} onChange=${() => toggle(host)} /> <span>${host}</span></label></li>`;
    })}</ul>
  </fieldset>`;
}
