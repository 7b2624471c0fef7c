// Sign-in with a token, kept in this tab, or in the browser if the person wants that.
import { get, Problem, signIn, signOut, turnedAway } from "../core/api.js";
import { html, useState } from "../core/html.js";
import { Wrong } from "../core/parts.js";
import { belongs } from "./owner.js";

export function SignIn() {
  const [problem, setProblem] = useState(turnedAway.value);
  const [busy, setBusy] = useState(false);
  const enter = async (event) => {
    event.preventDefault();
    const { secret, keep } = event.currentTarget.elements;
    setBusy(true);
    signIn(secret.value, keep.checked);
    try {
      belongs((await get("/api/account")).user);
      location.reload(); // everything that was refused until now is asked for again
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      signOut();
      setProblem(error);
      setBusy(false);
    }
  };
  return html`<main class="signin"><form class="card stack" onSubmit=${enter}>
    <h1>OpenAssay</h1>
    <p>Sign in with a token to use this server. Its administrator can create one with <code>openassay admin users add NAME</code>.</p>
    <label class="field"><span>Token</span><input name="secret" type="password" required autocomplete="current-password" autofocus
      placeholder="openassay_…" spellcheck="false" /></label>
    <label class="row"><input name="keep" type="checkbox" /> Stay signed in on this browser</label>
    ${problem && html`<${Wrong} problem=${problem} />`}
    <div><button class="first-choice" disabled=${busy}>${busy ? "Signing in …" : "Sign in"}</button></div>
  </form></main>`;
}
