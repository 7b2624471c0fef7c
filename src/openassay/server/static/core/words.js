// How figures, times and marks are said.
export const MARKS = {
  "✓✓": { kind: "agreed", short: "corroborated", told: "Two or more independent sources agree." },
  "✓": { kind: "one", short: "verified", told: "One credible source." },
  "⚠": { kind: "single", short: "single source", told: "One source, which nothing else confirms." },
};
export const VERDICTS = {
  supported: "supported",
  partly: "partly supported",
  contradicted: "contradicted",
  not_found: "not found",
};
export const STATUSES = {
  queued: "queued",
  running: "running",
  waiting: "waiting for you",
  cancelled: "stopped",
  done: "done",
  failed: "failed",
};

export const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
export const number = (n) => Number(n).toLocaleString("en");
export const percent = (share) => `${Math.round(share * 100)}%`;

export function usd(amount) {
  if (!amount) return "$0";
  return amount < 0.01 ? `$${amount.toFixed(4)}` : `$${amount.toFixed(2)}`;
}

export function seconds(s) {
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${s.toFixed(1)} s`;
  return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

export const bytes = (n) => (n < 1e6 ? `${Math.max(1, Math.round(n / 1e3))} KB` : `${(n / 1e6).toFixed(1)} MB`);

/** A date without a time is the same day everywhere. */
export function day(iso) {
  const zone = iso?.length === 10 ? { timeZone: "UTC" } : {};
  return iso ? new Date(iso).toLocaleDateString("en", { dateStyle: "medium", ...zone }) : "";
}

export const time = (iso) => (iso ? new Date(iso).toLocaleTimeString("en", { hour12: false }) : "");
export const moment = (iso) => (iso ? `${day(iso)}, ${time(iso)}` : "");

/** "5 minutes ago", for lists. */
export function ago(iso, now = Date.now()) {
  const past = (now - new Date(iso)) / 1000;
  const [unit, size] = [["day", 86_400], ["hour", 3_600], ["minute", 60]].find(([, n]) => past >= n) ?? ["", 0];
  if (!unit) return "just now";
  return past > 30 * 86_400 ? day(iso) : `${count(Math.floor(past / size), unit)} ago`;
}

/** Messages of the server start with a small letter, for use within other text. One that starts with a name is kept. */
export function sentence(text) {
  const begun = text.replace(/^\p{Ll}(?=\p{L}*[\s,;])/u, (letter) => letter.toUpperCase());
  return begun + (!begun || /[.!?…:]$/.test(begun) ? "" : ".");
}

export const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);

/** An address that may be linked to: of others' pages only http and https, never a script. */
export function linkable(url) {
  try {
    const { protocol } = new URL(url);
    return protocol === "http:" || protocol === "https:" ? url : null;
  } catch {
    return null;
  }
}
