// Long lists and tables: only the pieces near what is looked at are in the page; for the others there is their height.
import { html, useEffect, useRef, useState } from "./html.js";

const SIZE = 20;
const NEAR = "400px 0px";

/** `each(item, index)` for pieces of `items`, inside an element with data-scrolls. `height`: of one, as a first guess.
 *  `piece`: the tag of a piece, "tbody" for tables. */
export function Chunks({ items, each, height, piece = "div" }) {
  const pieces = [];
  for (let from = 0; from < items.length; from += SIZE) {
    pieces.push(html`<${Chunk} key=${from} from=${from} items=${items} each=${each} height=${height}
      piece=${piece} />`);
  }
  return pieces;
}

function Chunk({ items, from, each, height, piece }) {
  const box = useRef();
  const measured = useRef({ count: 0, height: 0 });
  const [near, setNear] = useState(from < 3 * SIZE);
  const count = Math.min(SIZE, items.length - from);
  useEffect(() => {
    const seen = (entries) => {
      if (!box.current) return; // it is being taken away
      const isNear = entries.at(-1).isIntersecting || box.current.contains(document.activeElement);
      if (!isNear && box.current.offsetHeight) measured.current = { count, height: box.current.offsetHeight };
      setNear(isNear);
    };
    const watch = new IntersectionObserver(seen, { root: box.current.closest("[data-scrolls]"), rootMargin: NEAR });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [count]);
  const known = measured.current.count === count ? measured.current.height : count * height;
  const gap = { height: `${known}px` };
  if (near)
    return html`<${piece}
    ref=${box}>${items.slice(from, from + count).map((item, at) => each(item, from + at))}</${piece}>`;
  if (piece !== "tbody") return html`<${piece} ref=${box} style=${gap}></${piece}>`;
  return html`<tbody ref=${box} aria-hidden="true"><tr style=${gap}><td></td></tr></tbody>`;
}
