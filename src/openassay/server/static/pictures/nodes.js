// The nodes of a picture are buttons above its lines. One of them is in the tab order, arrow keys lead to the others.
import { useRef, useState } from "../core/html.js";

const KEYS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"];

/** {lit, stop, on}: the node that is pointed at, the one that Tab leads to, and what listens for all of them.
 *  `next(node, key)` says where a key leads. */
export function useNodes(names, next) {
  const [lit, setLit] = useState(null);
  const [last, setLast] = useState(null);
  const box = useRef();
  const pointed = (event) => event.target.closest("[data-node]")?.dataset.node ?? null;
  const on = {
    ref: box,
    onMouseOver: (event) => setLit(pointed(event)),
    onMouseLeave: () => setLit(null),
    onFocusIn: (event) => {
      setLit(pointed(event));
      setLast(pointed(event));
    },
    onFocusOut: () => setLit(null),
    onKeyDown: (event) => {
      const here = pointed(event);
      if (!here || !KEYS.includes(event.key)) return;
      event.preventDefault();
      const there = next(here, event.key);
      if (there) box.current.querySelector(`[data-node="${CSS.escape(there)}"]`)?.focus();
    },
  };
  return { lit, stop: names.includes(last) ? last : names[0], on };
}

/** Where a key leads in a column. */
export function along(column, name, key) {
  const at = column.indexOf(name);
  if (key === "Home") return column[0];
  if (key === "End") return column.at(-1);
  return column[at + (key === "ArrowDown" ? 1 : -1)];
}
