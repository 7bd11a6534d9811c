"use strict";
// A family: the overlapping sets of one component, the documents that they share, and a graph of all their documents.
(() => {
  const { h, count } = nddup;
  const FIRST = 30; // sets listed before the reader asks for more

  function setRows(family, columns, colour, chosen) {
    const body = h("tbody");
    const rows = (from, to) => family.ranks.slice(from, to).map((rank, at) => {
      const place = from + at;
      const near = columns.near[rank];
      const button = h("button", { type: "button", class: "quiet", "aria-pressed": "false", "data-set": place, on: { click: () => chosen(place) } }, "Show");
      return h("tr", null,
        h("td", { class: "number" }, h("span", { class: `swatch ${colour(place)}` }), place + 1),
        h("th", { scope: "row" }, h("a", { href: nddup.href("cluster", columns.id[rank]) }, h("code", null, columns.id[rank]))),
        h("td", { class: "number" }, count(columns.size[rank])),
        h("td", null, near >= 0 ? `shares ${count(columns.shared[rank])} of ${count(columns.size[rank])} with set ${family.ranks.indexOf(near) + 1}` : place ? "joined by pairs only" : "the largest"),
        h("td", null, family.nodes.length ? button : null));
    });
    body.append(...rows(0, FIRST));
    const more = family.ranks.length > FIRST ? h("button", { type: "button", on: { click: () => {
      body.append(...rows(FIRST, family.ranks.length));
      more.remove();
    } } }, `Show all ${count(family.ranks.length)} sets`) : null;
    return [h("div", { class: "scroll card", tabindex: 0, role: "region", "aria-label": "Overlapping sets" },
      h("table", { class: "sets" }, h("caption", { class: "hidden-text" }, "Overlapping sets"),
        h("thead", null, h("tr", null, ["#", "Set", "Documents", "Overlap", "Graph"].map((name, at) => h("th", { scope: "col", class: [0, 2].includes(at) ? "number" : null }, name)))), body)), more];
  }

  function drawing(family, colour) {
    const { nodes, edges, documents } = family;
    if (!nodes.length) return { table: "", parts: [h("p", { class: "card hint" }, "The graph of these sets is not drawn: the graphs before it fill the report.")], choose: () => {} };
    const said = h("p", { class: "pointed muted", "aria-live": "off" }, "Point at a document to see which it is; press it to open its page.");
    const { element, choose } = nddup.graph(nodes, edges, {
      label: `${count(nodes.length)} documents, ${count(edges.length / 3)} near-duplicate pairs, ${count(family.ranks.length)} sets`,
      colour, open: (id) => { location.hash = nddup.href("document", id); },
      tell: ([id, url, state, places], at) => said.replaceChildren(`${at + 1}: `, nddup.foreign(url || id), ` – ${state ? "removed" : "kept"}, in set ${places.slice(0, 8).map((place) => place + 1).join(", ")}${places.length > 8 ? " …" : ""}`),
    });
    const table = nddup.table({ caption: "Documents in the graph", hideCaption: true, head: ["#", "Document", "Outcome", "Sets"], numeric: [0],
      rows: nodes.map(([id, , state, places], at) => [at + 1, nddup.documentLink(id), state ? "removed" : "kept", places.map((place) => place + 1).join(", ")]) });
    const stops = nodes.length < documents ? `The graph stops at ${count(nodes.length)} of ${count(documents)} documents, those of the largest sets. ` : "";
    return { choose, parts: [
      h("p", { class: "muted" }, stops, "A line joins two near-duplicates. A hull holds a set; the largest that differ by half or more have a colour, the others appear when they are chosen. "
        + "Kept documents are filled, those in several sets have a dashed edge."),
      h("div", { class: "card drawing" }, element, said)], table: h("details", null, h("summary", null, "The documents as a table"), h("div", { class: "card" }, table)) };
  }

  nddup.views.family = {
    title: "Overlapping sets",
    build: async () => {},
    async show(view, data, { parts: [id] }) {
      const columns = await nddup.columns();
      const rank = columns.rank.get(id);
      const place = rank === undefined ? -1 : columns.family[rank];
      const back = nddup.back("clusters", "← All sets");
      if (place < 0) {
        view.replaceChildren(back, h("h1", { id: "family-title" }, "No such sets"), h("p", null, nddup.foreign(id || ""), " is not a cluster that overlaps with another."));
        return;
      }
      const { each } = data.families;
      const family = (await nddup.load(`families-${Math.floor(place / each)}`))[place % each];
      const colour = nddup.setColours(family.nodes);
      const { parts, table, choose } = drawing(family, colour);
      let now = null;
      const [list, more] = setRows(family, columns, colour, (set) => {
        now = now === set ? null : set;
        for (const button of view.querySelectorAll("[data-set]")) button.setAttribute("aria-pressed", String(Number(button.dataset.set) === now));
        choose(now);
      });
      view.replaceChildren(back, h("h1", { id: "family-title" }, `${nddup.plural(family.ranks.length, "overlapping set", "overlapping sets")}, ${nddup.plural(family.documents, "document", "documents")}`),
        h("p", { class: "begins" }, nddup.foreign(columns.title[family.ranks[0]] || columns.label[family.ranks[0]])),
        h("p", { class: "lead" }, "These sets hang together through near-duplicates, but not every two of their documents are near-duplicates: so they are several sets, and a document may be in more than one."),
        h("p", { class: "muted" }, "Component ", nddup.foreign(family.component)), h("div", { class: "beside" }, h("div", { class: "stays" }, h("h2", null, "The documents and their sets"), parts),
          h("div", null, h("h2", null, "The sets"), list, more)), table);
    },
  };
})();
