// The question while it is written. It is kept in the tab, so neither a reload nor a refusal loses a word.
import { effect, signal } from "../core/html.js";

const KEPT = "openassay.draft";
const BLANK = {
  goal: "", depth: null, mode: null, source: null, web: false, usd: "",
  style: "", words: "", context: "", model: "", domains: "",
  documents: [], // {id, name, size}
};

export const draft = signal({ ...BLANK, ...kept(KEPT) });

effect(() => sessionStorage.setItem(KEPT, JSON.stringify(draft.value)));

export function kept(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name)) ?? {};
  } catch {
    return {}; // somebody else's
  }
}

export function change(what) {
  draft.value = { ...draft.value, ...what };
}

/** After it was asked. How one likes to ask is left as it was; what belonged to this question is not. */
export function blank() {
  const { depth, mode } = draft.value;
  draft.value = { ...BLANK, depth, mode };
}

/** What is sent to the server; defaults are left out. */
export function wishes(given) {
  const said = {
    goal: given.goal.trim(),
    depth: given.depth,
    source: given.source,
    web: given.web && given.documents.length > 0,
    usd: figure(given.usd),
    style: given.style,
    words: figure(given.words),
    context: given.context.trim(),
    model: given.model.trim(),
    domains: given.domains.split(/[\s,;]+/).filter(Boolean),
    documents: given.documents.map((one) => one.id),
  };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => isSaid(value)));
}

const figure = (text) => (String(text).trim() === "" ? null : Number(text));
const isSaid = (value) => (Array.isArray(value) ? value.length > 0 : value !== null && value !== "" && value !== false);
