"use strict";
// The graph of a family: documents are drawn near those they resemble, and their sets as coloured hulls.
(() => {
  const SIZE = 600, EDGE = 28, STEPS = 260;
  const COLOURS = 8; // most sets with a colour of their own
  const NUMBERED = 60; // most documents for which each shows its number

  const svg = (tag, properties, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(properties || {})) if (value !== null) element.setAttribute(name, String(value));
    element.append(...children.flat().filter((child) => child !== null));
    return element;
  };

  // Fruchterman and Reingold 1991, Graph drawing by force-directed placement. Deterministic: equal input, equal places.
  function place(size, edges) {
    const x = new Float64Array(size), y = new Float64Array(size), degree = new Float64Array(size);
    for (let at = 0; at < size; at += 1) {
      const turn = 2.399963 * at, far = 0.5 * Math.sqrt((at + 0.5) / size); // a sunflower
      x[at] = far * Math.cos(turn);
      y[at] = far * Math.sin(turn);
    }
    for (let at = 0; at < edges.length; at += 3) {
      degree[edges[at]] += 1;
      degree[edges[at + 1]] += 1;
    }
    const wish = 0.8 / Math.sqrt(size);
    for (let step = 0; step < STEPS; step += 1) {
      const dx = new Float64Array(size), dy = new Float64Array(size);
      for (let i = 0; i < size; i += 1) {
        for (let j = i + 1; j < size; j += 1) {
          const [ax, ay] = [x[i] - x[j], y[i] - y[j]];
          const push = (wish * wish) / Math.max(1e-5, ax * ax + ay * ay);
          dx[i] += ax * push; dy[i] += ay * push; dx[j] -= ax * push; dy[j] -= ay * push;
        }
        dx[i] -= x[i] * 0.6; // keeps everything near the middle
        dy[i] -= y[i] * 0.6;
      }
      for (let at = 0; at < edges.length; at += 3) {
        const [i, j] = [edges[at], edges[at + 1]];
        const [ax, ay] = [x[i] - x[j], y[i] - y[j]];
        const pull = (2.2 * Math.hypot(ax, ay)) / wish / Math.sqrt(degree[i] * degree[j]);
        dx[i] -= ax * pull; dy[i] -= ay * pull; dx[j] += ax * pull; dy[j] += ay * pull;
      }
      const most = 0.1 * (1 - step / STEPS);
      for (let at = 0; at < size; at += 1) {
        const far = Math.hypot(dx[at], dy[at]);
        const share = far > most ? most / far : 1;
        x[at] += dx[at] * share;
        y[at] += dy[at] * share;
      }
    }
    const fit = (values) => {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      return Array.from(values, (value) => EDGE + ((value - low) / (high - low || 1)) * (SIZE - 2 * EDGE));
    };
    const [fitX, fitY] = [fit(x), fit(y)];
    return fitX.map((value, at) => [value, fitY[at]]);
  }

  // The convex hull, by Andrew 1979: points in order.
  function hull(points) {
    const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    if (sorted.length < 3) return sorted;
    const turns = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
    const half = (list) => {
      const found = [];
      for (const point of list) {
        while (found.length > 1 && turns(found[found.length - 2], found[found.length - 1], point) <= 0) found.pop();
        found.push(point);
      }
      return found.slice(0, -1);
    };
    return [...half(sorted), ...half(sorted.reverse())];
  }

  const line = (points) => points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

  // Colour class of each set by its place: the largest sets have their own, unless they lie mostly in an earlier such set.
  nddup.setColours = (nodes) => {
    const members = [];
    nodes.forEach((node, at) => node[3].forEach((set) => (members[set] ||= []).push(at)));
    const chosen = new Map();
    members.forEach((of, set) => {
      const differs = [...chosen.keys()].every((other) => of.filter((node) => nodes[node][3].includes(other)).length <= of.length / 2);
      if (chosen.size < COLOURS && differs) chosen.set(set, `set-${chosen.size}`);
    });
    return (set) => chosen.get(set) || "set-more";
  };

  // nodes: [id, url, state, places of sets]; edges: flat triples; colour(set): its class; open(id): called on a click;
  // tell(node): called when the pointer is on a node.
  nddup.graph = (nodes, edges, { label, colour, open, tell }) => {
    const at = place(nodes.length, edges);
    const radius = nodes.length <= NUMBERED ? 11 : nodes.length <= 120 ? 7 : 5.5;
    const sets = Math.max(...nodes.map((node) => Math.max(...node[3]))) + 1;
    const drawEdges = (chosen) => {
      let path = "";
      for (let edge = 0; edge < edges.length; edge += 3) if (chosen(edges[edge], edges[edge + 1])) path += line([at[edges[edge]], at[edges[edge + 1]]]);
      return path;
    };
    const lines = svg("path", { class: "edges", d: drawEdges(() => true), "stroke-opacity": Math.max(0.08, Math.min(0.6, 60 / Math.sqrt(edges.length + 1) / 10)).toFixed(2) });
    const hulls = Array.from({ length: sets }, (_, set) => {
      const points = at.filter((point, node) => nodes[node][3].includes(set));
      return points.length ? svg("path", { class: `hull ${colour(set)}`, d: `${line(hull(points))}Z`, "stroke-width": 2 * radius + 14 }) : null;
    });
    const isPlain = (set) => colour(set) === "set-more";
    const show = (chosen) => hulls.forEach((one, set) => { if (one) one.classList.toggle("is-off", chosen === null ? isPlain(set) : set !== chosen); });
    show(null);
    const circles = nodes.map(([id, url, state, places], node) => {
      const [x, y] = at[node];
      const circle = svg("g", { class: `node ${colour(places.find((set) => !isPlain(set)) ?? places[0])}${state ? "" : " is-kept"}${places.length > 1 ? " is-shared" : ""}`, "data-node": node },
        svg("title", null, `${node + 1}: ${id}${url ? `\n${url}` : ""}\n${state ? "removed" : "kept"}, in ${nddup.plural(places.length, "set", "sets")}`),
        svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: radius }),
        nodes.length <= NUMBERED ? svg("text", { x: x.toFixed(1), y: (y + 3.5).toFixed(1) }, String(node + 1)) : null);
      circle.addEventListener("click", () => open(id));
      circle.addEventListener("pointerenter", () => tell(nodes[node], node));
      return circle;
    });
    const element = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": label, class: "graph" },
      svg("g", { class: "hulls" }, hulls.filter(Boolean)), lines, circles);

    // Shows one set alone: its hull, its documents and the edges among them; null shows all sets again.
    const choose = (set) => {
      element.classList.toggle("is-chosen", set !== null);
      show(set);
      circles.forEach((circle, node) => circle.classList.toggle("is-off", set !== null && !nodes[node][3].includes(set)));
      lines.setAttribute("d", drawEdges((i, j) => set === null || (nodes[i][3].includes(set) && nodes[j][3].includes(set))));
    };
    return { element, choose };
  };
})();
