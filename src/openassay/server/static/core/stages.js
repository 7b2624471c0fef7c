// What the stages of the research graph are called, wherever a person reads of them.
const NAMES = {
  prepare: "Prepare the documents",
  understand: "Understand the question",
  clarify: "Ask what is meant",
  gate: "Choose how to work",
  question: "Ask back",
  plan: "Make a plan",
  approve_plan: "Have the plan approved",
  dispatch: "Hand out the searches",
  search: "Search",
  fuse: "Put results together",
  approve_harvest: "Have the pages approved",
  harvest: "Read pages",
  select: "Choose passages",
  read: "Look for evidence",
  consolidate: "Bring findings together",
  analyse: "See what is missing",
  verify: "Check every claim",
  approve_claims: "Have the claims approved",
  write: "Write",
  review: "Review",
  approve_review: "Have the review approved",
  revise: "Revise",
  approve_output: "Have the report approved",
  publish: "Publish",
  fallback: "Tell what was not found",
  withdraw: "Withdraw a source",
};

/** One that is not known here goes by its own name. */
export const stageName = (stage) =>
  NAMES[stage] ?? stage.replaceAll("_", " ").replace(/^./, (first) => first.toUpperCase());
