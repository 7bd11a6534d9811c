"use strict";
// The list of clusters: all of them are sorted and filtered, only the rows on the screen exist.
(() => {
  const { h, count } = nddup;
  const SPARE = 6; // rows beyond either edge of the screen
  const SORTS = {
    size: { name: "Documents", compare: (c) => (a, b) => c.size[b] - c.size[a] },
    least: { name: "Weakest pair", compare: (c) => (a, b) => known(c.least[a]) - known(c.least[b]) },
    support: { name: "Shared features", compare: (c) => (a, b) => c.support[b] - c.support[a] },
    label: { name: "First document", compare: (c) => (a, b) => (c.label[a] < c.label[b] ? -1 : c.label[a] > c.label[b] ? 1 : 0) },
    id: { name: "Cluster id", compare: (c) => (a, b) => (c.id[a] < c.id[b] ? -1 : 1) },
  };
  const known = (least) => (least < 0 ? 2000 : least);
  const state = { query: "", least: 2, coverage: "", texts: false, sort: "size", reverse: false };
  let data, columns, order = [], active = 0, parts = null, matching = null, searching = 0;

  // Columns of all clusters, from all chunks of them.
  nddup.columns = async () => {
    if (columns) return columns;
    const { shown, each } = (await nddup.load("summary")).clusters;
    const names = Array.from({ length: Math.ceil(shown / each) }, (_, at) => `clusters-${at}`);
    const chunks = await Promise.all(names.map(nddup.load));
    const merged = {};
    for (const name of ["id", "size", "support", "coverage", "least", "label", "kept", "texts"]) {
      merged[name] = chunks.flatMap((chunk) => chunk[name]);
    }
    merged.rank = new Map(merged.id.map((id, rank) => [id, rank]));
    columns = merged;
    return columns;
  };

  // The first clusters, from the first chunk alone.
  nddup.largest = async (number) => {
    const { shown } = (await nddup.load("summary")).clusters;
    if (!shown) return [];
    const chunk = await nddup.load("clusters-0");
    return chunk.id.slice(0, number).map((id, at) => ({ id, size: chunk.size[at], label: chunk.label[at] }));
  };

  const passes = (rank) => columns.size[rank] >= state.least
    && (!state.coverage || columns.coverage[rank] === state.coverage)
    && (!state.texts || columns.texts[rank] > 1)
    && (!matching || matching[rank] === 1);

  function arrange() {
    const ranks = [];
    for (let rank = 0; rank < columns.id.length; rank += 1) if (passes(rank)) ranks.push(rank);
    if (state.sort !== "size") ranks.sort(SORTS[state.sort].compare(columns)); // they come by size
    if (state.reverse) ranks.reverse();
    order = ranks;
    active = 0;
  }

  // Search ---------------------------------------------------------------------------------------------------------
  const names = []; // of each chunk of names: its first cluster, and of each cluster ids and addresses in lower case

  async function search() {
    searching += 1;
    const mine = searching;
    const query = state.query.trim().toLowerCase();
    if (!query) {
      matching = null;
      refresh();
      return;
    }
    matching = new Uint8Array(columns.id.length);
    columns.id.forEach((id, rank) => {
      if (id.includes(query) || columns.label[rank].toLowerCase().includes(query)) matching[rank] = 1;
    });
    const chunks = data.clusters.name_chunks;
    for (let number = 0; number < chunks; number += 1) {
      if (!names[number]) {
        refresh(`Searching the documents: ${Math.round((100 * number) / chunks)} %`);
        const [first, lines] = await nddup.pass(`names-${number}`);
        if (mine !== searching) return;
        names[number] = { first, lines: lines.map((line) => line.toLowerCase()) };
      }
      const { first, lines } = names[number];
      lines.forEach((line, at) => {
        if (line.includes(query)) matching[first + at] = 1;
      });
    }
    refresh();
  }

  // Rows -----------------------------------------------------------------------------------------------------------
  function cells(rank) {
    const size = columns.size[rank];
    const url = `#/cluster/${columns.id[rank]}`;
    return [
      h("span", { role: "gridcell", class: "c-size" }, count(size), h("span", { class: "unit" }, " documents")),
      h("span", { role: "gridcell", class: "c-label" },
        h("a", { href: url, tabindex: -1 }, nddup.oneLine(columns.label[rank] || columns.id[rank])),
        h("span", { class: "c-id" }, columns.id[rank],
          columns.coverage[rank] === "all" ? null : h("span", { class: "tag" }, columns.coverage[rank]),
          columns.texts[rank] > 1 ? h("span", { class: "tag" }, "text") : null)),
      h("span", { role: "gridcell", class: "c-least" }, h("span", { class: "unit" }, "weakest "), nddup.share(columns.least[rank])),
      h("span", { role: "gridcell", class: "c-support" }, count(columns.support[rank]), h("span", { class: "unit" }, " shared")),
    ];
  }

  const rowHeight = () => (matchMedia("(max-width: 720px)").matches ? 84 : 56);

  function paint() {
    if (!parts || parts.view.hidden) return;
    const height = rowHeight();
    parts.rows.style.height = `${order.length * height}px`;
    const top = parts.rows.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - SPARE);
    const last = Math.min(order.length, Math.ceil((innerHeight - top) / height) + SPARE);
    const made = [];
    for (let at = first; at < last; at += 1) {
      const row = h("div", { role: "row", id: `row-${at}`, "aria-rowindex": at + 2, class: at === active ? "row active" : "row",
        "aria-selected": at === active ? "true" : "false" }, cells(order[at]));
      row.style.transform = `translateY(${at * height}px)`;
      row.dataset.at = at;
      made.push(row);
    }
    parts.rows.replaceChildren(...made);
    const isThere = active >= first && active < last;
    if (isThere) parts.grid.setAttribute("aria-activedescendant", `row-${active}`);
    else parts.grid.removeAttribute("aria-activedescendant");
  }

  function refresh(message) {
    if (!parts) return;
    arrange();
    parts.grid.setAttribute("aria-rowcount", order.length + 1);
    parts.rows.hidden = order.length === 0;
    parts.empty.hidden = order.length > 0 || Boolean(message);
    parts.status.textContent = message || (order.length === columns.id.length
      ? nddup.plural(order.length, "cluster", "clusters")
      : `${count(order.length)} of ${nddup.plural(columns.id.length, "cluster", "clusters")}`);
    for (const button of parts.sorts) {
      const is = button.dataset.sort === state.sort;
      button.parentElement.setAttribute("aria-sort", is ? (isDescending() ? "descending" : "ascending") : "none");
    }
    parts.chosen.value = state.sort;
    paint();
  }

  const isDescending = () => ["size", "support"].includes(state.sort) !== state.reverse;

  function sortBy(name) {
    state.reverse = state.sort === name ? !state.reverse : false;
    state.sort = name;
    refresh();
  }

  function move(to) {
    active = Math.max(0, Math.min(order.length - 1, to));
    const height = rowHeight();
    const top = parts.rows.getBoundingClientRect().top + active * height;
    const head = document.querySelector("header.site").offsetHeight + parts.head.offsetHeight;
    if (top < head) scrollBy(0, top - head);
    else if (top + height > innerHeight) scrollBy(0, top + height - innerHeight);
    paint();
  }

  function onKey(event) {
    if (event.target !== parts.grid) return;
    const page = Math.max(1, Math.floor(innerHeight / rowHeight()) - 3);
    const moves = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: order.length - 1 };
    if (event.key in moves) {
      event.preventDefault();
      move(moves[event.key]);
    } else if (event.key === "Enter" && order.length) {
      location.hash = `#/cluster/${columns.id[order[active]]}`;
    }
  }

  // The page -------------------------------------------------------------------------------------------------------
  function filters() {
    const later = (then) => {
      let timer = 0;
      return (event) => {
        clearTimeout(timer);
        timer = setTimeout(() => then(event.target), 150);
      };
    };
    const coverages = [...new Set(columns.coverage)].sort();
    const query = h("input", { type: "search", id: "query", placeholder: "Id or address", autocomplete: "off", spellcheck: "false",
      on: { input: later((input) => {
        state.query = input.value;
        search();
      }) } });
    const least = h("input", { type: "number", id: "least", min: 2, value: 2, inputmode: "numeric",
      on: { input: later((input) => {
        state.least = Number(input.value) || 2;
        refresh();
      }) } });
    const coverage = h("select", { id: "coverage", on: { change: (event) => {
      state.coverage = event.target.value;
      refresh();
    } } }, h("option", { value: "" }, "any"), coverages.map((one) => h("option", { value: one }, one)));
    const texts = h("input", { type: "checkbox", id: "texts", on: { change: (event) => {
      state.texts = event.target.checked;
      refresh();
    } } });
    const chosen = h("select", { id: "sort", on: { change: (event) => {
      state.sort = event.target.value;
      state.reverse = false;
      refresh();
    } } }, Object.entries(SORTS).map(([value, { name }]) => h("option", { value }, name)));
    const label = (id, text, input, name) => h("div", { class: `field ${name || ""}` }, h("label", { for: id }, text), input);
    return { chosen, query, form: h("div", { class: "filters card", role: "search", "aria-label": "Clusters" },
      label("query", "Search", query, "wide"), label("least", "At least … documents", least),
      coverages.length > 1 ? label("coverage", "Coverage", coverage) : null, label("sort", "Sort by", chosen),
      h("div", { class: "field check" }, texts, h("label", { for: "texts" }, "with stored texts"))) };
  }

  function header() {
    const names = [["size", "c-size"], ["label", "c-label"], ["least", "c-least"], ["support", "c-support"]];
    const sorts = names.map(([name]) => h("button", { type: "button", "data-sort": name, on: { click: () => sortBy(name) } }, SORTS[name].name));
    const head = h("div", { role: "row", "aria-rowindex": 1, class: "row head" },
      sorts.map((button, at) => h("span", { role: "columnheader", class: names[at][1] }, button)));
    return { sorts, head };
  }

  nddup.views.clusters = {
    title: "Clusters",
    async build(view, summary) {
      data = summary;
      await nddup.columns();
      const { form, chosen, query } = filters();
      const { sorts, head } = header();
      const rows = h("div", { role: "rowgroup", class: "rows", on: { click: (event) => {
        const row = event.target.closest("[data-at]");
        if (row && !event.target.closest("a")) location.hash = `#/cluster/${columns.id[order[Number(row.dataset.at)]]}`;
      } } });
      const grid = h("div", { role: "grid", class: "grid", tabindex: 0, "aria-label": "Clusters", "aria-colcount": 4, on: { keydown: onKey } },
        h("div", { role: "rowgroup", class: "heading" }, head), rows);
      const status = h("p", { class: "status", role: "status" });
      const empty = h("p", { class: "empty" }, "No cluster is like that.");
      parts = { view, rows, grid, status, empty, sorts, chosen, head };
      const { shown, all, listed_each: each } = data.clusters;
      view.append(h("h1", { id: "clusters-title" }, "Clusters"),
        h("p", { class: "muted" }, shown < all ? `The ${count(shown)} largest of ${count(all)}. ` : "",
          `Of each cluster up to ${count(each)} documents are listed and searched.`),
        form, status, grid, empty);
      addEventListener("scroll", () => requestAnimationFrame(paint), { passive: true });
      addEventListener("resize", () => requestAnimationFrame(paint));
      document.addEventListener("keydown", (event) => {
        if (event.key === "/" && !view.hidden && !["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName)) {
          event.preventDefault();
          query.focus();
        }
      });
      refresh();
    },
    show() {
      paint();
    },
  };
})();
