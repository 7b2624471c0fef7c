// An answer that is not sent yet: it survives a closed drawer and a reload of the page, and is dropped once it is sent.
import { useState } from "../core/html.js";

const KEPT = "openassay.unsent.";

/** Like useState, for a part of the answer to one question. */
export function useUnsent(question, name, initial) {
  const key = `${KEPT}${question}.${name}`;
  const [value, setValue] = useState(() => JSON.parse(sessionStorage.getItem(key)) ?? initial);
  const change = (next) => {
    setValue(next);
    keep(key, next);
  };
  return [value, change];
}

function keep(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
  } catch (error) {
    if (error.name !== "QuotaExceededError") throw error; // then it lives as long as the drawer is open
  }
}

export function forget(question) {
  const own = `${KEPT}${question}.`;
  Object.keys(sessionStorage).filter((key) => key.startsWith(own)).forEach((key) => sessionStorage.removeItem(key));
}
