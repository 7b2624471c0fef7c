// Whose the things are that this browser keeps: drafts, answers begun, changes not saved, judgements. Whoever comes next
// gets none of them.
const KEPT = "openassay.owner";
const STAYS = ["openassay.theme", "openassay.keys"]; // how this browser is set, whoever sits before it

function forget(but) {
  for (const storage of [sessionStorage, localStorage]) {
    const ours = Object.keys(storage).filter((name) => name.startsWith("openassay.") && !but.includes(name));
    for (const name of ours) storage.removeItem(name);
  }
}

/** Some write down what is new as the page goes: this listener is the last of them. */
function forgetAll(but) {
  forget(but);
  addEventListener("pagehide", () => forget(but));
}

export function leave() {
  forgetAll(STAYS);
  addEventListener("pageshow", () => location.reload()); // the way back must not show it as it was
  location.assign("/");
}

/** Whether what is kept here is `user`'s. What is somebody else's goes, and the page has to be reloaded. */
export function belongs(user) {
  const owner = sessionStorage.getItem(KEPT);
  if (owner === user) return true;
  if (owner) forgetAll([...STAYS, "openassay.token", KEPT]);
  sessionStorage.setItem(KEPT, user);
  return !owner;
}
