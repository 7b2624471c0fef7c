// An approval at any other place: what there is to decide about, and what can be changed there.
import { html } from "../core/html.js";
import { Body } from "./body.js";
import { ClaimsApproval } from "./claims.js";
import { Decisions } from "./decisions.js";
import { DraftApproval } from "./draft.js";
import { HarvestApproval } from "./harvest.js";
import { Shown } from "./shown.js";

const PLACES = {
  approve_harvest: HarvestApproval,
  approve_claims: ClaimsApproval,
  approve_review: DraftApproval,
  approve_output: DraftApproval,
};

export function Breakpoint({ question }) {
  const Place = PLACES[question.kind] ?? Anything;
  return html`<${Place} question=${question} mayChange=${question.options.includes("modify")} />`;
}

function Anything({ question }) {
  return html`<${Body} question=${question}><${Shown} shown=${question.shown} /></${Body}>
    <${Decisions} question=${question} changes=${null} />`;
}
