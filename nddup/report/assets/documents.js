"use strict";
// The list of documents, each with its outcome: kept, removed or unique.
(() => {
  const { h, count } = nddup;
  const SORTS = {
    id: { name: "Id", compare: null }, // already sorted by id
    tokens: { name: "Tokens", compare: (a, b) => b.tokens - a.tokens },
    pairs: { name: "Near-duplicates", compare: (a, b) => b.pairs - a.pairs },
    stands: { name: "Family", compare: (a, b) => b.stands - a.stands },
    url: { name: "Address", compare: (a, b) => ((a.url || "") < (b.url || "") ? -1 : 1) },
  };
  const SEARCHES = "A search looks for all its words in the id, the address, the file and, where the text is stored, its beginning; not in the rest of a text.";
  const PLAIN = { query: "", source: "", site: "", outcome: "", sort: "id", reverse: false };
  const state = { ...PLAIN };
  let data, parts = null, found = [], searched = null, turn = 0;

  const address = () => nddup.stateful("#/documents", state, PLAIN);
  const isDescending = () => ["tokens", "pairs", "stands"].includes(state.sort) !== state.reverse;

  function refresh({ message = "", keep = false } = {}) {
    const rows = [...found];
    if (SORTS[state.sort].compare) rows.sort(SORTS[state.sort].compare);
    if (state.reverse) rows.reverse();
    const all = nddup.plural(data.documents.shown, "document", "documents");
    const few = state.outcome === "family" ? `${nddup.plural(rows.length, "family", "families")} of ${all}` : `${count(rows.length)} of ${all}`;
    parts.status.textContent = message || (rows.length === data.documents.shown ? all : few);
    parts.empty.hidden = rows.length > 0 || Boolean(message);
    parts.rows = rows;
    parts.list.set(rows, { sort: state.sort, isDescending: isDescending(), keep });
  }

  async function search() {
    turn += 1;
    const mine = turn;
    const criteria = { query: state.query, source: state.source, site: state.site, outcome: state.outcome };
    searched = JSON.stringify(criteria);
    const next = [];
    const isDone = await nddup.search(criteria, (columns, at) => next.push(nddup.documentOf(columns, at)),
      (percent) => { if (percent < 100) parts.status.textContent = `Searching the documents: ${percent} %`; }, () => mine !== turn);
    if (!isDone) return;
    found = next;
    refresh();
  }

  function changed(name) {
    if (name === "sort") state.reverse = false;
    parts.name();
    nddup.remember("documents", address());
    if (name === "sort") refresh();
    else search();
  }

  function sortBy(name) {
    state.reverse = state.sort === name ? !state.reverse : false;
    state.sort = name;
    parts.filters.fill();
    nddup.remember("documents", address());
    refresh();
  }

  function outcome(document) {
    if (document.state) {
      return [h("span", { class: "chip removed" }, "removed"), document.of ? h("span", { class: "note" }, " for ", nddup.documentLink(document.of, document.of, { tabindex: -1 }))
        : h("span", { class: "note" }, " by keep.force")];
    }
    if (!document.pairs && !document.stands) return [h("span", { class: "chip" }, "unique")];
    return [h("span", { class: "chip kept" }, "kept"), document.stands ? h("span", { class: "note" }, ` ${nddup.familyOf(document.stands)}`) : null];
  }

  function cells(document) {
    return [
      h("span", { role: "gridcell", class: "c-label" }, nddup.documentLink(document.id, null, { tabindex: -1, class: "c-name" }),
        h("span", { class: "c-id" }, document.title ? nddup.foreign(document.title, { class: "c-address c-title" }) : null,
          nddup.oneLine(nddup.placeOf(document.id, document.url, document.source, document.record)))),
      h("span", { role: "gridcell", class: "c-outcome" }, outcome(document)),
      h("span", { role: "gridcell", class: "c-support" }, count(document.pairs), h("span", { class: "unit" }, " near")),
      h("span", { role: "gridcell", class: "c-support" }, count(document.tokens), h("span", { class: "unit" }, " tokens")),
    ];
  }

  async function save() {
    const columns = await nddup.columns();
    const part = (value, of) => (value < 0 ? "" : value / of);
    const head = ["doc_id", "url", "source", "record", "tokens", "outcome", "duplicate_of", "resemblance", "lost", "family", "near_duplicates", "clusters"];
    nddup.download("documents.csv", nddup.csv(head, parts.rows.map((one) => [one.id, one.url, one.source, one.record, one.tokens, nddup.outcomeOf(one),
      one.of, part(one.like, 1000), part(one.lost, 10_000), one.stands ? one.stands + 1 : "", one.pairs, one.clusters.map((rank) => columns.id[rank]).join(" ")])));
  }

  nddup.views.documents = {
    title: "Documents",
    async build(view, summary) {
      data = summary;
      const { shown, all, sources, sites } = data.documents;
      const filters = nddup.filters("documents", "Documents", state, changed, [
        { name: "query", kind: "search", text: "Search", placeholder: "Id, address, file, beginning" },
        sources.length > 1 && { name: "source", kind: "choice", text: "Source", options: sources, placeholder: "any file" },
        sites.length > 1 && { name: "site", kind: "choice", text: "Site", options: sites, placeholder: "any site" },
        { name: "outcome", kind: "select", text: "Outcome", options: [["", "any"], ...Object.entries(nddup.outcomes)] },
        { name: "sort", kind: "select", text: "Sort by", options: Object.entries(SORTS).map(([value, { name }]) => [value, name]) },
      ]);
      const list = nddup.list({
        name: "document-row", label: "Documents", heights: [76, 118], sortBy,
        columns: [["id", "Document", "c-label"], [null, "Outcome", "c-outcome"], ["pairs", "Near-duplicates", "c-support"], ["tokens", "Tokens", "c-support"]],
        row: (document) => ({ cells: cells(document) }),
        open: (document) => { location.hash = nddup.href("document", document.id); },
      });
      const status = h("p", { class: "status", role: "status" });
      const empty = h("p", { class: "empty" }, "No document is like that.");
      parts = { list, status, empty, filters, rows: [] };
      const about = shown < all
        ? `${count(shown)} of the ${count(all)} documents of the run, those of clusters first: a search finds no other; nddup show RUN --doc ID tells of any. ${SEARCHES}`
        : `Every document of the run. ${SEARCHES}`;
      const title = h("h1", { id: "documents-title" }), told = h("p", { class: "muted" });
      parts.name = () => {
        const isFamilies = state.outcome === "family";
        title.textContent = isFamilies ? "Families" : "Documents";
        told.replaceChildren(isFamilies ? "Each is one kept document with those that were removed for it; no document is in two. " : about,
          isFamilies ? h("a", { href: "#/clusters" }, "The sets inside") : "", isFamilies ? ` show of which every two documents are alike. ${SEARCHES}` : "");
      };
      view.append(title, told,
        filters.form, h("div", { class: "above-list" }, status, h("button", { type: "button", class: "quiet", on: { click: save } }, "Save as CSV")), list.grid, empty);
    },
    async show(view, summary, { params }) {
      Object.assign(state, nddup.stateOf(params, PLAIN));
      if (state.outcome === "family" && !params.has("sort")) state.sort = "stands";
      if (!(state.sort in SORTS)) state.sort = PLAIN.sort;
      if (!(state.outcome in nddup.outcomes)) state.outcome = "";
      parts.filters.fill();
      parts.name();
      nddup.remember("documents", address());
      const criteria = JSON.stringify({ query: state.query, source: state.source, site: state.site, outcome: state.outcome });
      if (criteria === searched) refresh({ keep: true });
      else await search();
    },
  };
})();
