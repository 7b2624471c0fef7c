// Questions to start with: the built-in demo data can answer them, and so can the web.
import { html } from "../core/html.js";
import { change } from "./draft.js";

const QUESTIONS = [
  "How is Tesla doing, and what is it working on?",
  "Compare Apple and Microsoft: what is each worth, and where is each heading?",
  "What is Amazon betting on, and how have its shares done?",
];

export function Examples() {
  const take = (question) => {
    change({ goal: question });
    document.querySelector("[data-ask]").focus();
  };
  const each = (one) => html`<li key=${one}><button type="button" onClick=${() => take(one)}>${one}</button></li>`;
  return html`<section class="examples" aria-label="Examples">
    <h2>For example</h2>
    <ul>${QUESTIONS.map(each)}</ul>
  </section>`;
}
