// Moving among statements, by pointer, touch and keyboard. One set of listeners serves all of them; what is highlighted
// is set on the page itself, so that nothing is rendered again.
import { html, signal, useEffect, useRef, useSignalEffect } from "../core/html.js";
import { place, turn } from "../core/place.js";
import { basis, focus, showSource } from "../core/store.js";
import { Proof } from "./proof.js";

const BEFORE = 250; // ms a pointer rests on a statement before its card comes
const BETWEEN = 120; // ms where another card is open already
const AFTER = 350; // ms to get from a statement onto its card
const narrow = matchMedia("(max-width: 900px)");

/** `find(name)`: the sentence of that name. */
export function Reader({ find, children }) {
  const root = useRef();
  const held = useRef(null);
  held.current ??= new Reading(root);
  const own = held.current;
  useEffect(() => own.begin(), []);
  useEffect(() => own.offer());
  useSignalEffect(() => {
    if (basis.value) own.light(focus.value);
  });
  return html`<div class="reader" ref=${root} onMouseOver=${own.over} onMouseMove=${own.move} onMouseLeave=${own.leave}
    onFocusIn=${own.focused} onFocusOut=${own.blurred} onClick=${own.pressed} onKeyDown=${own.key}>
    ${children}
    <${Proof} open=${own.open} root=${root} find=${find} close=${own.close} />
  </div>`;
}

class Reading {
  open = signal(null); // {name, by: "hover" | "focus" | "press"}: whose card is shown, and why
  #root;
  #timer = 0;
  #pointer = [];
  #before = null; // what was pointed at last, once this was looked at

  constructor(root) {
    this.#root = root;
  }

  /** What is heard of outside of the text; the function that is returned ends it. */
  begin() {
    const own = new AbortController();
    const heard = { signal: own.signal };
    addEventListener("openassay:next", () => this.#step(1), heard);
    addEventListener("openassay:previous", () => this.#step(-1), heard);
    document.addEventListener("keydown", this.#escape, { ...heard, capture: true });
    document.addEventListener("pointerdown", this.#outside, heard);
    return () => {
      clearTimeout(this.#timer);
      own.abort();
    };
  }

  // -- the card -------------------------------------------------------------------------------------------

  #show(name, by) {
    clearTimeout(this.#timer);
    if (this.open.value?.name !== name || this.open.value.by !== by) this.open.value = { name, by };
  }

  #later(work, pause) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(work, pause);
  }

  /** If the focus was on the card, it returns to the statement. */
  close = () => {
    clearTimeout(this.#timer);
    const isWithin = this.#root.current?.querySelector(".proof")?.contains(document.activeElement);
    const statement = isWithin && this.#element(this.open.value.name);
    this.open.value = null;
    if (!statement) return;
    statement.dataset.quiet = ""; // or its card would come again
    statement.focus();
    delete statement.dataset.quiet;
  };

  #escape = (event) => {
    if (event.key !== "Escape" || !this.open.value || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    this.close();
  };

  #outside = ({ target }) => {
    if (this.open.value && !this.#root.current?.contains(target) && !target.closest?.("dialog")) this.close();
  };

  // -- pointer --------------------------------------------------------------------------------------------

  over = ({ target, clientX, clientY }) => {
    const [x, y] = this.#pointer;
    this.#pointer = [clientX, clientY];
    if (x === clientX && y === clientY) return; // the text has scrolled under a pointer that rests
    if (target.closest(".proof")) return clearTimeout(this.#timer);
    const name = target.closest(".statement")?.dataset.name;
    if (name) this.#later(() => this.#show(name, "hover"), this.open.value ? BETWEEN : BEFORE);
    else this.leave();
  };

  move = ({ clientX, clientY }) => {
    this.#pointer = [clientX, clientY];
  };

  leave = () => {
    if (this.open.value?.by === "hover") this.#later(this.close, AFTER);
    else clearTimeout(this.#timer);
  };

  pressed = ({ target }) => {
    const cite = target.closest(".cite[data-source]");
    if (cite) {
      this.#before = focus.value = {};
      return showSource(cite.dataset.source, cite.dataset.claim);
    }
    const name = target.closest(".statement")?.dataset.name;
    if (!name || String(getSelection())) return;
    if (this.open.value?.by === "press" && this.open.value.name === name) this.close();
    else this.#show(name, "press");
  };

  // -- keyboard: one statement, with its sources, is on the way of the Tab key ------------------------------

  /** After each rendering: the first, unless one was there before. */
  offer() {
    const all = this.#root.current;
    const first = all.querySelector(".statement[tabindex='0']") ?? all.querySelector(".statement");
    if (first) reachable(first, 0);
  }

  #settle(statement) {
    this.#root.current.querySelectorAll(".statement[tabindex='0']").forEach((one) => reachable(one, -1));
    reachable(statement, 0);
  }

  #step(by) {
    const all = [...this.#root.current.querySelectorAll(".statement")];
    const at = all.findIndex((one) => one.tabIndex === 0);
    const isBegun = this.open.value || all[at]?.contains(document.activeElement);
    const next = all[isBegun ? Math.min(Math.max(at + by, 0), all.length - 1) : Math.max(at, 0)];
    next?.scrollIntoView({ block: "center" });
    next?.focus({ focusVisible: true, preventScroll: true });
  }

  focused = ({ target }) => {
    const statement = target.closest(".statement");
    if (!statement) return;
    this.#settle(statement);
    const isMeant = target === statement && !("quiet" in statement.dataset) && target.matches(":focus-visible");
    if (isMeant) this.#show(statement.dataset.name, "focus");
  };

  blurred = ({ relatedTarget }) => {
    if (this.open.value?.by !== "focus" || relatedTarget?.closest?.(".proof, dialog")) return;
    if (relatedTarget?.closest?.(".statement")?.dataset.name !== this.open.value.name) this.close();
  };

  key = (event) => {
    if (!event.target.classList.contains("statement")) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) this.#step(by);
    else if (event.key === "Enter") this.#enter(event.target.dataset.name);
    else return;
    event.preventDefault();
  };

  #enter(name) {
    this.#show(name, "press");
    requestAnimationFrame(() => this.#root.current.querySelector(".proof button")?.focus());
  }

  // -- what is pointed at, here or in another pane ----------------------------------------------------------

  /** Pointing at the same statement again scrolls again; pointing at a source leaves the text where it is. */
  light(now) {
    const past = this.#before;
    this.#before = now;
    this.#root.current?.querySelectorAll("[data-lit]").forEach((one) => delete one.dataset.lit);
    const statement = now.statement && this.#element(now.statement);
    if (!statement) return;
    statement.dataset.lit = "";
    const isSource = now.source && (now.source !== past?.source || now.claim !== past?.claim);
    if (now.statement === past?.statement && isSource) return;
    if (past && narrow.matches && (place.peek().panel ?? "answer") !== "answer") turn({ panel: "answer" });
    this.#settle(statement);
    statement.scrollIntoView({ block: document.querySelector(".verify") ? "start" : "center" }); // not behind the walk
  }

  #element(name) {
    return this.#root.current?.querySelector(`#statement-${CSS.escape(name)}`);
  }
}

function reachable(statement, index) {
  statement.tabIndex = index;
  statement.querySelectorAll(".cite").forEach((cite) => (cite.tabIndex = index));
}
