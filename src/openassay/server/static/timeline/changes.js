// What is to be different on a branch.

/** The form as it is opened: what there was, and nothing changed. */
export function unchanged(values) {
  return {
    deliverable: "", style: "", words: "", depth: "", source: "", web: "", model: "", usd: "",
    question: values?.user_inputs.goal ?? "",
    steps: (values?.plan?.dag ?? []).map(({ id, text }) => ({ id, text, was: text, gone: false })),
    without: [],
  };
}

const TEXTS = ["deliverable", "style", "depth", "source", "model"];
const FIGURES = ["words", "usd"];

/** ChangesBody: only what differs from what there was. */
export function changes(form, values) {
  const made = {};
  for (const name of TEXTS) if (form[name].trim()) made[name] = form[name].trim();
  for (const name of FIGURES) if (form[name] !== "") made[name] = Number(form[name]);
  if (form.web) made.web = form.web === "yes";
  if (form.question.trim() !== (values?.user_inputs.goal ?? "").trim()) made.question = form.question.trim();
  if (form.without.length) made.without = form.without;
  const edits = editsOf(form.steps);
  if (edits.length) made.edits = edits;
  return made;
}

/** Removed ones last, as a plan is never without a sub-question. */
function editsOf(steps) {
  const now = steps.map(({ id, text, was, gone }) => ({ id, was, text: gone ? "" : text.trim() }));
  const [old, added] = [now.filter((one) => one.id), now.filter((one) => !one.id && one.text)];
  return [
    ...old.filter((one) => one.text && one.text !== one.was).map(({ id, text }) => ({ op: "reword", question: id, text })),
    ...added.map(({ text }) => ({ op: "add", text })),
    ...old.filter((one) => !one.text).map(({ id }) => ({ op: "remove", question: id })),
  ];
}

/** From where on the work is redone; `next`: what was due at the moment. */
export function effect(made, next) {
  if (made.question !== undefined || made.depth) return EFFECTS.question;
  if (made.source || made.web !== undefined || made.without || made.edits) return EFFECTS.search;
  if (made.deliverable || made.style || made.words) return EFFECTS.writing;
  if (Object.keys(made).length) return EFFECTS.work;
  return next.length ? EFFECTS.again : EFFECTS.copy;
}

const EFFECTS = {
  question: "A different question or depth takes effect from the start of the question.",
  search: "Different sources or a different plan take effect before the search.",
  writing: "Changes to the writing take effect before the report is written: what was found and checked is kept.",
  work: "This takes effect from this moment on.",
  again: "Nothing has been changed yet: the branch would repeat the same steps from this moment on.",
  copy: "Nothing has been changed yet: the branch would be a copy.",
};
