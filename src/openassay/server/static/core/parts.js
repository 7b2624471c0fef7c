// Small pieces that every pane uses.
import { misfit } from "./api.js";
import { html, signal, useEffect, useRef, useState } from "./html.js";
import { link } from "./place.js";
import { notices, say, unsay } from "./store.js";
import { linkable, MARKS, sentence } from "./words.js";

/** ✓✓ ✓ ⚠: never by colour alone, and said to screen readers. */
export function Mark({ mark }) {
  const known = MARKS[mark];
  return known
    ? html`<b class="mark ${known.kind}" title=${known.told}><span aria-hidden="true">${mark}</span><span class="unseen">${known.short}</span></b>`
    : null;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p><strong>${title}</strong></p>${children}</div>`;
}

export function Busy({ children = "Loading …" }) {
  return html`<p class="busy" role="status"><span class="spinner" aria-hidden="true"></span>${children}</p>`;
}

/** What went wrong, what to do next, and a way to do it. */
export function Wrong({ problem, again }) {
  const { message, help, errors = [], noThread } = problem;
  const details = help ? [help] : errors.map(misfit);
  return html`<div class="wrong" role="alert">
    <p><strong>${sentence(message)}</strong></p>
    ${details.map((one) => html`<p key=${one}>${sentence(one)}</p>`)}
    ${noThread && html`<a class="button" ...${link({})}>New question</a>`}
    ${again && !noThread && html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`;
}

/** `[busy, act]`: what is pressed twice is done once. */
export function useBusy(work) {
  const [busy, setBusy] = useState(false);
  const isAt = useRef(false);
  const act = async (...given) => {
    if (isAt.current) return;
    isAt.current = true;
    setBusy(true);
    try {
      await work(...given);
    } finally {
      isAt.current = false;
      setBusy(false);
    }
  };
  return [busy, act];
}

/** A link to somebody else's page; what is no web address is shown as text. */
export function Outward({ url, children }) {
  const target = linkable(url);
  return target
    ? html`<a href=${target} target="_blank" rel="noopener noreferrer nofollow">${children ?? url}</a>`
    : html`<span>${children ?? url}</span>`;
}

const dialogs = signal([]); // those that are open, the topmost last

/** What the page has to say, for a while. Beneath an open dialog nothing could be read or pressed, so it is in there. */
export function Notices({ dialog = null, role = null }) {
  const isTop = (dialogs.value.at(-1) ?? null) === dialog;
  return html`<div class="notices" role=${role} aria-live="polite">
    ${isTop && notices.value.map(
      (one) => html`<div key=${one.id} class="said ${one.wrong ? "bad" : ""}">
        <div><p>${sentence(one.text)}</p>${one.help && html`<p class="note">${sentence(one.help)}</p>`}</div>
        ${one.act && html`<button type="button" onClick=${() => (unsay(one.id), one.act.run())}>${one.act.label}</button>`}
        <button type="button" class="plain icon" aria-label="Close this message" onClick=${() => unsay(one.id)}>✕</button>
      </div>`,
    )}
  </div>`;
}

/** A dialog of the browser's own: it keeps the focus, gives it back, and closes on Esc. `side`: at the edge. */
export function Dialog({ title, onClose, side = false, kind = "", children }) {
  const box = useRef();
  const pressed = useRef(null); // a selection that ends outside began inside
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    dialogs.value = [...dialogs.value, box];
    return () => {
      dialogs.value = dialogs.value.filter((one) => one !== box);
      before?.focus?.();
    };
  }, []);
  const outside = (event) => event.target === box.current && pressed.current === box.current && onClose();
  return html`<dialog ref=${box} class="${side ? "side" : "centre"} ${kind}" aria-label=${title} onClick=${outside}
    onPointerDown=${(event) => (pressed.current = event.target)}
    onCancel=${(event) => { event.preventDefault(); onClose(); }}>
    <div class="dialog">
      <header><h2>${title}</h2><button type="button" class="plain icon" aria-label="Close" onClick=${onClose}>✕</button></header>
      ${children}
    </div>
    <${Notices} dialog=${box} />
  </dialog>`;
}

/** As many of a long list as are looked at: the rest comes when one scrolls near. `reach(item)`: it must be among them. */
export function Many({ items, first = 60, each, reach, tag = "ul", ...more }) {
  const [shown, setShown] = useState(first);
  const end = useRef();
  const wanted = reach ? items.findIndex(reach) + 1 : 0;
  const most = Math.max(shown, wanted + (wanted ? 10 : 0));
  useEffect(() => {
    if (!end.current) return undefined;
    const watch = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && setShown(most + first), {
      rootMargin: "600px",
    });
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [most, items.length > most]);
  return html`<${tag} ...${more}>${items.slice(0, most).map(each)}</${tag}>
    ${items.length > most &&
    html`<p ref=${end} class="more"><button type="button" class="plain" onClick=${() => setShown(most + first)}>
      ${(items.length - most).toLocaleString("en")} more</button></p>`}`;
}

/** Buttons of which one is chosen; arrow keys move between them. `choices`: [{name, label, about}] */
export function Choice({ label, value, choices, onChange, disabled = false }) {
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = choices.findIndex((one) => one.name === value);
    const next = choices[(at + step + choices.length) % choices.length];
    onChange(next.name);
    event.currentTarget.querySelector(`[data-name="${next.name}"]`)?.focus();
  };
  return html`<div class="choice" role="radiogroup" aria-label=${label} onKeyDown=${key}>
    ${choices.map(
      (one) => html`<button type="button" role="radio" key=${one.name} data-name=${one.name} title=${one.about ?? ""} disabled=${disabled}
        aria-checked=${one.name === value ? "true" : "false"} tabindex=${one.name === value ? 0 : -1}
        onClick=${() => onChange(one.name)}>${one.label ?? one.name}</button>`,
    )}
  </div>`;
}

export async function copy(text, what = "Copied.") {
  try {
    await navigator.clipboard.writeText(text);
    say(what);
  } catch {
    say("The browser does not allow this page to copy.", { help: text });
  }
}

/** Whether one is writing somewhere, so that single keys are letters. */
export const isWriting = (target) => Boolean(target.closest?.("input, textarea, select, [contenteditable]"));
