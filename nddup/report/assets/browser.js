"use strict";
// The list of clusters. Sets of one family overlap: only the first set of a family is listed until it is unfolded.
(() => {
  const { h, count } = nddup;
  const SORTS = {
    size: { name: "Documents", compare: (c) => (a, b) => c.size[b] - c.size[a] },
    least: { name: "Weakest pair", compare: (c) => (a, b) => known(c.least[a]) - known(c.least[b]) },
    support: { name: "Shared features", compare: (c) => (a, b) => c.support[b] - c.support[a] },
    label: { name: "First document", compare: (c) => (a, b) => (c.label[a] < c.label[b] ? -1 : c.label[a] > c.label[b] ? 1 : 0) },
    id: { name: "Cluster id", compare: (c) => (a, b) => (c.id[a] < c.id[b] ? -1 : 1) },
  };
  const PLAIN = { query: "", source: "", site: "", size: 2, coverage: "", texts: false, fold: true, sort: "size", reverse: false };
  const known = (least) => (least < 0 ? 2000 : least);
  const state = { ...PLAIN };
  const open = new Set(); // families that are unfolded
  let data, columns, order = [], parts = null, matching = null, searched = "", turn = 0;

  // Columns of all clusters, from all of their chunks.
  nddup.columns = async () => {
    if (columns) return columns;
    data = await nddup.load("summary");
    const { shown, each } = data.clusters;
    const names = Array.from({ length: Math.ceil(shown / each) }, (_, at) => `clusters-${at}`);
    const chunks = await Promise.all(names.map(nddup.load));
    const merged = {};
    for (const name of ["id", "size", "support", "coverage", "least", "least_of", "label", "title", "longest", "kept", "texts", "family", "near", "shared"]) {
      merged[name] = chunks.flatMap((chunk) => chunk[name]);
    }
    merged.rank = new Map(merged.id.map((id, rank) => [id, rank]));
    columns = merged;
    return columns;
  };

  const passes = (rank) => columns.size[rank] >= state.size
    && (!state.coverage || columns.coverage[rank] === state.coverage)
    && (!state.texts || columns.texts[rank] > 1)
    && (!matching || matching[rank] === 1);

  // Rows: {rank, more: number of sets folded under it, child: whether it is listed under another set of its family}.
  function fold(ranks) {
    const families = new Map();
    const rows = [];
    for (const rank of ranks) {
      const family = columns.family[rank];
      if (family < 0) rows.push({ rank, more: 0 });
      else if (families.has(family)) families.get(family).sets.push(rank);
      else {
        const first = { rank, sets: [] };
        families.set(family, first);
        rows.push(first);
      }
    }
    return rows.flatMap(({ rank, sets = [] }) => [{ rank, more: sets.length },
      ...(open.has(columns.family[rank]) ? sets.map((set) => ({ rank: set, more: 0, child: true })) : [])]);
  }

  const isDescending = () => ["size", "support"].includes(state.sort) !== state.reverse;
  const address = () => nddup.stateful("#/clusters", state, PLAIN);

  function refresh({ message = "", keep = false } = {}) {
    if (!parts) return;
    const ranks = [];
    for (let rank = 0; rank < columns.id.length; rank += 1) if (passes(rank)) ranks.push(rank);
    if (state.sort !== "size") ranks.sort(SORTS[state.sort].compare(columns)); // already sorted by size
    if (state.reverse) ranks.reverse();
    order = ranks;
    const rows = state.fold ? fold(ranks) : ranks.map((rank) => ({ rank, more: 0 }));
    const folded = rows.reduce((sum, row) => sum + (row.more && !open.has(columns.family[row.rank]) ? row.more : 0), 0);
    parts.empty.hidden = rows.length > 0 || Boolean(message);
    const all = nddup.plural(columns.id.length, "cluster", "clusters");
    parts.status.textContent = message || `${ranks.length === columns.id.length ? all : `${count(ranks.length)} of ${all}`}${
      folded ? `, ${count(folded)} of them folded under one they overlap with` : ""}`;
    parts.list.set(rows, { sort: state.sort, isDescending: isDescending(), keep });
  }

  // Documents are searched only if the filters ask something of them.
  async function search() {
    turn += 1;
    const mine = turn;
    const criteria = { query: state.query, source: state.source, site: state.site, outcome: "" };
    searched = JSON.stringify(criteria);
    matching = null;
    if (!nddup.asksNothing(criteria)) {
      matching = new Uint8Array(columns.id.length);
      const query = state.query.trim().toLowerCase();
      if (query && !state.source && !state.site) columns.id.forEach((id, rank) => { if (id.startsWith(query)) matching[rank] = 1; });
      refresh({ message: "Searching the documents …" });
      const isDone = await nddup.search(criteria, (found, at) => { for (const rank of found.clusters[at]) matching[rank] = 1; },
        (percent) => percent < 100 && refresh({ message: `Searching the documents: ${percent} %` }), () => mine !== turn);
      if (!isDone) return;
    }
    refresh();
  }

  function changed(name) {
    if (name === "sort") state.reverse = false;
    nddup.remember("clusters", address());
    if (["query", "source", "site"].includes(name)) search();
    else refresh();
  }

  function sortBy(name) {
    state.reverse = state.sort === name ? !state.reverse : false;
    state.sort = name;
    parts.filters.fill();
    nddup.remember("clusters", address());
    refresh();
  }

  function unfold(rank) {
    const family = columns.family[rank];
    if (open.has(family)) open.delete(family);
    else open.add(family);
    refresh({ keep: true });
  }

  // Rows -----------------------------------------------------------------------------------------------------------
  nddup.isShort = (longest) => longest > 0 && longest < data.short.tokens;
  const shortTag = (longest) => (nddup.isShort(longest) ? h("span", { class: "tag warn" }, "very short texts") : null);

  function cells({ rank, more, child }) {
    const title = columns.title[rank] || columns.label[rank] || columns.id[rank];
    const isOpen = open.has(columns.family[rank]);
    const near = columns.near[rank];
    const shared = child && near >= 0 ? h("span", { class: "tag" }, `shares ${count(columns.shared[rank])} of ${count(columns.size[rank])} with ${columns.id[near].slice(0, 6)}…`) : null;
    const unfolding = more ? h("button", { type: "button", tabindex: -1, class: "unfold", "aria-expanded": String(isOpen), on: { click: () => unfold(rank) } },
      `${isOpen ? "−" : "+"} ${nddup.plural(more, "overlapping set", "overlapping sets")}`) : null;
    return [
      h("span", { role: "gridcell", class: "c-size" }, count(columns.size[rank]), h("span", { class: "unit" }, " documents")),
      h("span", { role: "gridcell", class: "c-label" },
        h("a", { href: nddup.href("cluster", columns.id[rank]), tabindex: -1 }, nddup.oneLine(title, Boolean(columns.title[rank]))),
        h("span", { class: "c-id" }, columns.title[rank] && columns.label[rank] ? nddup.oneLine(columns.label[rank]) : h("span", { class: "c-address" }, columns.id[rank])),
        h("span", { class: "c-tags" }, unfolding, shared, shortTag(columns.longest[rank]),
          columns.coverage[rank] === "all" ? null : h("span", { class: "tag" }, columns.coverage[rank]),
          columns.texts[rank] > 1 ? h("span", { class: "tag" }, "text") : null)),
      h("span", { role: "gridcell", class: "c-least" }, h("span", { class: "unit" }, "weakest "), nddup.share(columns.least[rank])),
      h("span", { role: "gridcell", class: "c-support" }, count(columns.support[rank]), h("span", { class: "unit" }, " shared")),
    ];
  }

  function save() {
    const head = ["cluster_id", "documents", "common_features", "weakest_resemblance", "coverage", "first_document", "begins"];
    nddup.download("clusters.csv", nddup.csv(head, order.map((rank) => [columns.id[rank], columns.size[rank], columns.support[rank],
      columns.least[rank] < 0 ? null : columns.least[rank] / 1000, columns.coverage[rank], columns.label[rank], columns.title[rank]])));
  }

  nddup.views.clusters = {
    title: "Sets",
    async build(view) {
      await nddup.columns();
      const { shown, all, listed_each: each } = data.clusters;
      const { sources, sites } = data.documents;
      const coverages = [...new Set(columns.coverage)].sort();
      const filters = nddup.filters("clusters", "Clusters", state, changed, [
        { name: "query", kind: "search", text: "Search", placeholder: "Words of an id, an address, a title" },
        sources.length > 1 && { name: "source", kind: "choice", text: "Source", options: sources, placeholder: "any file" },
        sites.length > 1 && { name: "site", kind: "choice", text: "Site", options: sites, placeholder: "any site" },
        { name: "size", kind: "number", text: "At least … documents", least: 2 },
        coverages.length > 1 && { name: "coverage", kind: "select", text: "Coverage", options: [["", "any"], ...coverages.map((one) => [one, one])] },
        { name: "sort", kind: "select", text: "Sort by", options: Object.entries(SORTS).map(([value, { name }]) => [value, name]) },
        { name: "texts", kind: "check", text: "with stored texts" },
        data.families.shown > 0 && { name: "fold", kind: "check", text: "fold overlapping sets" },
      ]);
      const list = nddup.list({
        name: "cluster-row", label: "Clusters", heights: [76, 118], sortBy, columns: [["size", SORTS.size.name, "c-size"], ["label", SORTS.label.name, "c-label"],
          ["least", SORTS.least.name, "c-least"], ["support", SORTS.support.name, "c-support"]],
        row: (row) => ({ cells: cells(row), style: row.child ? "child" : "" }),
        open: ({ rank }) => { location.hash = nddup.href("cluster", columns.id[rank]); },
        key: (event, { rank, more, child }) => {
          const isOpen = open.has(columns.family[rank]);
          if (!more || child || !((event.key === "ArrowRight" && !isOpen) || (event.key === "ArrowLeft" && isOpen))) return false;
          unfold(rank);
          return true;
        },
      });
      const status = h("p", { class: "status", role: "status" });
      const empty = h("p", { class: "empty" }, "No cluster is like that.");
      parts = { view, list, status, empty, filters };
      view.append(h("h1", { id: "clusters-title" }, "Sets of near-duplicates"),
        h("p", { class: "muted" }, "In each, every two documents are near-duplicates, and none can be added; a document may be in several. ", shown < all ? `The ${count(shown)} largest of ${count(all)}. ` : "",
          `A cluster is found by any of its documents; up to ${count(each)} are listed of each.`),
        filters.form, h("div", { class: "above-list" }, status, h("button", { type: "button", class: "quiet", on: { click: save } }, "Save as CSV")), list.grid, empty);
    },
    async show(view, summary, { params }) {
      Object.assign(state, nddup.stateOf(params, PLAIN));
      if (!(state.sort in SORTS)) state.sort = PLAIN.sort;
      parts.filters.fill();
      nddup.remember("clusters", address());
      const criteria = JSON.stringify({ query: state.query, source: state.source, site: state.site, outcome: "" });
      if (criteria === searched) refresh({ keep: true });
      else await search();
    },
  };
})();
