// What the pictures of the evidence are drawn from: the report, or what there is of it at this moment.
import { computed } from "../core/html.js";
import { active, cards, draft, moment, report } from "../core/store.js";

/** {of: "report" | "draft" | "moment", sections, claims, sources} or null.
 *  A claim: {id, text, mark, verdict, sources, against, disputes, replaced, statement, sections}; `statement` is its
 *  first place in the text, `sections` are numbers. */
export const basis = computed(() => {
  const past = moment.value;
  if (past) {
    const { draft: then, evidence } = past.values;
    return then?.sections?.length ? drafted("moment", then.sections, evidence) : null;
  }
  if (draft.value?.sections.length && (active.value || !report.value)) {
    return drafted("draft", draft.value.sections, [...cards.value.values()]);
  }
  return report.value ? reported(report.value) : null;
});

function reported({ sections, claims, sources, coverage, not_found }) {
  const places = placed(sections);
  return {
    of: "report", sections, sources, coverage,
    missing: not_found,
    claims: claims.map((claim) => ({
      id: claim.id, text: claim.text, mark: claim.mark, verdict: claim.verdict,
      sources: named(claim.spans), against: named(claim.against),
      disputes: claim.disputed_by, replaced: claim.superseded_by,
      spans: claim.spans,
      statement: places.get(claim.id)?.statement ?? null,
      sections: places.get(claim.id)?.sections ?? [],
    })),
  };
}

const named = (spans) => [...new Set(spans.map((span) => span.source))];

/** While it is written there are sentences only: what they cite stands for the spans of their claims. */
function drafted(of, given, evidence = []) {
  const sections = given.map(({ title, lines = [], sentences = lines }) => ({ title, sentences: sentences.map(told) }));
  const places = placed(sections);
  const claims = new Map();
  const known = new Map(evidence.filter((one) => one.id).map((one) => [one.id, one]));
  const cited = new Set();
  for (const sentence of sections.flatMap((section) => section.sentences)) {
    for (const id of sentence.claims) {
      if (claims.has(id)) continue;
      sentence.citations.forEach((source) => cited.add(source));
      claims.set(id, {
        id, text: sentence.text, mark: sentence.mark, verdict: null, sources: sentence.citations,
        against: [], disputes: [], replaced: null, spans: [], ...places.get(id),
      });
    }
  }
  const sources = [...cited].map((id) => ({ id, title: "", group: id, ...known.get(id) }));
  return { of, sections, claims: [...claims.values()], sources, coverage: null, missing: [] };
}

function told({ text, claims = [], citations = [], mark = null, kind }) {
  return { text, claims, citations, mark, kind: kind ?? (claims.length ? "fact" : "frame") };
}

/** claim -> where the text says it */
function placed(sections) {
  const places = new Map();
  sections.forEach((section, s) =>
    section.sentences.forEach((sentence, n) =>
      sentence.claims.forEach((id) => {
        const place = places.get(id) ?? { statement: `${s}-${n}`, sections: [] };
        if (place.sections.at(-1) !== s) place.sections.push(s);
        places.set(id, place);
      }),
    ),
  );
  return places;
}

export const WHEN = {
  report: "",
  draft: "This is the draft so far.",
  moment: "This is the draft at that moment.",
};
