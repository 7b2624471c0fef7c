// The ways between the stages of the research graph.
import { computed, html } from "../core/html.js";
import { happened } from "./happened.js";

const nameOf = (edge) => `${edge.from} ${edge.to}`;

/** Ways that were taken: from what ended last before a stage began. Several may end before one that waits for all. */
const taken = computed(() => {
  const ways = new Set();
  let ended = ["__start__"];
  let hasBegun = false;
  for (const { kind, stage, data } of happened.value) {
    if (kind === "leave") {
      ended = hasBegun ? [stage] : [...ended, stage];
      hasBegun = false;
    } else if (kind === "enter") {
      ended.forEach((before) => ways.add(`${before} ${stage}`));
      hasBegun = true;
    } else if (kind === "run" && data.status === "done") ended.forEach((before) => ways.add(`${before} __end__`));
  }
  return ways;
});

export function Routes({ edges, placed, width, tall, lit }) {
  const kind = (edge) => [
    edge.back ? "back" : "", taken.value.has(nameOf(edge)) ? "taken" : "",
    !lit ? "" : edge.from === lit || edge.to === lit ? "lit" : "far",
  ].join(" ");
  const isTaken = (edge) => taken.value.has(nameOf(edge));
  const ways = [...edges].sort((a, b) => isTaken(a) - isTaken(b)); // those that were taken above the others
  return html`<svg width=${width} height=${tall} aria-hidden="true">
    <defs>
      ${["", "taken"].map((one) => html`<marker id="head-${one || "open"}" class="head ${one}" viewBox="0 0 8 8"
        refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path
          d="M0 0L8 4L0 8Z" /></marker>`)}
    </defs>
    ${ways.map((edge) => html`<path key=${nameOf(edge)} class="way ${kind(edge)}"
      d=${route(placed.get(edge.from), placed.get(edge.to), placed)}
      marker-end="url(#head-${taken.value.has(nameOf(edge)) ? "taken" : "open"})" />`)}
  </svg>`;
}

/** Straight down where nothing is in the way, else beside the lane: at the left, or at the right where it leads back.
 *  To another lane it turns once, so that ways to the same stage run together. */
function route(a, b, placed) {
  if (a === b) return loop(a);
  const isBack = b.y < a.y;
  if (a.lane !== b.lane) return across(a, b, isBack);
  if (isBack) return around(a, b, 1);
  return between(a, b, placed) ? around(a, b, -1) : `M${middle(a)} ${a.y + a.tall}V${b.y}`;
}

const middle = (node) => node.x + node.wide / 2;
const side = (node, other) => (other.x > node.x ? node.x + node.wide : node.x);

function between(a, b, placed) {
  for (const one of placed.values()) if (one.lane === a.lane && one.layer > a.layer && one.layer < b.layer) return true;
  return false;
}

/** From the middle lane sideways, then down; from a side down, then into the middle; from side to side in a gap. */
function across(a, b, isBack) {
  const up = isBack ? -1 : 1;
  const shift = isBack ? 16 : 0; // apart from the way that leads there
  const [out, into] = [a.y + a.tall / 2, b.y + b.tall / 2];
  if (a.lane === 1) return turned(side(a, b), out, middle(b) + shift, isBack ? b.y + b.tall : b.y, false);
  if (b.lane === 1) return turned(middle(a) + shift, isBack ? a.y : a.y + a.tall, side(b, a), into + up * -3, true);
  const [gap, on] = [b.y - 5, Math.sign(b.x - a.x)];
  const [x1, x2] = [middle(a), middle(b)];
  const down = `M${x1} ${a.y + a.tall}V${gap - 8}Q${x1} ${gap} ${x1 + 8 * on} ${gap}`;
  return `${down}H${x2 - 6 * on}Q${x2} ${gap} ${x2} ${b.y}`;
}

/** One rounded corner; `isFirst`: up or down before it goes sideways. */
function turned(x1, y1, x2, y2, isFirst) {
  const r = Math.min(10, Math.abs(x2 - x1), Math.abs(y2 - y1));
  const [dx, dy] = [r * Math.sign(x2 - x1), r * Math.sign(y2 - y1)];
  return isFirst
    ? `M${x1} ${y1}V${y2 - dy}Q${x1} ${y2} ${x1 + dx} ${y2}H${x2}`
    : `M${x1} ${y1}H${x2 - dx}Q${x2} ${y1} ${x2} ${y1 + dy}V${y2}`;
}

function around(a, b, way) {
  const edge = way > 0 ? a.x + a.wide : a.x;
  const far = edge + way * (10 + Math.min(22, Math.abs(b.layer - a.layer) * 3));
  const apart = 4 * Math.sign(b.y - a.y);
  const [y1, y2] = [a.y + a.tall / 2 + apart, b.y + b.tall / 2 - apart];
  return `M${edge} ${y1}C${far} ${y1} ${far} ${y2} ${edge} ${y2}`;
}

function loop(node) {
  const [x, y] = [node.x + node.wide, node.y + node.tall / 2];
  return `M${x} ${y - 6}C${x + 9} ${y - 10} ${x + 9} ${y + 10} ${x} ${y + 6}`;
}
