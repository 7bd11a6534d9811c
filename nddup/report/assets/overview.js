"use strict";
// The first page: what was found, from the records to the kept documents.
(() => {
  const { h, count, percent } = nddup;

  function statement(data) {
    const of = Object.fromEntries(data.headline.map(([name, number]) => [name, number]));
    const documents = of.documents;
    return [
      h("h1", { id: "overview-title" },
        h("strong", null, count(of.kept)), ` of ${count(documents)} documents stay`),
      h("p", { class: "lead" }, of.removed
        ? `${nddup.plural(of.removed, "is a near-duplicate", "are near-duplicates")} of one that stays (${percent(of.removed, documents)}): `
          + `${data.rule.measure} at least ${data.rule.threshold}.`
        : `No document is a near-duplicate of another: ${data.rule.measure} at least ${data.rule.threshold}.`),
    ];
  }

  function funnel(steps) {
    const most = Math.max(1, ...steps.map(([, number]) => number));
    return h("div", { class: "card" }, h("h2", null, "From records to kept documents"),
      h("ol", { class: "funnel" }, steps.map(([name, number, note], at) => h("li", null,
        h("span", { class: "step" }, name),
        h("span", { class: "track", "aria-hidden": "true" },
          h("span", { class: at === steps.length - 1 ? "fill last" : "fill", width: `${(100 * number) / most}%` })),
        h("span", { class: "amount" }, count(number)),
        h("span", { class: "note" }, note)))));
  }

  function numbers(lines) {
    return h("dl", { class: "numbers" }, lines.map(([name, number, note]) =>
      h("div", null, h("dt", null, name), h("dd", null, h("span", { class: "big" }, count(number)),
        note ? h("span", { class: "note" }, note) : null))));
  }

  function histograms(data) {
    const { sizes, resemblance, lengths } = data.histograms;
    const last = lengths.counts.reduce((found, one, at) => (one ? at : found), -1) + 1;
    const first = Math.max(0, lengths.counts.findIndex((one) => one));
    return h("div", { class: "charts" },
      nddup.histogram({ title: "Cluster size", labels: sizes.labels, counts: sizes.counts, x: "documents in a cluster", y: "clusters" }),
      nddup.histogram({ title: "Resemblance", labels: resemblance.labels.map((one) => (one / 100).toFixed(2)),
        counts: resemblance.counts, x: "estimated resemblance of a pair", y: "pairs",
        note: resemblance.unknown ? `${count(resemblance.unknown)} pairs have no estimate.` : null }),
      nddup.histogram({ title: "Length", labels: lengths.labels.slice(first, last), counts: lengths.counts.slice(first, last),
        x: "tokens of a document", y: "documents" }));
  }

  function remarks(data) {
    const { shown, all } = data.clusters;
    const found = [...data.notes];
    if (shown < all) found.push(`the ${count(shown)} largest of ${count(all)} clusters are listed here`);
    return h("div", { class: "card" }, h("h2", null, "Left out, cut, covered, led"), found.length
      ? h("ul", { class: "remarks" }, found.map((note) => h("li", null, note)))
      : h("p", null, "Nothing was left out, cut or replaced: every pair and every maximal set is there."));
  }

  function first(data, list) {
    const rows = list.slice(0, 5);
    if (!rows.length) return null;
    return h("div", { class: "card" }, h("h2", null, "Largest clusters"),
      h("ol", { class: "largest" }, rows.map((row) => h("li", null,
        h("a", { href: `#/cluster/${row.id}` }, nddup.oneLine(row.label)),
        h("span", { class: "note" }, `${count(row.size)} documents`)))),
      h("p", null, h("a", { href: "#/clusters" }, `All ${count(data.clusters.shown)} clusters`)));
  }

  nddup.views.overview = {
    title: "Overview",
    async build(view, data) {
      const list = await nddup.largest(5);
      view.append(h("div", { class: "hero" }, statement(data)), numbers(data.headline), funnel(data.funnel),
        histograms(data), h("div", { class: "two" }, first(data, list), remarks(data)));
    },
    show() {
      nddup.draw();
    },
  };
})();
