// The artifacts pane: what a thread has made, and what people make of it.
import { download, get, onceOnly, post } from "../core/api.js";
import { html, useEffect, useState } from "../core/html.js";
import { Busy, Choice, Dialog, Empty, Wrong } from "../core/parts.js";
import { place, threadId, turn } from "../core/place.js";
import { attempt, generation, isEarlier, moment, report } from "../core/store.js";
import { ago } from "../core/words.js";
import { OpenArtifact } from "./artifact.js";
import { draftName, drafts } from "./drafts.js";
import { fileName } from "../core/file.js";

const EXPORTS = [
  { format: "md", label: "Markdown" },
  { format: "html", label: "Web page" },
  { format: "pdf", label: "PDF" },
  { format: "docx", label: "Word (DOCX)" },
  { format: "obsidian", label: "Obsidian", suffix: "md" },
  { format: "quarto", label: "Quarto", suffix: "qmd" },
  { format: "json", label: "JSON" },
  { format: "csv", label: "Statements (CSV)" },
  { format: "bibtex", label: "Sources (BibTeX)", suffix: "bib" },
  { format: "ris", label: "Sources (RIS)" },
  { format: "csl", label: "Sources (CSL-JSON)", suffix: "csl.json" },
  { format: "zip", label: "Everything (ZIP)" },
];
const ABOUT = {
  report: "The text of the report",
  figures: "Figures, with their dates and marks",
  claims: "Every statement and every source: which support it, which contradict it",
  findings: "What was found for each sub-question",
  sources: "What the report rests on",
};
const KINDS = [
  { name: "text", label: "Text", content: "" },
  {
    name: "table",
    label: "Table",
    content: {
      columns: [
        { key: "what", title: "What" },
        { key: "value", title: "Value" },
      ],
      rows: [["", ""]],
    },
  },
];

export function ArtifactsPane() {
  const name = place.value.artifact;
  return html`<section class="artifacts stack" aria-label="Artifacts">
    ${moment.value && html`<p class="art-note-box">The timeline shows an earlier moment. Artifacts are shown as they are now.</p>`}
    ${
      !moment.value &&
      isEarlier.value &&
      html`<p class="art-note-box">An earlier answer is shown. The artifacts are those of the latest answer.</p>`
    }
    ${
      name
        ? html`<${OpenArtifact} key=${`${threadId.value}/${name}`} name=${name} />`
        : html`<${List}
      key=${threadId.value} />`
    }
  </section>`;
}

function List() {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState(null);
  const [adding, setAdding] = useState(false);
  const load = () =>
    get(`/api/threads/${threadId.value}/artifacts`).then(
      (told) => (setFound(told.artifacts), setProblem(null)),
      setProblem,
    );
  useEffect(() => void load(), [generation.value]);
  if (problem) return html`<${Wrong} problem=${problem} again=${load} />`;
  if (!found) return html`<${Busy} />`;
  return html`<header class="row apart"><h2>Artifacts</h2><button type="button" class="small"
    onClick=${() => setAdding(true)}>Add your own</button></header>
    ${
      found.length
        ? html`<ul class="stack art-shelf">${found.map((one) => html`<${Entry} key=${one.name} one=${one} />`)}</ul>`
        : html`<${Empty}
        title="Nothing here yet."><p>Tables and the text of the report appear here when it is ready.</p></${Empty}>`
    }
    ${report.value && html`<${Exports} />`}
    ${adding && html`<${Adding} onClose=${() => setAdding(false)} />`}`;
}

function Entry({ one }) {
  const isUnsaved = Boolean(drafts.value[draftName(threadId.value, one.name)]);
  return html`<li><button type="button" class="art-entry card"
    onClick=${() => turn({ artifact: one.name }, { keep: true })}>
    <span class="art-sort" aria-hidden="true">${one.kind === "table" ? "▦" : "¶"}</span>
    <span class="art-of"><b dir="auto">${one.title}</b><span
      class="note">${one.own ? "Added by a person" : (ABOUT[one.name] ?? "")}</span></span>
    <span class="row art-tags">
      ${isUnsaved && html`<span class="chip orange">not saved</span>`}
      ${one.outdated && html`<span class="chip orange">report has changed since</span>`}
      ${one.edited && !one.own && html`<span class="chip green">edited</span>`}
      <span
        class="note">${one.kind === "table" ? "table" : "text"} · version ${one.version} · ${ago(one.updated)}</span>
    </span></button></li>`;
}

function Exports() {
  const save = ({ format, suffix = format }) =>
    attempt(() =>
      download(`/api/threads/${threadId.value}/export`, { format }, fileName(report.value.title || "report", suffix)),
    );
  return html`<section class="art-exports card stack" aria-labelledby="exports"><h3
    id="exports">Download the report</h3>
    <div class="row">${EXPORTS.map(
      (one) => html`<button type="button" class="small" key=${one.format}
      onClick=${() => save(one)}>${one.label}</button>`,
    )}</div>
    <p class="note">As OpenAssay wrote it. The ZIP also contains everything that was read, and the run log.</p></section>`;
}

function Adding({ onClose }) {
  const [title, setTitle] = useState("");
  const [kind, setKind] = useState("text");
  const add = async (event) => {
    event.preventDefault();
    const { content } = KINDS.find((one) => one.name === kind);
    await attempt(async () => {
      const made = await post(
        `/api/threads/${threadId.value}/artifacts`,
        { title: title.trim(), content },
        { headers: onceOnly() },
      );
      onClose();
      turn({ artifact: made.name }, { keep: true });
    }, "Added.");
  };
  return html`<${Dialog} title="Add your own" onClose=${onClose}><form class="stack" onSubmit=${add}>
    <label class="field"><span>Title</span><input autofocus required maxlength="200" value=${title}
      onInput=${(event) => setTitle(event.target.value)} /></label>
    <${Choice} label="Kind" value=${kind} choices=${KINDS} onChange=${setKind} />
    <div class="row"><button class="first-choice" disabled=${!title.trim()}>Add</button></div>
  </form></${Dialog}>`;
}
