"use strict";
// One cluster: its documents, how near they are to each other, two of them side by side.
(() => {
  const { h, count } = nddup;
  const STATES = ["kept", "same content as", "same sketch as", "near-duplicate of"];
  const FIRST = 8; // documents listed before one asks for more
  const COVERAGE = {
    all: "A maximal set: every two documents are near-duplicates, and no document can be added.",
    pairs: "A maximal set of a family with too many of them: every near-duplicate pair lies in one.",
    documents: "A set of a family too large for all its sets, made around a kept document.",
    partition: "A kept document with those it stands for: not every two of them need be near-duplicates.",
    components: "A connected component: documents may be here only through others.",
  };

  function documents(list) {
    const body = h("tbody");
    const rows = (from, to) => list.slice(from, to).map((document, at) => {
      const [id, url, source, record, tokens, features, state, kept] = document;
      return h("tr", { class: state ? null : "is-kept" },
        h("td", { class: "number" }, from + at + 1),
        h("th", { scope: "row" }, nddup.foreign(id, { class: "id" }), url ? h("div", null, nddup.address(url)) : null,
          h("div", { class: "note" }, nddup.foreign(`${source}#${record}`))),
        h("td", { class: "fate" }, STATES[state], kept ? [" ", nddup.foreign(kept)] : null),
        h("td", { class: "number" }, count(tokens), h("span", { class: "unit" }, " tokens")),
        h("td", { class: "number" }, count(features), h("span", { class: "unit" }, " features")));
    });
    body.append(...rows(0, FIRST));
    const table = h("div", { class: "scroll card", tabindex: 0, role: "region", "aria-label": "Documents of the cluster" },
      h("table", { class: "documents" }, h("caption", { class: "hidden-text" }, "Documents of the cluster"),
        h("thead", null, h("tr", null, ["#", "Document", "Fate", "Tokens", "Features"].map((name, at) =>
          h("th", { scope: "col", class: [0, 3, 4].includes(at) ? "number" : null }, name)))), body));
    const more = list.length > FIRST ? h("button", { type: "button", on: { click: () => {
      body.append(...rows(FIRST, list.length));
      more.remove();
    } } }, `Show all ${count(list.length)} documents`) : null;
    return [table, more];
  }

  function pairsOf(flat) {
    const found = new Map();
    for (let at = 0; at < flat.length; at += 4) found.set(`${flat[at]},${flat[at + 1]}`, [flat[at + 2], flat[at + 3]]);
    return (i, j) => found.get(i < j ? `${i},${j}` : `${j},${i}`) || null;
  }

  // The shade of a cell: nothing at the threshold or below, full at 1.
  const shade = (value) => Math.max(0, Math.min(10, Math.round((value - 500) / 50)));

  function matrix(size, near, choose) {
    const cells = new Map();
    const cell = (i, j) => {
      if (i === j) return h("td", { class: "self" }, "·");
      const pair = near(i, j);
      const text = pair ? (pair[1] < 0 ? count(pair[0]) : String(Math.floor(pair[1] / 10))) : "–";
      const words = pair ? (pair[1] < 0 ? `${count(pair[0])} features shared` : `resemblance ${nddup.share(pair[1])}, ${count(pair[0])} features shared`) : "not listed";
      const button = h("button", { type: "button", tabindex: -1, class: pair && pair[1] >= 0 ? `shade-${shade(pair[1])}` : "shade-0",
        "aria-label": `${i + 1} and ${j + 1}: ${words}`, title: words, on: { click: () => choose(i, j), keydown: (event) => step(event, i, j) } }, text);
      cells.set(`${i},${j}`, button);
      return h("td", null, button);
    };
    const step = (event, i, j) => {
      const moves = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
      if (!(event.key in moves)) return;
      event.preventDefault();
      const [down, right] = moves[event.key];
      let [to, over] = [i + down, j + right];
      if (to === over) [to, over] = [to + down, over + right]; // past the diagonal
      const next = cells.get(`${to},${over}`);
      if (!next) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    };
    const numbers = Array.from({ length: size }, (_, at) => at);
    const table = h("table", { class: "matrix" },
      h("caption", { class: "hidden-text" }, "Resemblance of every two documents, in percent"),
      h("thead", null, h("tr", null, h("td"), numbers.map((j) => h("th", { scope: "col" }, j + 1)))),
      h("tbody", null, numbers.map((i) => h("tr", null, h("th", { scope: "row" }, i + 1), numbers.map((j) => cell(i, j))))));
    cells.get("0,1").tabIndex = 0;
    return { table: h("div", { class: "scroll card", role: "region", tabindex: 0, "aria-label": "Matrix of the cluster" }, table), cells };
  }

  function chooser(list, choose) {
    const options = () => list.map((document, at) => (document[8] < 0 ? null
      : h("option", { value: at }, `${at + 1}  ${document[0].slice(0, 60)}`)));
    const select = (id) => h("select", { id, on: { change: () => choose(Number(left.value), Number(right.value)) } }, options());
    const left = select("left"), right = select("right");
    const form = h("div", { class: "filters chooser" },
      h("div", { class: "field wide" }, h("label", { for: "left" }, "A"), left),
      h("div", { class: "field wide" }, h("label", { for: "right" }, "B"), right));
    return { form, left, right };
  }

  function worst(list, near) {
    let found = null;
    for (let i = 0; i < list.length && i < 24; i += 1) {
      for (let j = i + 1; j < list.length && j < 24; j += 1) {
        const pair = near(i, j);
        const value = pair ? pair[1] : 2000;
        if (list[i][8] >= 0 && list[j][8] >= 0 && (!found || value < found[2])) found = [i, j, value];
      }
    }
    return found;
  }

  function comparison(data, id, list, near) {
    const place = h("div", { class: "card compare", "aria-live": "polite" });
    const { form, left, right } = chooser(list, (i, j) => choose(i, j));
    const chart = matrix(Math.min(list.length, data.clusters.matrix_each), near, (i, j) => choose(i, j, true));
    let turn = 0;
    async function choose(i, j, scroll) {
      turn += 1;
      const mine = turn;
      for (const button of chart.cells.values()) button.removeAttribute("aria-pressed");
      for (const key of [`${i},${j}`, `${j},${i}`]) if (chart.cells.has(key)) chart.cells.get(key).setAttribute("aria-pressed", "true");
      left.value = i;
      right.value = j;
      const pair = near(i, j);
      const shown = await nddup.compare(list[i], list[j], data.shingle, pair ? pair[1] : -1);
      if (mine !== turn) return;
      place.replaceChildren(shown);
      if (scroll) form.scrollIntoView({ block: "start" });
    }
    const first = worst(list, near);
    if (first) choose(first[0], first[1]);
    const none = h("p", { class: "card" }, "The texts of this cluster are not stored. While the inputs are there, ",
      h("code", null, `nddup report ${data.run} --cluster ${id}`), " reads them again.");
    return [
      h("h2", null, "How near they are to each other"),
      h("p", { class: "muted" }, `Resemblance of every two documents in percent${list.length > data.clusters.matrix_each ? `, of the first ${data.clusters.matrix_each}` : ""}. Choose a pair to see both texts.`),
      chart.table, h("h2", { id: "side" }, "Side by side"), first ? [form, place] : none,
    ];
  }

  async function build(view, data, id) {
    const columns = await nddup.columns();
    const rank = columns.rank.get(id);
    const back = h("p", { class: "back" }, h("a", { href: "#/clusters" }, "← All clusters"));
    if (rank === undefined) {
      view.replaceChildren(back, h("h1", { id: "cluster-title" }, "No such cluster"),
        h("p", null, nddup.foreign(id), " is not a cluster of this report."));
      return;
    }
    const each = data.clusters.members_each;
    const rows = await nddup.load(`members-${Math.floor(rank / each)}`);
    const [component, list, flat] = rows[rank % each];
    const near = pairsOf(flat);
    const coverage = columns.coverage[rank];
    const size = columns.size[rank];
    view.replaceChildren(back,
      h("h1", { id: "cluster-title" }, `${count(size)} documents`, h("span", { class: "hidden-text" }, " in cluster"), h("code", { class: "cluster-id" }, id)),
      h("p", { class: "lead" }, `All share ${nddup.plural(columns.support[rank], "feature", "features")}. `,
        columns.least[rank] >= 0 ? `The weakest pair has resemblance ${nddup.share(columns.least[rank])}. ` : "",
        COVERAGE[coverage] || coverage),
      h("p", { class: "muted" }, "Component ", nddup.foreign(component), size > list.length ? `. The first ${count(list.length)} documents are listed.` : ""),
      ...documents(list).filter(Boolean), ...comparison(data, id, list, near).flat());
  }

  nddup.views.cluster = { title: "Cluster", build: async () => {}, show: build };
})();
