// A branch from the moment that is looked at, with something changed.
import { get, onceOnly, post, Problem } from "../core/api.js";
import { html, signal, useEffect, useRef, useState } from "../core/html.js";
import { go, place, threadId } from "../core/place.js";
import { Busy, Dialog, Wrong } from "../core/parts.js";
import { say } from "../core/store.js";
import { count } from "../core/words.js";
import { changes, effect, unchanged } from "./changes.js";
import { chosen, endOf, moments, values } from "./history.js";
import { Asked, RestsOn, Told, Work } from "./wishes.js";
import { named } from "./stages.js";

export const forking = signal(false);

export function ForkDialog() {
  const close = () => (forking.value = false);
  return html`<${Dialog} title="Fork from here" kind="fork" onClose=${close}>
    <${From} />
    ${values.value ? html`<${Form} close=${close} />` : html`<${Busy}>Opening this moment …</${Busy}>`}
  </${Dialog}>`;
}

const From = () => {
  const one = moments.value[chosen.value];
  return html`<div class="stack tight">
    <p>From <strong>${one ? named(one) : "now, the last moment"}</strong>. A new thread starts there;${" "}
      this one is not changed.</p>
    <p class="note">If a change takes effect earlier, the branch starts at that earlier moment, and the page says so.</p>
  </div>`;
};

function Form({ close }) {
  const [held] = useState(values.value); // an active run must not change what is being written here
  const [form, setForm] = useState(() => unchanged(held));
  const [state, setState] = useState({ busy: false, problem: null });
  const choices = useChoices();
  const once = useRef({});
  const made = changes(form, held);
  const set = (name) => (value) => setForm((before) => ({ ...before, [name]: value }));
  const submit = (event) => {
    event.preventDefault();
    send(made, once.current, setState, close);
  };
  return html`<form class="stack" onSubmit=${submit}>
    <${Told} form=${form} set=${set} choices=${choices} />
    <${Asked} form=${form} set=${set} choices=${choices} />
    <${RestsOn} form=${form} set=${set} choices=${choices} evidence=${held.evidence} />
    <${Work} form=${form} set=${set} choices=${choices} />
    <p class="effect" aria-live="polite">${count(Object.keys(made).length, "change")}. ${effect(made, held.next)}</p>
    ${state.problem && html`<${Wrong} problem=${state.problem} />`}
    <div class="row">
      <button type="submit" class="first-choice" disabled=${state.busy}>
        ${state.busy ? "Creating the branch …" : "Create branch"}</button>
      <button type="button" onClick=${close}>Cancel</button>
    </div>
  </form>`;
}

function useChoices() {
  const [choices, setChoices] = useState(null);
  useEffect(() => {
    get("/api/choices").then(setChoices, (error) => error instanceof Problem || Promise.reject(error));
  }, []);
  return choices;
}

/** A request that got no answer is sent again under its name, so that there are never two branches. */
async function send(made, once, setState, close) {
  const [id, checkpoint] = [threadId.value, place.value.at];
  const body = { ...(checkpoint ? { checkpoint } : {}), changes: made };
  if (once.body !== JSON.stringify(body)) Object.assign(once, { body: JSON.stringify(body), name: onceOnly() });
  setState({ busy: true, problem: null });
  try {
    const { threadId: branch } = await post(`/api/threads/${id}/fork`, body, { headers: once.name });
    close();
    const from = checkpoint ?? moments.value.at(-1)?.checkpoint;
    go({ thread: branch, panel: "timeline", with: endOf(id, moments.value, from) });
    say("The branch was created.", { help: await whereBegun(branch) });
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    once.body = problem.status ? "" : once.body; // what was refused may be corrected and sent again
    setState({ busy: false, problem });
  }
}

async function whereBegun(branch) {
  const root = await get(`/api/threads/${branch}/branches`).catch(() => null);
  const found = root && within(root, branch);
  return found?.moment ? `It continues from ${found.moment}: ${found.changed}.` : "";
}

const within = (node, id) => (node.thread === id ? node : node.branches.map((one) => within(one, id)).find(Boolean));
