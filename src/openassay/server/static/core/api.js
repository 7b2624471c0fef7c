// Requests to the server, and who one is to it.
import { keep } from "./file.js";
import { signal } from "./html.js";
import { sentence } from "./words.js";

const KEPT = "openassay.token";

export const signedOut = signal(false); // the server wants a token, and there is none or it is no longer valid
export const turnedAway = signal(null); // the Problem, if a token was refused
export const reachable = signal(true); // whether the last request got any answer

/** What the server has refused, or that it could not be reached (status 0). */
export class Problem extends Error {
  constructor(status, told = {}) {
    super(told.detail || told.title || "The server could not be reached.");
    this.status = status;
    this.told = this.message; // as the server has put it
    this.help = told.help || "";
    this.errors = (told.errors || []).map(({ at, message }) => ({ at, message: message.replace(/^Input /, "it ") }));
    this.noThread = status === 404 && /^no (such )?thread\b/.test(this.message);
    Object.assign(this, inPlainWords(this));
    this.request = told.requestId || "";
    this.retryAfter = told.retryAfter || 0;
  }
}

const ALLOWED = { read: "view anything", write: "change anything", share: "share anything", metrics: "see the metrics" };

/** Messages meant for programs, reworded for people. */
function inPlainWords({ status, message, errors, noThread }) {
  const lacking = status === 403 && /may not (\w+)$/.exec(message)?.[1];
  if (lacking in ALLOWED) {
    const help = `The administrator of this server can give you one that may ${lacking}.`;
    return { message: `Your token does not let you ${ALLOWED[lacking]}`, help };
  }
  if (status === 401) return { message: message.replace(/^this token is no longer/, "your token is no longer"), help: WHOSE };
  if (noThread) return { message: "This thread was deleted, or is not yours", help: "" };
  if (status === 404 && message === "Not Found") return { message: "this no longer exists", help: "Reload the page." };
  if (status === 422 && errors.length) {
    return { message: "something you entered is not valid", help: errors.map(misfit).join(" ") };
  }
  return {};
}

const WHOSE = "The administrator of this server can give you another one.";

/** "body.days" is where a program looks. */
export const misfit = ({ at = "", message }) => `${sentence([at.replace(/^(body|query|path)\.?/, ""), message].filter(Boolean).join(": "))}`;

export function token() {
  return sessionStorage.getItem(KEPT) || localStorage.getItem(KEPT) || "";
}

/** For this tab or, if it is to be kept, for this browser. */
export function signIn(secret, keep) {
  signOut();
  (keep ? localStorage : sessionStorage).setItem(KEPT, secret.trim());
}

export function signOut() {
  sessionStorage.removeItem(KEPT);
  localStorage.removeItem(KEPT);
}

export function authorized(headers = {}) {
  return token() ? { ...headers, Authorization: `Bearer ${token()}` } : headers;
}

/** The response, or a Problem. `body` is sent as JSON unless it is a FormData. */
export async function request(method, path, { body, query, headers = {}, abort } = {}) {
  const plain = body === undefined || body instanceof FormData;
  const response = await sent(address(path, query), {
    method,
    headers: authorized(plain ? headers : { ...headers, "Content-Type": "application/json" }),
    body: plain ? body : JSON.stringify(body),
    signal: abort,
    cache: "no-cache",
  });
  if (response.ok || response.status === 304) return response;
  throw await refused(response);
}

async function sent(url, options) {
  try {
    const response = await fetch(url, options);
    reachable.value = true;
    return response;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    reachable.value = false;
    throw new Problem(0, { help: "Try again when it is back." });
  }
}

/** What a response that is no success says; somebody whose token is not good is signed out. */
export async function refused(response) {
  const told = await response.json().catch(() => ({ title: response.statusText }));
  const problem = new Problem(response.status, { ...told, retryAfter: Number(response.headers.get("Retry-After")) || 0 });
  if (problem.status === 401) {
    turnedAway.value = token() ? problem : null;
    signedOut.value = true;
  }
  return problem;
}

export function address(path, query = {}) {
  const named = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().filter((one) => one !== undefined && one !== null && one !== "").map((one) => [name, one]),
  );
  return named.length ? `${path}?${new URLSearchParams(named)}` : path;
}

async function content(method, path, options) {
  const response = await request(method, path, options);
  return response.status === 204 ? null : response.json();
}

export const get = (path, query, options) => content("GET", path, { ...options, query });
export const post = (path, body, options) => content("POST", path, { ...options, body });
export const put = (path, body, options) => content("PUT", path, { ...options, body });
export const patch = (path, body, options) => content("PATCH", path, { ...options, body });
export const remove = (path, options) => content("DELETE", path, options);

/** A file to keep. Fetched, since a plain link could not say who asks. */
export async function download(path, query, name) {
  const response = await request("GET", path, { query });
  keep(await response.blob(), name);
}

/** A name for a request that must not be carried out twice, however often it is sent. */
export const onceOnly = () => ({ "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()).slice(2) });
