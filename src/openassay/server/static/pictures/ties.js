// Claims and sources as two columns, and the ties between them. Everything is counted, nothing is simulated: the same
// report is always drawn alike, and 3,000 claims with 500 sources take no longer than a glance.
const MOST = { claims: 30, sources: 24 }; // what can be told apart on a screen
const ROW = 46, GAP = 8, HEAD = 16; // px: a node, between nodes, the line above sources of one origin
const SWEEPS = 4;

/** The most connected part of a section, or of all: {claims, sources, groups, edges, links, left, of, height}.
 *  Claims and sources have `y`, their middle; a group is {name, members, top, bottom}; a link ties two claims. */
export function tied({ claims, sources }, section = null) {
  const within = section === null ? claims : claims.filter((claim) => claim.sections.includes(section));
  const shown = most(within, MOST.claims, weight);
  const uses = counted(shown.flatMap(cited));
  const kept = most(sources.filter((source) => uses.has(source.id)), MOST.sources, (source) => uses.get(source.id));
  const all = { claims: within.length, sources: new Set(within.flatMap(cited)).size };
  const order = ordered(shown, grouped(kept));
  const height = placed(order);
  const known = new Map(kept.map((source) => [source.id, source]));
  return {
    ...order, height,
    sources: order.groups.flatMap((group) => group.members),
    edges: order.claims.flatMap((claim) => edges(claim, known)),
    links: links(order.claims),
    left: { claims: all.claims - shown.length, sources: all.sources - kept.length },
    of: all,
  };
}

const weight = ({ sources, against, disputes }) => sources.length + 2 * (against.length + disputes.length);
const cited = (claim) => [...claim.sources, ...claim.against];

function counted(names) {
  const times = new Map();
  for (const name of names) times.set(name, (times.get(name) ?? 0) + 1);
  return times;
}

/** Those with the most weight, in the order they came in. Copies, since they are given a place. */
function most(list, n, heavy) {
  const weighed = list.map((one, at) => ({ at, weight: heavy(one) }));
  const heaviest = weighed.sort((a, b) => b.weight - a.weight || a.at - b.at);
  return heaviest.slice(0, n).sort((a, b) => a.at - b.at).map(({ at }) => ({ ...list[at] }));
}

function grouped(sources) {
  const groups = new Map();
  for (const source of sources) {
    if (!groups.has(source.group)) groups.set(source.group, { name: source.group, members: [] });
    groups.get(source.group).members.push(source);
  }
  return [...groups.values()];
}

/** Each in turn is sorted by where its neighbours stand, so that fewer lines cross. */
function ordered(claims, groups) {
  let [left, right] = [claims, groups];
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const users = new Map();
    left.forEach((claim, at) => cited(claim).forEach((id) => users.set(id, [...(users.get(id) ?? []), at])));
    right = sorted(right, (group) => group.members.flatMap((source) => users.get(source.id) ?? []));
    const places = new Map();
    right.flatMap((group) => group.members).forEach((source, at) => places.set(source.id, at));
    left = sorted(left, (claim) => cited(claim).filter((id) => places.has(id)).map((id) => places.get(id)));
  }
  return { claims: left, groups: right };
}

function sorted(list, neighbours) {
  const keyed = list.map((one, at) => {
    const found = neighbours(one);
    return { one, at, middle: found.length ? found.reduce((sum, n) => sum + n, 0) / found.length : Infinity };
  });
  return keyed.sort((a, b) => (a.middle === b.middle ? a.at - b.at : a.middle - b.middle)).map(({ one }) => one);
}

/** Claims stand close; sources beside the claims that cite them, as far as there is room. Returns the height. */
function placed({ claims, groups }) {
  claims.forEach((claim, at) => (claim.y = at * (ROW + GAP) + ROW / 2));
  const size = (group) => group.members.length * (ROW + GAP) - GAP + (group.members.length > 1 ? HEAD + GAP : 0);
  const needed = groups.reduce((sum, group) => sum + size(group) + GAP, -GAP);
  const height = Math.max(claims.length * (ROW + GAP) - GAP, needed, ROW);
  const users = new Map();
  claims.forEach((claim) => cited(claim).forEach((id) => users.set(id, [...(users.get(id) ?? []), claim.y])));
  let [from, rest] = [0, needed];
  for (const group of groups) {
    const ys = group.members.flatMap((source) => users.get(source.id) ?? []);
    const wished = ys.length ? ys.reduce((sum, y) => sum + y, 0) / ys.length - size(group) / 2 : from;
    group.top = Math.min(Math.max(from, wished), height - rest);
    group.bottom = group.top + size(group);
    const head = group.members.length > 1 ? HEAD : 0;
    group.members.forEach((source, at) => (source.y = group.top + head + at * (ROW + GAP) + ROW / 2));
    from = group.bottom + GAP;
    rest -= size(group) + GAP;
  }
  return height;
}

function edges(claim, known) {
  const tie = (kind, id) => ({ kind, claim: claim.id, source: id, from: claim.y, to: known.get(id).y });
  const shown = (ids) => ids.filter((id) => known.has(id));
  return [...shown(claim.sources).map((id) => tie("for", id)), ...shown(claim.against).map((id) => tie("against", id))];
}

function links(claims) {
  const known = new Map(claims.map((claim) => [claim.id, claim]));
  const found = new Map();
  const tie = (kind, a, b) => {
    if (!known.has(b)) return;
    found.set([a, b].sort().join(" "), { kind, ends: [a, b], from: known.get(a).y, to: known.get(b).y });
  };
  for (const claim of claims) {
    if (claim.replaced) tie("replaced", claim.id, claim.replaced);
    claim.disputes.forEach((other) => tie("disputed", claim.id, other));
  }
  return [...found.values()];
}
