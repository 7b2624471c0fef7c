// A place for each stage of the research graph: layers by the longest way from the start, in three lanes.
const START = "__start__", END = "__end__";
const LANES = { side: 0, main: 1, person: 2 };

/** Stages at which a person is asked. */
export const asks = (name) => /^(approve_|clarify$|question$)/.test(name);

/** {nodes: [{name, layer, lane}], edges: [{from, to, back, conditional}], layers}: `lane` is 1 for the longest
 *  way that asks nobody, 2 for where a person is asked, 0 for the rest. An edge is `back` if it closes a circle. */
export function layered({ nodes, edges }) {
  const names = nodes.map((node) => node.name);
  const back = circles(names, edges);
  const onward = edges.filter((edge) => !back.has(edge));
  const layer = depths(names, onward);
  const main = new Set(longest(names.filter((name) => !asks(name)), onward));
  const lane = (name) => (asks(name) ? LANES.person : main.has(name) ? LANES.main : LANES.side);
  return {
    nodes: nodes.map((node) => ({ ...node, layer: layer.get(node.name), lane: lane(node.name) })),
    edges: edges.map((edge) => ({ ...edge, back: back.has(edge) })),
    layers: Math.max(...layer.values()) + 1,
  };
}

/** Edges that lead back to a stage one has come from. */
function circles(names, edges) {
  const out = new Map(names.map((name) => [name, edges.filter((edge) => edge.from === name)]));
  const back = new Set();
  const state = new Map();
  const visit = (name) => {
    state.set(name, "open");
    for (const edge of out.get(name) ?? []) {
      if (state.get(edge.to) === "open") back.add(edge);
      else if (!state.has(edge.to)) visit(edge.to);
    }
    state.set(name, "closed");
  };
  for (const name of [START, ...names]) if (!state.has(name)) visit(name);
  return back;
}

/** How many edges lie on the longest way to each; there are no circles. */
function depths(names, edges) {
  const into = new Map(names.map((name) => [name, edges.filter((edge) => edge.to === name)]));
  const depth = new Map();
  const found = (name) => {
    if (!depth.has(name)) depth.set(name, Math.max(0, ...(into.get(name) ?? []).map((edge) => found(edge.from) + 1)));
    return depth.get(name);
  };
  names.forEach(found);
  return depth;
}

/** The longest way from the start to the end over these stages; of two, that of the stage named first. */
function longest(names, edges) {
  const own = new Set(names);
  const out = (name) => edges.filter((edge) => edge.from === name && own.has(edge.to));
  const longer = (a, b) => b.length - a.length || names.indexOf(a[0]) - names.indexOf(b[0]);
  const ways = new Map();
  const way = (name) => {
    if (name === END) return [END];
    if (!ways.has(name)) {
      const [rest] = out(name).map((edge) => way(edge.to)).filter(Boolean).sort(longer);
      ways.set(name, rest ? [name, ...rest] : null);
    }
    return ways.get(name);
  };
  return way(START) ?? names;
}
