"use strict";
// The quality of the result, compared with a reference list and with connected components.
(() => {
  const { h, count } = nddup;
  const NAMES = [["reference", "Pairs of the reference"], ["found", "Pairs of the run"], ["unique_to_reference", "Unique to the reference"],
    ["unique_to_run", "Unique to the run"], ["common", "Common"]];
  const RATIOS = [["precision", "Precision"], ["recall", "Recall"], ["f1", "F1"]];
  const ratio = (value) => (value === null || value === undefined ? "–" : value.toFixed(4));

  function remarks({ list, unlisted }) {
    const found = [];
    if (list.unknown_pairs) {
      found.push(`${nddup.plural(list.unknown_pairs, "pair of the reference has", "pairs of the reference have")} an id that is no document of this run `
        + `(${nddup.plural(list.unknown_ids, "id", "ids")}): counted as not found.`);
    }
    if (unlisted) found.push(`${count(unlisted)} pairs of two documents that do not lead lie in families too large for their pairs: the run does not list these.`);
    if (list.unreadable) found.push(`${nddup.plural(list.unreadable, "line of the reference is", "lines of the reference are")} no entry.`);
    return found.length ? h("ul", { class: "remarks" }, found.map((one) => h("li", null, one))) : null;
  }

  function numbers({ pairs, clusters, list }) {
    const ratios = list.unknown_pairs ? [...RATIOS, ["recall_of_known", "Recall of known ids"]] : RATIOS;
    return nddup.table({ caption: "The run and the reference", hideCaption: true, head: ["", "Pairs", "Pairs in clusters"], numeric: [1, 2],
      rows: [...NAMES.map(([name, title]) => [title, count(pairs[name]), count(clusters[name])]),
        ...ratios.map(([name, title]) => [h("b", null, title), h("b", null, ratio(pairs[name])), h("b", null, ratio(clusters[name]))])] });
  }

  function curves({ curves: { score, resemblance } }) {
    const made = [];
    if (score.length) {
      made.push(nddup.curve({ title: "By the score of the reference", x: "reference pairs with at least this score", points: score,
        lines: [["precision", "precision"], ["recall", "recall"]], columns: ["reference", "common", "precision", "recall"] }));
    }
    if (resemblance.length) {
      made.push(nddup.curve({ title: "By the resemblance of the run", x: "pairs of the run with at least this resemblance", points: resemblance,
        lines: [["precision", "precision"], ["recall", "recall"]], columns: ["found", "common", "precision", "recall"] }));
    }
    return made.length ? h("div", { class: "charts two-wide" }, made) : null;
  }

  function lists({ lists: written }) {
    return h("ul", null, Object.entries(written).map(([name, { file, rows, of }]) => h("li", null, `${name.replaceAll("_", " ")}: `,
      file ? [`${count(rows)} of ${count(of)} in `, h("code", null, file)] : `${count(of)}, not listed`)));
  }

  function evaluation(found) {
    const heading = h("h2", null, "Against a reference list");
    if (!found) {
      return [heading, h("p", { class: "card" }, "This run was not compared with a reference list. ",
        h("code", null, "nddup evaluate RUN --truth FILE"), " does it; ", h("code", null, "nddup report RUN"), " then shows it here.")];
    }
    if (found.format !== 1) return [heading, h("p", { class: "card" }, `evaluation.json is of format ${found.format}, which this report does not know.`)];
    return [heading, h("p", { class: "muted" }, nddup.foreign(found.path), `: ${nddup.plural(found.list.lines, "entry", "entries")} of ${found.list.kind}, ${nddup.plural(found.list.ids, "id", "ids")}`),
      h("div", { class: "card evaluation" }, numbers(found), remarks(found)), curves(found),
      h("div", { class: "card" }, h("h3", null, "The pairs that only one has"), lists(found))];
  }

  function components(rows, mode, all) {
    if (!rows) return null;
    const invented = rows.reduce((sum, row) => sum + row.invented, 0);
    const none = ["all", "cover"].includes(mode) ? " No cluster of this run holds any of these." : "";
    return [h("h2", null, "What connected components would invent"),
      h("p", { class: "muted" }, `A component joins documents through others. Here are those with pairs that are no near-duplicates.${none}`),
      rows.length ? h("div", { class: "card" },
        h("p", null, `${count(all)} false pairs, if a component were taken for one group`, invented < all ? `; ${count(invented)} of them in these ${count(rows.length)}` : "", ":"),
        nddup.table({ caption: "Components with false pairs", hideCaption: true, head: ["Component", "Documents", "Near-duplicate pairs", "Invented pairs"],
          numeric: [1, 2, 3], rows: rows.map((row) => [nddup.foreign(row.component), count(row.size), count(row.pairs), [row.exact ? "" : "≤ ", count(row.invented)]]) }))
        : h("p", { class: "card" }, "None: in every component all documents are near-duplicates of each other.")];
  }

  // Families whose documents have different values in a column of keep.ledger; a missing value is a value.
  function differing({ column, families, documents, largest }) {
    const spelled = ({ value, documents: number }) => [value === null ? h("i", null, "none") : nddup.foreign(value), `: ${count(number)}`];
    const values = (family) => family.values.map((one, at) => [at ? ", " : "", spelled(one)])
      .concat(family.many > family.values.length ? [`, and ${nddup.plural(family.many - family.values.length, "more value", "more values")}`] : []);
    return h("div", { class: "card" }, h("h3", null, nddup.foreign(column)),
      h("p", null, families ? `${nddup.plural(families, "family differs", "families differ")}, with ${count(documents)} documents together.`
        : "None: in every family all documents have the same value."),
      largest.length ? nddup.table({ caption: `Families that differ in ${column}`, hideCaption: true, head: ["Kept document", "Documents", "Values, with their documents"],
        numeric: [1], rows: largest.map((family) => [h("a", { href: nddup.href("document", family.family) }, nddup.foreign(family.family)), count(family.documents), values(family)]) }) : null);
  }

  function disagreements(columns) {
    if (!columns) return null;
    return [h("h2", null, "Families that disagree"),
      h("p", { class: "muted" }, "A family is a kept document with those that it stands for. Here are those whose documents have different values: ",
        h("code", null, "nddup show RUN --disagree COLUMN --csv"), " lists all of them."), columns.map(differing)];
  }

  nddup.views.quality = {
    title: "Quality",
    async build(view, data) {
      view.append(h("h1", { id: "quality-title" }, "Quality"),
        ...[evaluation(data.evaluation), disagreements(data.disagreements), components(data.components, data.mode, data.invented)].flat(2).filter(Boolean));
    },
    show() {},
    shown() {
      nddup.draw();
    },
  };
})();
