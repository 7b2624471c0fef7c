// What the stages are called, and which belong together.
const SEARCH = "Search";

const STAGES = {
  understand: ["Ask", "understand the question"],
  clarify: ["Ask", "ask for clarification"],
  gate: ["Ask", "decide whether to ask first"],
  question: ["Ask", "ask before planning"],
  plan: ["Plan", "plan"],
  approve_plan: ["Plan", "get the plan approved"],
  dispatch: [SEARCH, "distribute the searches"],
  search: [SEARCH, "search"],
  fuse: [SEARCH, "choose what to read"],
  approve_harvest: [SEARCH, "get the pages approved"],
  harvest: [SEARCH, "fetch pages"],
  select: [SEARCH, "choose passages"],
  read: [SEARCH, "read"],
  consolidate: [SEARCH, "combine findings"],
  analyse: [SEARCH, "look for gaps"],
  verify: ["Check", "check the statements"],
  withdraw: ["Check", "remove sources"],
  approve_claims: ["Check", "get the statements approved"],
  write: ["Write", "write"],
  review: ["Review", "review the draft"],
  approve_review: ["Review", "get the review approved"],
  approve_output: ["Review", "get the report approved"],
  publish: ["Report", "finish the report"],
  fallback: ["Report", "finish with what was found"],
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
