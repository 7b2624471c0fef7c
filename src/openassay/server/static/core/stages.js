// What the stages of the research graph are called, wherever a person reads of them.
const NAMES = {
  prepare: "Prepare the documents",
  understand: "Understand the question",
  clarify: "Clarify the question",
  gate: "Choose how to work",
  question: "Ask you questions",
  plan: "Make a plan",
  approve_plan: "Get the plan approved",
  dispatch: "Distribute the searches",
  search: "Search",
  fuse: "Combine the results",
  approve_harvest: "Get the pages approved",
  harvest: "Read pages",
  select: "Choose passages",
  read: "Look for evidence",
  consolidate: "Combine the findings",
  analyse: "Look for gaps",
  verify: "Check every claim",
  approve_claims: "Get the claims approved",
  write: "Write",
  review: "Review",
  approve_review: "Get the review approved",
  revise: "Revise",
  approve_output: "Get the report approved",
  publish: "Publish",
  fallback: "Report what was not found",
  withdraw: "Withdraw a source",
};

/** One that is not known here goes by its own name. */
export const stageName = (stage) =>
  NAMES[stage] ?? stage.replaceAll("_", " ").replace(/^./, (first) => first.toUpperCase());
