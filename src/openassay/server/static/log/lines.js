// What an event says to a person: {kind, text, more, tags, wrong}.
import { stageName } from "../core/stages.js";
import { bytes, count, number, seconds, STATUSES, usd, VERDICTS } from "../core/words.js";

export const KINDS = [
  { name: "step", label: "Steps" },
  { name: "search", label: "Searches" },
  { name: "read", label: "Pages read" },
  { name: "skip", label: "Left out" },
  { name: "model", label: "Model calls" },
  { name: "finding", label: "Findings" },
  { name: "answer", label: "Answer" },
  { name: "question", label: "Questions" },
  { name: "notice", label: "Notices" },
  { name: "error", label: "Errors" },
  { name: "cached", label: "From cache" }, // beside another kind
];
export const LABELS = {
  step: "step",
  search: "search",
  read: "read",
  skip: "left out",
  model: "model",
  finding: "finding",
  answer: "answer",
  question: "question",
  notice: "notice",
  error: "error",
};

const text = (value) => (value === undefined || value === null ? "" : String(value));
const many = (n, one, several) => (typeof n === "number" ? count(n, one, several) : "");
const joined = (...parts) => parts.filter(Boolean).join(" · ");
const took = (data) => (typeof data.seconds === "number" ? seconds(data.seconds) : "");
const cached = (data) => (data.cached === true ? ["cached"] : []);

const TELLERS = {
  run: ({ data }) => ({
    kind: data.status === "failed" ? "error" : "step",
    text: `The run is ${STATUSES[data.status] ?? text(data.status)}`,
    more: text(data.error) || (data.request ? `request ${data.request}` : ""),
  }),
  enter: ({ stage }) => ({ kind: "step", text: stageName(stage) }),
  leave: ({ stage, data }) => ({ kind: "step", text: decided(stage, data), more: text(data.reason), time: took(data) }),
  error: ({ data }) => ({
    kind: "error",
    text: text(data.message) || "Something failed",
    more: joined(text(data.help), text(data.source), text(data.query), text(data.category).replace("_", " ")),
  }),
  notice: ({ data }) => ({
    kind: "notice",
    text: text(data.text ?? data.reason),
    more: data.failed ? `failed: ${data.failed}` : "",
  }),
  search: ({ stage, data }) => (stage === "fuse" ? fused(data) : searched(data)),
  read: ({ data }) => (data.files !== undefined ? indexed(data) : data.url ? pageRead(data) : chosen(data)),
  skip: ({ data }) => ({ kind: "skip", text: text(data.path), more: text(data.reason), tags: cached(data) }),
  finding: ({ data }) => ({
    kind: "finding",
    text: text(data.text),
    more: joined(many(data.findings, "finding"), many(data.documents, "document")),
  }),
  section: ({ stage, data }) =>
    stage === "plan"
      ? {
          kind: "step",
          text: "The plan is ready",
          more: joined(many(data.questions?.length, "question"), many(data.queries, "query", "queries")),
        }
      : { kind: "answer", text: text(data.title), more: many(data.sentences, "sentence") },
  citation: ({ data }) => ({ kind: "answer", text: `Cites ${text(data.id)}: ${text(data.title) || text(data.url)}` }),
  token: ({ data }) => ({ kind: "answer", text: "Draft", more: text(data.text) }),
  interrupt: ({ data }) => ({
    kind: "question",
    text: text(data.question),
    more: (data.options ?? []).map((one) => text(one.label ?? one)).join(" · "),
  }),
  quote: ({ data }) => ({
    kind: "model",
    text: data.calls
      ? `Expected to cost ${usd(data.usd)}, ${usd(data.most_usd)} at most`
      : "No language model is used; it costs nothing",
    more: joined(text(data.model), data.calls ? many(data.calls, "call") : ""),
  }),
  think: ({ data }) => ({
    kind: "model",
    text: `Reasoning: ${joined(text(data.step), text(data.task))}`,
    more: joined(`by ${text(data.by)}`, data.repaired ? "repaired" : ""),
    time: took(data),
  }),
  spend: ({ data }) => ({
    kind: "model",
    text: joined(text(data.model), text(data.step), text(data.task)),
    more: paid(data),
    time: took(data),
  }),
  done: ({ data }) => ({
    kind: "answer",
    text: "The report is ready",
    more: joined(
      `confidence ${text(data.confidence)}`,
      many(data.sources, "source"),
      `${text(data.checked)} of ${text(data.total)} checked`,
    ),
  }),
};

function decided(stage, data) {
  if (data.mode) return `Runs in ${data.mode} mode`;
  if (data.claims === undefined) return `${stageName(stage)}: done`;
  const found = Object.keys(VERDICTS)
    .filter((name) => data[name])
    .map((name) => `${data[name]} ${VERDICTS[name]}`);
  return `${count(data.claims, "claim")} checked: ${found.join(", ")}`;
}

const searched = (data) => ({
  kind: "search",
  text: text(data.query),
  tags: cached(data),
  time: took(data),
  more: joined(text(data.source), many(data.hits, "hit")),
});
const fused = (data) => ({
  kind: "search",
  text: `${many(data.documents, "document")} found`,
  more: joined(
    many(data.passages, "passage"),
    data.pages ? `${count(data.pages, "page")} to fetch` : "",
    data.cached ? `${data.cached} of ${data.asked} searches from cache` : "",
  ),
});
const indexed = (data) => ({
  kind: "read",
  text: `${count(data.files, "document")} available`,
  more: joined(`${number(data.new ?? 0)} new`, `${number(data.removed ?? 0)} removed`),
});
const pageRead = (data) => ({
  kind: "read",
  text: text(data.title) || text(data.url),
  tags: cached(data),
  time: took(data),
  more: joined(text(data.host), many(data.words, "word"), data.bytes ? bytes(data.bytes) : ""),
});
const chosen = (data) => ({
  kind: "read",
  text: `${many(data.passages, "passage") || "Passages"} chosen`,
  more: joined(many(data.read, "page read", "pages read"), many(data.copies, "copy", "copies")),
});

function paid(data) {
  const tokens = data.prompt_tokens || data.completion_tokens;
  return joined(
    usd(data.usd),
    data.confirmed === false ? "counted at its maximum" : "",
    tokens ? `${number(data.prompt_tokens ?? 0)} + ${number(data.completion_tokens ?? 0)} tokens` : "",
    data.total_usd ? `${usd(data.total_usd)} so far` : "",
  );
}

const known = new WeakMap(); // events never change, so each is worded only once

export function line(event) {
  let told = known.get(event);
  if (!told) {
    told = {
      tags: [],
      more: "",
      time: "",
      ...(TELLERS[event.kind]?.(event) ?? { kind: "notice", text: event.kind }),
      event,
    };
    told.wrong = told.kind === "error";
    told.found = `${told.text} ${told.more} ${event.stage} ${event.kind}`.toLowerCase();
    known.set(event, told);
  }
  return told;
}
