// Which claims rest on which sources, which sources are of one origin, and where claims are at odds.
import { computed, html, useMemo, useState } from "../core/html.js";
import { Empty, Mark } from "../core/parts.js";
import { focus, openPassage, showSource } from "../core/store.js";
import { count, cut, MARKS, VERDICTS } from "../core/words.js";
import { basis, WHEN } from "./basis.js";
import { Figure, Legend, useWidth } from "./figure.js";
import { jump } from "./jump.js";
import { along, useNodes } from "./nodes.js";
import { tied } from "./ties.js";

const ROW = 46;
const table = computed(() => ({
  columns: ["Claim", "Says", "Verdict", "Supported by", "Contradicted by", "In conflict with"],
  rows: (basis.value?.claims ?? []).map((claim) => [
    claim.id, claim.text, [VERDICTS[claim.verdict], MARKS[claim.mark]?.short].filter(Boolean).join(", ") || "not yet",
    claim.sources.join(", ") || "none", claim.against.join(", ") || "none", odds(claim) || "none",
  ]),
}));

const odds = (claim) => [...claim.disputes, ...(claim.replaced ? [`${claim.replaced} (newer)`] : [])].join(", ");

export function EvidencePicture() {
  const given = basis.value;
  const [section, setSection] = useState(null);
  const within = given?.sections[section] ? section : null; // a moment of the past may have fewer
  const drawn = useMemo(() => given && tied(given, within), [given, within]);
  if (!given?.claims.length) return html`<${Empty} title="No claims yet">
    <p>The graph grows as soon as sentences are written.</p></${Empty}>`;
  return html`<${Figure} name="evidence" title="Evidence graph"
    told=${[sentence(drawn, given.of), WHEN[given.of]].filter(Boolean).join(" ")} table=${table.value}>
    <${Sections} given=${given} value=${within} onChange=${setSection} />
    <${Legend} keys=${legend(drawn)} />
    <p class="note">Point at a claim or a source to see what it is connected to; click to open it.</p>
    <${Graph} drawn=${drawn} />
  </${Figure}>`;
}

/** What it shows, and what it leaves out. */
function sentence({ claims, sources, groups, links, left, of }, from) {
  const disputes = links.filter((link) => link.kind === "disputed").length;
  const known = disputes ? `${count(disputes, "pair")} of conflicting claims` : "no conflicting claims";
  const shared = sources.length > groups.length ? `, of ${count(groups.length, "independent origin")}` : "";
  const text = `${count(claims.length, "claim")} on ${count(sources.length, "source")}${shared}; `
    + `${from === "report" ? known : "conflicts are shown with the report"}.`;
  if (!left.claims && !left.sources) return text;
  return `The most connected part: ${text} ${count(left.claims, "claim")} of ${of.claims.toLocaleString("en")} and `
    + `${count(left.sources, "source")} of ${of.sources.toLocaleString("en")} are left out; `
    + "choose a section, or read the table.";
}

function legend({ edges, links, groups }) {
  return [
    ["for", "supports"],
    edges.some((edge) => edge.kind === "against") && ["against", "contradicts"],
    links.some((link) => link.kind === "disputed") && ["disputed", "in conflict"],
    links.some((link) => link.kind === "replaced") && ["replaced", "replaced by a newer one"],
    groups.some((group) => group.members.length > 1) && ["group", "same origin, counted once"],
  ].filter(Boolean);
}

function Sections({ given, value, onChange }) {
  const used = new Set(given.claims.flatMap((claim) => claim.sections));
  if (used.size < 2) return null;
  return html`<div class="within field"><label for="within">Section</label>
    <select id="within" value=${value ?? ""}
      onChange=${(event) => onChange(event.target.value === "" ? null : Number(event.target.value))}>
      <option value="">All sections</option>
      ${given.sections.map((section, at) => used.has(at) && html`<option key=${at}
        value=${at}>${cut(section.title, 70)}</option>`)}
    </select>
  </div>`;
}

function Graph({ drawn }) {
  const [box, width] = useWidth();
  const near = useMemo(() => neighbours(drawn), [drawn]);
  const columns = [drawn.claims.map((one) => one.id), drawn.sources.map((one) => one.id)];
  const step = (name, key) => {
    const across = { ArrowLeft: columns[0], ArrowRight: columns[1] }[key];
    if (across) return across.find((one) => near.get(name).has(one));
    return along(columns.find((column) => column.includes(name)), name, key);
  };
  const { lit, stop, on } = useNodes(columns.flat(), step);
  const pointed = lit ?? [focus.value.claim, focus.value.source].find((one) => near.has(one)) ?? null;
  const shade = (name) => (!pointed || name === pointed ? "" : near.get(pointed)?.has(name) ? "near" : "far");
  const at = places(width);
  return html`<div class="canvas evidence" ref=${box} style=${{ height: `${drawn.height + 4}px` }}>
    ${width > 0 &&
    html`<${Lines} drawn=${drawn} at=${at} width=${width} pointed=${pointed} />
    <div ...${on} role="group" aria-label="Claims and sources. Use the arrow keys to move between them.">
      ${drawn.claims.map((claim) => html`<${Claim} key=${claim.id} claim=${claim} at=${at} shade=${shade(claim.id)}
        stop=${stop} lit=${pointed} />`)}
      ${drawn.sources.map((source) => html`<${Source} key=${source.id} source=${source} at=${at}
        shade=${shade(source.id)} stop=${stop} lit=${pointed} />`)}
    </div>`}
  </div>
  <${Words} drawn=${drawn} name=${lit} />`;
}

function neighbours({ claims, sources, edges, links }) {
  const near = new Map([...claims, ...sources].map((one) => [one.id, new Set()]));
  const tie = (a, b) => (near.get(a).add(b), near.get(b).add(a));
  edges.forEach(({ claim, source }) => tie(claim, source));
  links.forEach(({ ends: [a, b] }) => tie(a, b));
  return near;
}

/** Claims on the left with room for the links between them, then the ties, then the sources. */
function places(width) {
  const arcs = Math.round(Math.min(44, width * 0.08));
  const free = width - arcs;
  return { arcs, claim: Math.round(free * 0.45), source: Math.round(free * 0.34), right: width };
}

function Lines({ drawn, at, width, pointed }) {
  const [from, to] = [at.arcs + at.claim, width - at.source];
  const middle = (from + to) / 2;
  const shade = (...ends) => (!pointed ? "" : ends.includes(pointed) ? "lit" : "far");
  return html`<svg width=${width} height=${drawn.height + 4} aria-hidden="true">
    ${drawn.groups.filter((group) => group.members.length > 1).map(
      (group) => html`<g key=${group.name} class="group">
        <rect x=${to - 6} y=${group.top} width=${at.source + 5} height=${group.bottom - group.top} rx="8" />
        <text x=${to} y=${group.top + 12}>counted once</text>
      </g>`,
    )}
    ${drawn.edges.map(
      (edge) => html`<path key=${`${edge.claim} ${edge.source} ${edge.kind}`}
        class="tie ${edge.kind} ${shade(edge.claim, edge.source)}"
        d="M${from} ${edge.from}C${middle} ${edge.from} ${middle} ${edge.to} ${to} ${edge.to}" />`,
    )}
    ${drawn.links.map((link) => {
      const reach = at.arcs - Math.min(at.arcs * 1.25, 10 + Math.abs(link.to - link.from) * 0.09);
      return html`<path key=${link.ends.join(" ")} class="tie ${link.kind} ${shade(...link.ends)}"
        d="M${at.arcs} ${link.from}C${reach} ${link.from} ${reach} ${link.to} ${at.arcs} ${link.to}" />`;
    })}
  </svg>`;
}

function box(left, width, y) {
  return { left: `${left}px`, width: `${width}px`, top: `${y - ROW / 2}px`, height: `${ROW}px` };
}

function Claim({ claim, at, shade, stop, lit }) {
  const kind = claim.disputes.length ? "odds" : MARKS[claim.mark]?.kind ?? "";
  return html`<button type="button" class="node claim ${kind} ${shade} ${lit === claim.id ? "lit" : ""}"
    data-node=${claim.id} style=${box(at.arcs, at.claim, claim.y)}
    tabindex=${stop === claim.id ? 0 : -1} aria-label=${`${claim.id} ${claim.text} ${relations(claim)}`}
    onClick=${() => showClaim(claim)}>
    <span class="label"><b>${claim.id}</b> <${Mark} mark=${claim.mark} /> <span
      dir="auto">${cut(claim.text, 120)}</span></span>
  </button>`;
}

function Source({ source, at, shade, stop, lit }) {
  return html`<button type="button" class="node source ${shade} ${lit === source.id ? "lit" : ""}"
    data-node=${source.id}
    style=${box(at.right - at.source, at.source - 6, source.y)} tabindex=${stop === source.id ? 0 : -1}
    aria-label=${`${source.id} ${source.title} (source)`} onClick=${() => showSource(source.id)}>
    <span class="label"><b>${source.id}</b> <span dir="auto">${cut(source.title, 100)}</span></span>
  </button>`;
}

function relations(claim) {
  const told = [
    MARKS[claim.mark]?.short, VERDICTS[claim.verdict],
    claim.sources.length && `rests on ${claim.sources.join(", ")}`,
    claim.against.length && `contradicted by ${claim.against.join(", ")}`,
    claim.disputes.length && `in conflict with ${claim.disputes.join(", ")}`,
    claim.replaced && `replaced by ${claim.replaced}`,
  ];
  return `(${told.filter(Boolean).join("; ")})`;
}

/** Its place in the text, or the passage it rests on where the text does not say it. */
function showClaim(claim) {
  if (!claim.statement) return claim.spans[0] ? openPassage(claim.spans[0], claim.id) : undefined;
  return jump(claim.statement, claim.id);
}

/** All of what is cut short in the node that is pointed at. */
function Words({ drawn, name }) {
  const claim = drawn.claims.find((one) => one.id === name);
  const source = drawn.sources.find((one) => one.id === name);
  const users = source && drawn.edges.filter((edge) => edge.source === name).map((edge) => edge.claim);
  if (!claim && !source) return null;
  return html`<div class="words" aria-hidden="true"><div>
    ${claim && html`<p><b>${claim.id}</b> <span dir="auto">${cut(claim.text, 320)}</span></p><p
      class="note">${relations(claim).slice(1, -1)}</p>`}
    ${source && html`<p><b>${source.id}</b> <span dir="auto">${cut(source.title, 200)}</span></p><p
      class="note">cited by ${users.join(", ")}</p>`}
  </div></div>`;
}
