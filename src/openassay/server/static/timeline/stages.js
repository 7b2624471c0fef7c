// What the stages are called, and which belong together.
const SEARCH = "Search";

const STAGES = {
  understand: ["Ask", "understand the question"],
  clarify: ["Ask", "ask back"],
  gate: ["Ask", "decide whether to ask first"],
  question: ["Ask", "ask before planning"],
  plan: ["Plan", "plan"],
  approve_plan: ["Plan", "have the plan approved"],
  dispatch: [SEARCH, "hand out the searches"],
  search: [SEARCH, "search"],
  fuse: [SEARCH, "choose what to read"],
  approve_harvest: [SEARCH, "have the pages approved"],
  harvest: [SEARCH, "fetch pages"],
  select: [SEARCH, "choose passages"],
  read: [SEARCH, "read"],
  consolidate: [SEARCH, "put findings together"],
  analyse: [SEARCH, "look for gaps"],
  verify: ["Check", "check the statements"],
  withdraw: ["Check", "take sources out"],
  approve_claims: ["Check", "have the statements approved"],
  write: ["Write", "write"],
  review: ["Review", "review the draft"],
  approve_review: ["Review", "have the review approved"],
  approve_output: ["Review", "have the report approved"],
  publish: ["Report", "finish the report"],
  fallback: ["Report", "finish with what there is"],
};

export const stageWords = (names) => names.map((name) => STAGES[name]?.[1] ?? name).join(", ");

/** "Ask", "Plan", "Search 1", "Search 2", "Check" ... */
export function phaseOf({ after, round }) {
  const phase = STAGES[after.at(-1)]?.[0] ?? "Ask";
  return phase === SEARCH ? `${SEARCH} ${Math.max(round, 1)}` : phase;
}

/** "Moment 18, after: check the statements" */
export function named(one) {
  return `Moment ${one.number}, ${one.after.length ? `after: ${stageWords(one.after)}` : "at the beginning"}`;
}
