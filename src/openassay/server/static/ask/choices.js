// What can be chosen when one asks, as this server has it. It is the same all the time, so it is asked for once.
import { get, Problem, reachable, signedOut } from "../core/api.js";
import { effect, signal, untracked } from "../core/html.js";

export const choices = signal(null); // GET /api/choices
export const unknown = signal(null); // the Problem, if they could not be had: one can ask all the same

const LABELS = { quick: "Quick", standard: "Standard", comprehensive: "Comprehensive", auto: "Auto", plan: "Plan" };

export const MODES = {
  auto: "Starts right away. It asks you something only if the question is unclear.",
  plan: "Asks you one to four questions first, then shows you the plan to edit and approve.",
};
const PLAIN = {
  depths: ["quick", "standard", "comprehensive"].map((name) => ({ name, about: "" })),
  modes: ["auto", "plan"], styles: [], sources: [],
  defaults: { depth: "standard", mode: "auto", source: "auto", style: "", words: "", usd: 2, model: null },
  files: { suffixes: [], maxMb: Infinity, most: 100 },
  words: [50, 20_000], longestQuestion: 2_000,
};

/** As the server says, or what any server takes until it does. */
export const offered = () => choices.value ?? PLAIN;
export const depths = () => offered().depths.map((one) => ({ ...one, label: LABELS[one.name] ?? one.name }));
export const modes = () => offered().modes.map((name) => ({ name, label: LABELS[name] ?? name, about: MODES[name] }));

export async function learn() {
  try {
    choices.value = await get("/api/choices");
    unknown.value = null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    unknown.value = error;
  }
}

effect(() => {
  if (!signedOut.value && reachable.value && !untracked(() => choices.value)) learn();
});
