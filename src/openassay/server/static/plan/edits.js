// A plan and what a person changes in it, tried at once as the server will do it: what is shown is what will be
// researched. The rules are those of openassay/model/edit.py; positions count from 1.
export const MOST_QUESTIONS = 7;
const MOST_EDITS = 50;
export const LONGEST_TEXT = 500;
export const LONGEST_TITLE = 120;
const FEWEST_LETTERS = 4;

/** Why a change cannot be made. */
export class Refused extends Error {}

export function applied(plan, edits) {
  return edits.reduce((now, edit) => MADE[edit.op](now, edit), plan);
}

/** With one change more, or Refused. */
export function withEdit(plan, edits, edit) {
  const next = joined(edits, edit);
  if (next.length > MOST_EDITS) throw new Refused(`You can make at most ${MOST_EDITS} changes. Approve these, or undo some.`);
  applied(plan, next);
  return next;
}

const ONE_OF = ["words", "budget", "sources"];
const AGAIN = { reword: "question", move: "question", assign: "question", move_section: "title" };

/** An edit that repeats the previous one with other values replaces it. */
function joined(edits, edit) {
  if (ONE_OF.includes(edit.op)) return [...edits.filter((one) => one.op !== edit.op), edit];
  const [before, last] = [edits.slice(0, -1), edits.at(-1)];
  const same = AGAIN[edit.op];
  if (last?.op === edit.op && same && last[same] === edit[same]) return [...before, edit];
  if (last?.op === edit.op && edit.op === "rename_section" && last.name === edit.title) {
    return [...before, { ...last, name: edit.name }];
  }
  return [...edits, edit];
}

// -- what it looks like -------------------------------------------------------------------------------------

/** [{title, isLone, questions}]: a section that only repeats its one sub-question is not shown as one. */
export function outline(plan) {
  let number = 0;
  return plan.sections.map((title) => {
    const asked = plan.questions.filter((one) => one.section === title).map((one) => ({ ...one, number: ++number }));
    return { title, questions: asked, isLone: asked.length === 1 && asked[0].text === title };
  });
}

/** Sections that can be put under; one that is named after a long sub-question is that one's alone. */
export const nameable = (plan) => plan.sections.filter((title) => title.length <= LONGEST_TITLE);

/** What to do so that a sub-question comes to stand before or after another. */
export function dropped(plan, id, target, after) {
  const [one, other] = [known(plan, id), known(plan, target)];
  if (one.id === other.id) return [];
  const isLone = (section) => outline(plan).find((group) => group.title === section).isLone;
  if (one.section === other.section || (isLone(one.section) && isLone(other.section))) {
    return [placedBy(plan, one, other, after)];
  }
  const section = isLone(other.section) ? one.text.slice(0, LONGEST_TITLE) : other.section;
  const put = { op: "assign", question: one.id, section };
  return [put, placedBy(applied(plan, [put]), one, other, after)];
}

function placedBy(plan, one, other, after) {
  const ids = plan.questions.map((own) => own.id).filter((own) => own !== one.id);
  return { op: "move", question: one.id, to: ids.indexOf(other.id) + (after ? 2 : 1) };
}

/** One place up (-1) or down (+1) in its section or, where it is one by itself, among sections; null at the end. */
export function shifted(plan, group, question, step) {
  const groups = outline(plan).filter((one) => one.questions.length);
  const like = group.isLone ? groups.map((one) => one.questions[0]) : group.questions;
  const other = like[like.findIndex((one) => one.id === question.id) + step];
  return other ? placedBy(plan, question, other, step > 0) : null;
}

export function shiftedSection(plan, title, step) {
  const to = plan.sections.indexOf(title) + 1 + step;
  return to >= 1 && to <= plan.sections.length ? { op: "move_section", title, to } : null;
}

const TOLD = {
  add: (edit) => ["Added", edit.text],
  remove: (edit, plan) => ["Removed", known(plan, edit.question).text],
  move: (edit, plan) => ["Moved", known(plan, edit.question).text],
  reword: (edit) => ["Reworded", edit.text],
  assign: (edit, plan) => [`Moved to “${edit.section}”`, known(plan, edit.question).text],
  remove_section: (edit) => ["Removed the section", edit.title],
  move_section: (edit) => ["Moved", edit.title],
  rename_section: (edit) => ["Renamed the section", edit.name],
  words: (edit) => ["Length", `${edit.words.toLocaleString("en")} words`],
  budget: (edit) => ["Budget", `$${edit.usd.toFixed(2)} at most`],
  sources: (edit) => ["Sources", edit.names.join(", ")],
};

/** [what was done, to what] for each change. */
export function changesTold(plan, edits) {
  let now = plan;
  return edits.map((edit) => {
    const told = TOLD[edit.op](edit, now);
    now = MADE[edit.op](now, edit);
    return told;
  });
}

// -- the changes themselves ---------------------------------------------------------------------------------

const plain = (text) => text.toLowerCase();
const line = (text) => text.replace(/\s+/g, " ").trim();

function known(plan, id) {
  const found = plan.questions.find((one) => one.id === id);
  if (!found) throw new Refused(`There is no sub-question ${id}.`);
  return found;
}

const titled = (plan, title) => plan.sections.find((own) => plain(own) === plain(title));

export function asking(text) {
  const words = line(text);
  if ((words.match(/[\p{L}\p{M}]/gu) ?? []).length < FEWEST_LETTERS) {
    throw new Refused(`A sub-question needs at least ${FEWEST_LETTERS} letters.`);
  }
  if (words.length > LONGEST_TEXT) throw new Refused(`A sub-question can have at most ${LONGEST_TEXT} characters.`);
  return words;
}

export function heading(text) {
  const words = line(text);
  if (!words) throw new Refused("A section needs a title.");
  if (words.length > LONGEST_TITLE) throw new Refused(`A title can have at most ${LONGEST_TITLE} characters.`);
  return words;
}

function unasked(plan, text, besides) {
  const same = plan.questions.find((one) => one.id !== besides && plain(one.text) === plain(text));
  if (same) throw new Refused("Another sub-question already asks that.");
}

/** Sections stand in the order of their first sub-questions. One that has lost its last goes. */
function rebuilt(plan, questions, sections) {
  const held = [...new Set(questions.map((one) => one.section))];
  const emptied = new Set(plan.questions.map((one) => one.section).filter((title) => !held.includes(title)));
  const inTurn = held.values();
  const kept = [...new Set(sections)].filter((title) => !emptied.has(title));
  return { ...plan, questions, sections: kept.map((title) => (held.includes(title) ? inTurn.next().value : title)) };
}

function add(plan, { text, section }) {
  if (plan.questions.length >= MOST_QUESTIONS) {
    throw new Refused(`A plan can have at most ${MOST_QUESTIONS} sub-questions. Remove or reword one first.`);
  }
  unasked(plan, text);
  const wanted = section ?? (plan.depth === "quick" && plan.sections.length ? plan.sections[0] : text);
  const title = titled(plan, wanted) ?? wanted;
  const last = Math.max(0, ...plan.questions.map((one) => Number(/\d{1,9}$/.exec(one.id)?.[0] ?? 0)));
  const question = { id: `Q${last + 1}`, text, section: title, isNew: true };
  return rebuilt(plan, [...plan.questions, question], [...plan.sections, title]);
}

function without(plan, gone) {
  const questions = plan.questions.filter((one) => !gone.includes(one.id));
  if (!questions.length) throw new Refused("A plan needs a sub-question. Add another one first, or reword this one.");
  return rebuilt(plan, questions, plan.sections);
}

function move(plan, { question, to }) {
  const others = plan.questions.filter((one) => one.id !== question);
  return rebuilt(plan, others.toSpliced(to - 1, 0, { ...known(plan, question), isMoved: true }), plan.sections);
}

function reword(plan, { question, text }) {
  const old = known(plan, question);
  unasked(plan, text, question);
  const isShared = plan.questions.filter((one) => one.section === old.section).length > 1;
  const isNamedAfter = old.section === old.text && !isShared && [undefined, old.section].includes(titled(plan, text));
  const section = isNamedAfter ? text : old.section;
  const fresh = { ...old, text, section, was: old.was ?? old.text };
  const questions = plan.questions.map((one) => (one.id === question ? fresh : one));
  return rebuilt(plan, questions, plan.sections.map((title) => (title === old.section ? section : title)));
}

function assign(plan, { question, section }) {
  const title = titled(plan, section) ?? section;
  const put = { ...known(plan, question), section: title, isMoved: true };
  return rebuilt(plan, plan.questions.map((one) => (one.id === question ? put : one)), [...plan.sections, title]);
}

function removeSection(plan, { title }) {
  const rest = { ...plan, sections: plan.sections.filter((own) => own !== title) };
  if (!rest.sections.length) throw new Refused("A report needs a section. Add another one first, or rename this one.");
  const held = plan.questions.filter((one) => one.section === title).map((one) => one.id);
  return held.length ? without(rest, held) : rest;
}

function moveSection(plan, { title, to }) {
  const sections = plan.sections.filter((own) => own !== title).toSpliced(to - 1, 0, title);
  const questions = plan.questions.map((one) => (one.section === title ? { ...one, isMoved: true } : one));
  return { ...plan, sections, questions: sections.flatMap((own) => questions.filter((one) => one.section === own)) };
}

function renameSection(plan, { title, name }) {
  if (![undefined, title].includes(titled(plan, name))) throw new Refused(`There is already a section “${name}”.`);
  const renamed = (own) => (own === title ? name : own);
  const questions = plan.questions.map((one) => ({ ...one, section: renamed(one.section) }));
  return { ...plan, questions, sections: plan.sections.map(renamed) };
}

const MADE = {
  add,
  remove: (plan, { question }) => without(plan, [known(plan, question).id]),
  move,
  reword,
  assign,
  remove_section: removeSection,
  move_section: moveSection,
  rename_section: renameSection,
  words: (plan, { words }) => ({ ...plan, words }),
  budget: (plan, { usd }) => ({ ...plan, usd }),
  sources: (plan, { names }) => ({ ...plan, sources: names }),
};
