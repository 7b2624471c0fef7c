// A thread that no longer exists: deleted in another tab, or by somebody else who is the same person.
import { get, Problem } from "../core/api.js";
import { batch, effect, untracked } from "../core/html.js";
import { threadId } from "../core/place.js";
import { events, moment, questions, refresh, report, runs, shelf, thread, trouble } from "../core/store.js";
import { load } from "./list.js";

const others = new BroadcastChannel("openassay.deleted"); // tabs of this browser

export const tellDeleted = (id) => others.postMessage(id);

others.addEventListener("message", ({ data }) => (data === threadId.value ? refresh() : load()));

/** Nobody tells a page of what another browser has deleted: it looks when it is looked at. */
document.addEventListener("visibilitychange", async () => {
  const id = threadId.value;
  if (document.visibilityState !== "visible" || !id || !thread.value) return;
  const told = await get(`/api/threads/${id}`).catch((error) => error);
  if (told instanceof Problem && told.noThread && threadId.value === id) trouble.value = told;
});

effect(() => {
  if (trouble.value?.noThread) untracked(clear);
});

function clear() {
  batch(() => {
    thread.value = report.value = moment.value = null;
    runs.value = questions.value = events.value = [];
    shelf.value = { sources: [], pinned: [], vetoed: [] };
  });
  load();
}
