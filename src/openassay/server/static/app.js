// The page: what stands where.
import { AnswerPane } from "./answer/answer.js";
import { PassageDialog } from "./answer/passage.js";
import { AskScreen } from "./ask/ask.js";
import { signedOut } from "./core/api.js";
import { Component, html, render } from "./core/html.js";
import { threadId } from "./core/place.js";
import { Planner } from "./plan/planner.js";
import { Connection } from "./shell/connection.js";
import { Header } from "./shell/header.js";
import { Keys } from "./shell/keys.js";
import { Notices } from "./shell/notices.js";
import { narrow, Panel, panel } from "./shell/panel.js";
import { SignIn } from "./shell/signin.js";
import "./shell/theme.js";
import { ThreadsPane } from "./threads/threads.js";

function App() {
  if (signedOut.value) return html`<${SignIn} />`;
  const side = threadId.value && html`<${Panel} key="panel" />`; // where it is narrow, its tabs stand above the answer
  return html`
    <a class="skip" href="#main">Skip to the answer</a>
    <${Header} />
    <${Connection} />
    <div class="columns" data-panel=${panel.value}>
      <${ThreadsPane} />
      ${narrow.value && side}
      <main key="main" id="main" tabindex="-1">${threadId.value ? html`<${AnswerPane} />` : html`<${AskScreen} />`}</main>
      ${!narrow.value && side}
    </div>
    <${Planner} />
    <${PassageDialog} />
    <${Keys} />
    <${Notices} />
  `;
}

/** A fault of ours in one place must not leave a page that looks whole and does nothing. */
class Whole extends Component {
  static getDerivedStateFromError(fault) {
    return { fault };
  }

  render({ children }, { fault }) {
    return fault
      ? html`<main class="first stack"><h1>Something went wrong on this page</h1>
          <p>Nothing is lost: the research continues without the page.</p><p class="note">${String(fault)}</p>
          <p><a class="button" href=${location.pathname}>Reload this thread</a> <a class="button" href="/">Start over</a></p></main>`
      : children;
  }
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${Whole}><${App} /></${Whole}>`, root);
