// Where to search: as the server is set up, by itself, or just in some places.
import { Choice } from "../core/parts.js";
import { html } from "../core/html.js";
import { count, usd } from "../core/words.js";
import { offered } from "./choices.js";
import { change, draft } from "./draft.js";

const KINDS = { web: "Web", academic: "Papers", news: "News", code: "Code", own: "On this server" };

/** `source` of a draft is null (as set up), "auto", or the names of some, maybe none yet. */
function picked() {
  const { source } = draft.value;
  return source === null || source === "auto" ? null : source.split(",").filter(Boolean);
}

function ways() {
  const usual = offered().defaults.source;
  const set = usual === "auto" ? [] : [{ name: "set", label: "Default" }];
  return [...set, { name: "auto", label: "Automatic" }, { name: "some", label: "Selected" }];
}

function way() {
  if (picked()) return "some";
  return draft.value.source ?? (offered().defaults.source === "auto" ? "auto" : "set");
}

const ABOUT = {
  set: "The default sources of this server.",
  auto: "Your documents, if you add any; otherwise every available source that suits the depth.",
  some: "Only the sources you select; until then, the default applies. A source that cannot be reached is not replaced by another.",
};

export function Places() {
  const list = picked();
  return html`<details class="fold" open=${list !== null}>
    <summary>Sources <span class="note">${summed(list)}</span></summary>
    <div class="stack">
      <${Choice} label="Where to search" value=${way()} choices=${ways()}
        onChange=${(name) => change({ source: { set: null, auto: "auto", some: list?.join(",") ?? "" }[name] })} />
      <p class="note">${ABOUT[way()]}</p>
      ${list && html`<${Ticks} list=${list} />`}
    </div>
  </details>`;
}

function summed(list) {
  if (list) return list.length ? list.join(", ") : "none selected yet";
  return way() === "set" ? `default: ${offered().defaults.source}` : "automatic";
}

function Ticks({ list }) {
  const groups = Map.groupBy(offered().sources, (one) => one.kind);
  const tick = ({ target }) => {
    const names = target.checked ? [...list, target.value] : list.filter((name) => name !== target.value);
    change({ source: names.join(",") });
  };
  return html`<div class="places" onChange=${tick}>
    ${Object.keys(KINDS).filter((kind) => groups.has(kind)).map(
      (kind) => html`<fieldset key=${kind}><legend>${KINDS[kind]}</legend>
        ${groups.get(kind).map((one) => html`<${Tick} key=${one.name} one=${one} on=${list.includes(one.name)} />`)}
      </fieldset>`,
    )}
  </div>`;
}

/** Documents are there as soon as some are given with the question. */
function Tick({ one, on }) {
  const given = draft.value.documents.length;
  const isThere = one.available || (one.name === "documents" && given > 0);
  const price = one.usd ? `${usd(one.usd)} per search` : "";
  const own = one.name === "documents" && given ? `${count(given, "document")} for this question` : "";
  const note = isThere ? own || price : one.reason;
  return html`<label class="tick ${isThere ? "" : "off"}">
    <input type="checkbox" value=${one.name} checked=${on} disabled=${!isThere && !on} />
    <span>${one.name.replaceAll("_", " ")}${note && html` <small>${note}</small>`}</span>
  </label>`;
}
