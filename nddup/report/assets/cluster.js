"use strict";
// One cluster: its documents, the resemblance of every two, and two of them side by side.
(() => {
  const { h, count } = nddup;
  const FIRST = 8; // documents listed before the reader asks for more
  const COVERAGE = {
    all: "A maximal set: every two documents are near-duplicates, and no document can be added.",
    pairs: "A maximal set of a component with too many of them: every near-duplicate pair lies in one.",
    documents: "A set of a component too large for all its sets, made around a kept document.",
    partition: "A kept document with those it stands for: not every two of them need be near-duplicates.",
    components: "A connected component: documents may be here only through others.",
  };

  function documents(list) {
    const body = h("tbody");
    const rows = (from, to) => list.slice(from, to).map((document, at) => {
      const [id, url, source, record, tokens, features, state, kept] = document;
      return h("tr", { class: state ? null : "is-kept" },
        h("td", { class: "number" }, from + at + 1),
        h("th", { scope: "row" }, nddup.documentLink(id, null, { class: "id" }), url && url !== id ? h("div", null, nddup.address(url)) : null,
          h("div", { class: "note" }, nddup.foreign(`${source}#${record}`))),
        h("td", { class: "outcome" }, nddup.outcome(state, kept)),
        h("td", { class: "number" }, count(tokens), h("span", { class: "unit" }, " tokens")),
        h("td", { class: "number" }, count(features), h("span", { class: "unit" }, " features")));
    });
    body.append(...rows(0, FIRST));
    const table = h("div", { class: "scroll card", tabindex: 0, role: "region", "aria-label": "Documents of the cluster" },
      h("table", { class: "documents" }, h("caption", { class: "hidden-text" }, "Documents of the cluster"),
        h("thead", null, h("tr", null, ["#", "Document", "Outcome", "Tokens", "Features"].map((name, at) =>
          h("th", { scope: "col", class: [0, 3, 4].includes(at) ? "number" : null }, name)))), body));
    const more = list.length > FIRST ? h("button", { type: "button", on: { click: () => {
      body.append(...rows(FIRST, list.length));
      more.remove();
    } } }, `Show all ${count(list.length)} documents`) : null;
    return [table, more];
  }

  // The cells above the diagonal, row by row: the numbers of a near-duplicate pair, -1 for two other documents.
  function pairsOf(size, flat) {
    const found = new Map();
    let at = 0;
    for (let i = 0; i < size; i += 1) {
      for (let j = i + 1; j < size; j += 1) {
        const overlap = flat[at++];
        if (overlap >= 0) found.set(`${i},${j}`, [overlap, flat[at++]]);
      }
    }
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

  // The matrix, and the texts of the chosen pair side by side; `asked` is the pair in the page's address.
  function comparison(data, id, list, near, asked) {
    const place = h("div", { class: "card compare", "aria-live": "polite" });
    const { form, left, right } = chooser(list, (i, j) => choose(i, j));
    const inMatrix = Math.min(list.length, data.clusters.matrix_each);
    const first = worst(list, near);
    const chart = matrix(inMatrix, near, (i, j) => choose(i, j, true));
    let turn = 0;
    async function choose(i, j, scroll, isFirst) {
      turn += 1;
      const mine = turn;
      for (const button of chart.cells.values()) button.removeAttribute("aria-pressed");
      for (const key of [`${i},${j}`, `${j},${i}`]) if (chart.cells.has(key)) chart.cells.get(key).setAttribute("aria-pressed", "true");
      left.value = i;
      right.value = j;
      if (!isFirst) nddup.remember("cluster", `${nddup.href("cluster", id)}?a=${i + 1}&b=${j + 1}`);
      const pair = near(i, j);
      const shown = await nddup.compare(list[i], list[j], data.shingle, pair ? pair[1] : -1, data);
      if (mine !== turn) return;
      place.replaceChildren(shown);
      if (scroll && first) form.scrollIntoView({ block: "start" });
    }
    const [i, j] = asked;
    if (i !== j && list[i] && list[j]) choose(i, j, false, true);
    else if (first) choose(first[0], first[1], false, true);
    const command = h("code", null, `nddup report ${data.run} --cluster ${id}`);
    const none = h("p", { class: "card no-text" }, "The texts of this cluster are not stored in this report, so no two can be shown side by side. While the inputs are there, ", command, " reads them again.");
    const which = list.length > inMatrix ? `, of the first ${inMatrix}` : "";
    return {
      texts: first ? [form, place] : [none],
      matrix: [h("h2", null, "How near they are to each other"),
        h("p", { class: "muted" }, `${nddup.resemblance(data)} of every two documents in percent${which}. `,
          first ? "Choose a pair to see both texts." : "Their texts are not stored."), chart.table],
    };
  }

  // The text that all documents share, in the first of them, and what each has beside it.
  const SHARED = 4_000, BESIDE = 300; // characters of the common text, and of what a document has beside it
  async function extent(data, list, size) {
    const stored = list.filter((document) => document[8] >= 0);
    if (stored.length < 2) return [];
    const texts = [];
    for (const document of stored) texts.push((await nddup.load(`texts-${document[8]}`))[document[9]][1]);
    const { common, least, sides } = nddup.extent(texts, data.shingle);
    const which = stored.length < size ? `the ${count(stored.length)} documents whose texts are stored, of ${count(size)}` : "all documents";
    const rows = sides.map((side, at) => {
      const own = pieces(side, 0);
      const words = side.covered.reduce((sum, one) => sum + (one ? 0 : 1), 0);
      const said = own.map((text) => text.trim()).filter(Boolean).join(" / ");
      return [nddup.documentLink(stored[at][0]), count(words), words ? nddup.foreign(said.length > BESIDE ? `${said.slice(0, BESIDE)}…` : said) : h("span", { class: "muted" }, "nothing")];
    });
    const [shown] = sides;
    let room = SHARED;
    const body = [];
    pieces(shown, null).forEach(({ text, isCommon }) => {
      if (room <= 0) return;
      const cut = text.slice(0, room);
      room -= cut.length;
      body.push(isCommon ? h("span", null, cut) : h("mark", { class: "only" }, cut));
    });
    return [h("h2", { id: "extent" }, "What they share"),
      h("p", { class: "muted" }, `${nddup.plural(common, "shingle", "shingles")} of ${nddup.plural(data.shingle.length, "word", "words")} in ${which}: `
        + `${least ? nddup.percent(common, least) : "none"} of the ${count(least)} of the shortest. Marked: what the first document has beside it.`),
      h("details", { class: "card text extent", open: true }, h("summary", null, "The common text, in the first document"),
        h("div", { class: "body" }, body, room <= 0 ? " …" : null)),
      h("div", { class: "card" }, nddup.table({ caption: "What each document has beside the common text", hideCaption: true, head: ["Document", "Words beside it", "Which"], numeric: [1], rows }))];
  }

  // A text cut where common text begins or ends; with `wanted` 0 only the pieces beside it.
  function pieces({ text, starts, covered }, wanted) {
    const found = [];
    for (let at = 0; at < covered.length;) {
      let end = at + 1;
      while (end < covered.length && covered[end] === covered[at]) end += 1;
      const cut = text.slice(at ? starts[at] : 0, end < starts.length ? starts[end] : text.length).replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n");
      if (wanted === null) found.push({ text: cut, isCommon: Boolean(covered[at]) });
      else if (covered[at] === wanted) found.push(cut.replace(/\s+/g, " "));
      at = end;
    }
    return found;
  }

  // A sentence about the weakest pair, or why it is not known.
  function weakest(columns, rank, list) {
    const [least, of, size] = [columns.least[rank], columns.least_of[rank], columns.size[rank]];
    if (of === 0) return `The weakest pair has resemblance ${nddup.share(least)}. `;
    if (of === 1) return `The weakest pair that the run lists has resemblance ${nddup.share(least)}; not every two documents here are a listed pair. `;
    if (size > list.length) return "The weakest pair is not computed: the larger clusters of this run have too many pairs. ";
    return "The run has no resemblance for the pairs here. ";
  }

  function aboutShort(data, longest) {
    if (!nddup.isShort(longest)) return null;
    return h("p", { class: "card hint" }, h("b", null, "Very short texts. "), `No document here has more than ${nddup.plural(longest, "token", "tokens")}: such pages share a message or an empty form, `
      + "rather than content. ", h("code", null, `--set input.min_tokens=${longest + 1}`), ` leaves them out (it is ${count(data.short.min_tokens)} in this run); they are then listed among the rejects as `, h("code", null, "short"), ".");
  }

  async function aboutFamily(data, columns, rank) {
    const place = columns.family[rank];
    if (place < 0) return null;
    const { each } = data.families;
    const family = (await nddup.load(`families-${Math.floor(place / each)}`))[place % each];
    const near = columns.near[rank];
    return h("p", { class: "card hint" }, h("b", null, `One of ${count(family.ranks.length)} overlapping sets. `),
      near >= 0 ? [`It shares ${count(columns.shared[rank])} of its ${count(columns.size[rank])} documents with `,
        h("a", { href: nddup.href("cluster", columns.id[near]) }, `a set of ${count(columns.size[near])}`), ". "] : null,
      h("a", { href: nddup.href("family", columns.id[family.ranks[0]]) }, `See all ${nddup.plural(family.documents, "document", "documents")} of these sets and their graph`), ".");
  }

  async function build(view, data, { parts: [id], params }) {
    const columns = await nddup.columns();
    const rank = columns.rank.get(id);
    const back = nddup.back("clusters", "← All sets");
    if (rank === undefined) {
      view.replaceChildren(back, h("h1", { id: "cluster-title" }, "No such cluster"),
        h("p", null, nddup.foreign(id || ""), " is not a cluster of this report."));
      return;
    }
    const each = data.clusters.members_each;
    const rows = await nddup.load(`members-${Math.floor(rank / each)}`);
    const [places, flat] = rows[rank % each];
    const list = (await Promise.all(places.map(nddup.at))).map(nddup.asRow);
    const near = pairsOf(Math.min(list.length, data.clusters.matrix_each), flat);
    const coverage = columns.coverage[rank];
    const size = columns.size[rank];
    const asked = ["a", "b"].map((name) => Number(params.get(name)) - 1);
    const family = await aboutFamily(data, columns, rank);
    const { texts, matrix } = comparison(data, id, list, near, asked);
    const title = columns.title[rank] || columns.label[rank];
    view.replaceChildren(back,
      h("h1", { id: "cluster-title" }, `${count(size)} documents`, h("span", { class: "hidden-text" }, " in cluster"), h("code", { class: "cluster-id" }, id)),
      h("p", { class: "begins" }, nddup.foreign(title)),
      h("p", { class: "lead" }, weakest(columns, rank, list), COVERAGE[coverage] || coverage),
      ...[aboutShort(data, columns.longest[rank]), family].filter(Boolean),
      ...texts, h("h2", null, "The documents"), size > list.length ? h("p", { class: "muted" }, `The first ${count(list.length)} are listed.`) : "",
      ...documents(list).filter(Boolean), ...matrix, ...await extent(data, list, size));
  }

  nddup.views.cluster = { title: "Cluster", build: async () => {}, show: build };
})();
