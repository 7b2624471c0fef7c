// One artifact, opened: read, edited, saved as a new version, taken back.
import { remove, request } from "../core/api.js";
import { html, useEffect, useState } from "../core/html.js";
import { Busy, Choice, Dialog, Wrong } from "../core/parts.js";
import { threadId, turn } from "../core/place.js";
import { attempt, generation, say } from "../core/store.js";
import { ago, moment } from "../core/words.js";
import { draftName, drafts, dropDraft, keepDraft } from "./drafts.js";
import { fileName, kept } from "../core/file.js";
import { Markdown } from "./markdown.js";
import { TableArtifact } from "./table.js";
import { Versions } from "./versions.js";

export const pathOf = (name) => `/api/threads/${threadId.value}/artifacts/${encodeURIComponent(name)}`;

async function fetched(name, version) {
  const response = await request("GET", pathOf(name), { query: { version } });
  return { ...(await response.json()), tag: response.headers.get("ETag") };
}

/** `latest`: what the server has; `old`: an earlier version that is looked at; a draft comes before both. */
export function OpenArtifact({ name }) {
  const [latest, setLatest] = useState(null);
  const [problem, setProblem] = useState(null);
  const [old, setOld] = useState(null);
  const [theirs, setTheirs] = useState(false);
  const [wide, setWide] = useState(false);
  const key = draftName(threadId.value, name);
  const draft = drafts.value[key];
  const load = () => fetched(name).then((one) => (setLatest(one), setProblem(null)), setProblem);
  useEffect(() => void load(), [name, generation.value]);
  if (problem && !(problem.status === 404 && draft))
    return html`<${Back} /><${Wrong} problem=${problem}
    again=${load} />`;
  if (!latest && !problem) return html`<${Back} /><${Busy} />`;
  const conflict = Boolean(draft && draft.tag !== (latest?.tag ?? null));
  const shown = old ?? (theirs && conflict ? latest : (draft ?? latest));
  const one = {
    name,
    key,
    latest,
    draft,
    conflict,
    shown,
    load,
    setLatest,
    setOld,
    setTheirs,
    old,
    theirs: theirs && conflict,
  };
  const body = html`<${Opened} one=${one} wide=${wide} />`;
  return html`<${Back} onWide=${() => setWide(true)} />${
    wide
      ? html`<${Dialog} title=${shown.title} kind="wide"
    onClose=${() => setWide(false)}>${body}</${Dialog}>`
      : body
  }`;
}

function Back({ onWide }) {
  return html`<div class="row apart art-back"><button type="button" class="plain small"
    onClick=${() => turn({ artifact: null })}>
      <span aria-hidden="true">←</span> All artifacts</button>
    ${onWide && html`<button type="button" class="small art-widen" onClick=${onWide}>Full width</button>`}</div>`;
}

function Opened({ one, wide }) {
  const { latest, draft, shown, old, theirs, name } = one;
  const readOnly = Boolean(old || theirs);
  const change = (part) =>
    keepDraft(one.key, { title: shown.title, content: shown.content, tag: latest?.tag ?? null, ...draft, ...part });
  const isText = typeof shown.content === "string";
  return html`<article class="artifact stack" aria-label=${shown.title}>
    ${!wide && html`<${Title} title=${shown.title} readOnly=${readOnly} onChange=${(title) => change({ title })} />`}
    <${About} one=${one} />
    <${Notes} one=${one} />
    ${isText && html`<${TextArtifact} key=${old?.version ?? ""} title=${shown.title} text=${shown.content}
      readOnly=${readOnly} onChange=${(content) => change({ content })} />`}
    ${!isText && html`<${TableArtifact} key=${`${old?.version ?? ""}${theirs}`} title=${shown.title} table=${shown.content}
      readOnly=${readOnly} source=${shown === draft ? null : { path: pathOf(name), version: old?.version }}
      onChange=${(content) => change({ content })} />`}
    ${!wide && latest && html`<${Versions} one=${one} look=${(version) => looked(one, version)} />`}
  </article>`;
}

function Title({ title, readOnly, onChange }) {
  const [editing, setEditing] = useState(false);
  const done = (event) => {
    setEditing(false);
    const text = event.target.value.trim();
    if (text && text !== title) onChange(text);
  };
  const key = (event) => {
    if (event.key === "Escape") event.target.value = title;
    if (event.key === "Escape" || event.key === "Enter") event.target.blur();
  };
  if (editing)
    return html`<input class="art-title" aria-label="Title" autofocus maxlength="200" value=${title}
    ref=${(box) => box?.focus()} onBlur=${done} onKeyDown=${key} />`;
  return html`<div class="row art-titled"><h2 dir="auto">${title}</h2>
    ${
      !readOnly &&
      html`<button type="button" class="plain small"
      onClick=${() => setEditing(true)}>Rename</button>`
    }</div>`;
}

function About({ one }) {
  const { latest, draft, old, theirs, conflict } = one;
  const by = latest?.edited ? "edited" : "made by OpenAssay";
  return html`<div class="row apart art-about">
    <p class="note">${latest ? `Version ${latest.version}, ${by} ${ago(latest.updated)}` : "It no longer exists."}
      ${" "}${draft && html`<span class="chip orange">not saved</span>`}</p>
    <div class="row">
      ${
        draft &&
        !old &&
        !theirs &&
        html`<button type="button" class="first-choice" disabled=${conflict}
        onClick=${() => save(one, draft)}>Save</button>
        <button type="button" onClick=${() => discarded(one)}>Discard</button>`
      }
    </div>
  </div>`;
}

/** What a person has to know before anything else. */
function Notes({ one }) {
  const { latest, draft, conflict, old, theirs, setOld, setTheirs } = one;
  if (old) {
    return html`<div class="art-note-box"
      role="status"><p>You are viewing version ${old.version}, from ${moment(old.updated)}.</p>
      <div class="row"><button type="button" disabled=${Boolean(draft)}
        onClick=${() => save(one, old)}>Restore this version</button>
        <button type="button"
          onClick=${() => setOld(null)}>${draft ? "Back to your changes" : "Back to the latest"}</button></div>
      ${draft && html`<p class="note">Save or discard your changes before you restore another version.</p>`}</div>`;
  }
  if (conflict) {
    return html`<div class="art-note-box orange"
      role="alert"><p><strong>${changedBy(latest)}</strong> Your changes are kept here and not saved.</p><div
      class="row">
      ${
        latest &&
        html`<button type="button"
        onClick=${() => setTheirs(!theirs)}>${theirs ? "See mine" : "See theirs"}</button>`
      }
      <button type="button" class="first-choice"
        onClick=${() => save(one, { ...draft, tag: latest?.tag ?? null })}>Save mine as a new version</button>
      <button type="button"
        onClick=${() => discarded(one)}>${latest ? "Use theirs" : "Discard mine"}</button></div></div>`;
  }
  if (latest?.outdated) {
    return html`<div class="art-note-box orange"
      role="status"><p>The report has changed since this was edited. Your version is kept.</p><${GoBack}
      one=${one} /></div>`;
  }
  return latest?.edited && !draft ? html`<${GoBack} one=${one} />` : null;
}

function changedBy(latest) {
  if (!latest) return "This was deleted while you were editing.";
  return latest.edited
    ? `Version ${latest.version} was saved while you were editing.`
    : "OpenAssay made a new version while you were editing.";
}

/** Every version that people have made goes, so it is asked for twice. */
function GoBack({ one }) {
  const [asking, setAsking] = useState(false);
  const { latest, name } = one;
  const [label, told] = latest.own
    ? ["Delete this artifact", "All its versions will be deleted. This cannot be undone."]
    : [
        "Restore OpenAssay's version",
        "All edited versions are deleted and replaced by the version OpenAssay made from the report. This cannot be undone.",
      ];
  const gone = async () => {
    setAsking(false);
    const done = await attempt(
      () => remove(pathOf(name), { headers: { "If-Match": latest.tag } }),
      latest.own ? "Deleted." : "OpenAssay's version was restored.",
    );
    if (!done) return one.load();
    dropDraft(one.key);
    return fetched(name).then(one.setLatest, () => turn({ artifact: null })); // this report may make none
  };
  return html`<div class="row"><button type="button" class="small"
    onClick=${() => setAsking(true)}>${label}</button></div>
    ${
      asking &&
      html`<${Dialog} title=${label} onClose=${() => setAsking(false)}><p>${told}</p>
      <div class="row"><button type="button" class="danger" onClick=${gone}>${label}</button><button type="button"
        onClick=${() => setAsking(false)}>Keep it as it is</button></div></${Dialog}>`
    }`;
}

function TextArtifact({ title, text, readOnly, onChange }) {
  const [mode, setMode] = useState("read");
  const modes = [
    { name: "read", label: "Read" },
    { name: "edit", label: readOnly ? "Source" : "Edit" },
  ];
  return html`<div class="stack art-text">
    <div class="row apart"><${Choice} label="View" value=${mode} choices=${modes} onChange=${setMode} />
      <div class="row art-files"><span class="note">Download</span><button type="button" class="small"
        onClick=${() => kept(text, fileName(title, "md"), "text/markdown")}>Markdown</button></div></div>
    ${
      mode === "read"
        ? html`<${Markdown} text=${text} />`
        : html`<textarea class="art-source" aria-label="Markdown" dir="auto" spellcheck="true" readonly=${readOnly}
        value=${text} onInput=${(event) => onChange(event.target.value)}></textarea>`
    }
  </div>`;
}

// -- what is carried out ------------------------------------------------------------------------------------

const looked = ({ name, latest, setOld }, version) =>
  attempt(async () => setOld(version === latest.version ? null : await fetched(name, version)));

function discarded({ key, setTheirs, load }) {
  dropDraft(key);
  setTheirs(false);
  return load();
}

/** A new version after the one that was seen. Somebody who was quicker is shown, never written over. */
async function save({ name, key, latest, load, setLatest, setOld, setTheirs }, { title, content, tag: seen, version }) {
  const tag = version === undefined ? seen : latest.tag; // an old version goes on top of the latest
  await attempt(async () => {
    try {
      const response = await request("PUT", pathOf(name), {
        body: { title, content },
        headers: tag ? { "If-Match": tag } : {},
      });
      const saved = { ...(await response.json()), tag: response.headers.get("ETag") };
      settle(key, content, saved.tag);
      setLatest(saved);
      setOld(null);
      setTheirs(false);
      say(`Saved as version ${saved.version}.`);
    } catch (problem) {
      if (problem.status !== 412) throw problem;
      await load();
    }
  });
}

/** What was written while the request was under way is not saved yet. */
function settle(key, content, tag) {
  const now = drafts.value[key];
  if (now && now.content !== content) keepDraft(key, { ...now, tag });
  else dropDraft(key);
}
