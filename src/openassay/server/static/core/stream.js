// The events of a thread as they happen. EventSource cannot say who asks, so this reads the stream itself: it comes back
// after the last event it has heard, and nothing is lost or repeated.
import { address, authorized, reachable, refused } from "./api.js";

const SILENCE = 60_000; // ms without a sign of life after which a connection is taken for dead
const PAUSES = [500, 1_000, 2_000, 4_000, 8_000, 15_000]; // ms before the next try

/** `on.events(list)` gets what came together; `on.state(state)` one of
 *    {name: "connecting"} {name: "live"} {name: "lost", attempt, at, problem} {name: "ended"} {name: "refused", problem}.
 *  Returns a function that ends it. */
export function follow(thread, { run, after }, on) {
  const ending = new AbortController();
  listen(thread, { run, last: after }, on, ending.signal);
  return () => ending.abort();
}

async function listen(thread, from, on, ended) {
  for (let attempt = 0; !ended.aborted; ) {
    if (!attempt) on.state({ name: "connecting" });
    const heard = await connection(thread, from, on, ended).catch((error) => error);
    if (ended.aborted) return;
    if (heard === "ended") return on.state({ name: "ended" });
    if (heard?.status >= 400 && heard.status < 500 && heard.status !== 429) {
      return on.state({ name: "refused", problem: heard });
    }
    attempt = heard === "cut" ? 0 : attempt + 1; // one that had worked is tried again at once
    const usual = attempt ? PAUSES[Math.min(attempt - 1, PAUSES.length - 1)] : 100;
    const pause = Math.max(usual, (heard?.retryAfter ?? 0) * 1000); // as long as a server wants that has too much to do
    if (attempt) on.state({ name: "lost", attempt, at: Date.now() + pause, problem: heard?.status ? heard : null });
    await waited(pause, ended);
  }
}

/** "ended": nothing more will come; "cut": it ended before that, though something was heard; or what was wrong. */
async function connection(thread, from, on, ended) {
  const own = new AbortController();
  const stop = () => own.abort();
  ended.addEventListener("abort", stop);
  const watch = watchdog(stop);
  try {
    const response = await fetch(address(`/api/stream/${thread}`, from.last ? {} : { run: from.run }), {
      headers: authorized({ Accept: "text/event-stream", ...(from.last ? { "Last-Event-ID": from.last } : {}) }),
      signal: own.signal,
      cache: "no-store",
    });
    reachable.value = true;
    if (response.status === 204) return "ended";
    if (!response.ok) return await refused(response);
    on.state({ name: "live" });
    return (await read(response.body.getReader(), from, on, watch)) ? "cut" : null;
  } catch (error) {
    reachable.value = ended.aborted || error.name === "AbortError";
    return error;
  } finally {
    watch.end();
    ended.removeEventListener("abort", stop);
  }
}

function watchdog(stop) {
  let timer = setTimeout(stop, SILENCE);
  return {
    heard() {
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE);
    },
    end: () => clearTimeout(timer),
  };
}

async function read(reader, from, on, watch) {
  const decoder = new TextDecoder();
  let rest = "";
  for (let heard = 0; ; heard += 1) {
    const { done, value } = await reader.read().catch(() => ({ done: true }));
    if (done) return heard > 0;
    watch.heard();
    const pieces = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = pieces.pop();
    const events = pieces.map(parsed).filter(Boolean);
    if (!events.length) continue;
    from.last = events.findLast((event) => event.id)?.id ?? from.last;
    on.events(events);
  }
}

/** {id, name, ...the event} or nothing, for what only says that the server lives. */
export function parsed(piece) {
  const fields = { data: [] };
  for (const line of piece.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/s.exec(line) || [];
    if (name === "data") fields.data.push(value);
    else if (name) fields[name] = value;
  }
  if (!fields.event) return null;
  return { id: fields.id, name: fields.event, ...JSON.parse(fields.data.join("\n") || "{}") };
}

/** Less if the network comes back, or the page is looked at again. */
function waited(pause, ended) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      document.removeEventListener("visibilitychange", seen);
      ended.removeEventListener("abort", done);
      resolve();
    };
    const seen = () => document.visibilityState === "visible" && done();
    const timer = setTimeout(done, pause);
    addEventListener("online", done);
    document.addEventListener("visibilitychange", seen);
    ended.addEventListener("abort", done);
  });
}
