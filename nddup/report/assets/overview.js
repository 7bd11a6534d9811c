"use strict";
// The first page: the results, from the records read to the documents kept.
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

  // A run that takes the names of its families from an earlier one begins with what is new.
  function news({ news: found }) {
    if (!found) return null;
    const told = [
      [found.born, "new family", "new families"], [found.alone, "new document like no other", "new documents like no other"],
      [found.grown, "family grew", "families grew"], [found.shrunk, "family shrank", "families shrank"],
      [found.gone, "family is gone", "families are gone"],
    ].filter(([number]) => number).map(([number, one, many]) => nddup.plural(number, one, many)).join(", ");
    return h("div", { class: "card" }, h("h2", null, "What is new"),
      h("p", { class: "muted" }, `Since ${found.since}: ${told || "nothing in the families"}. ${count(found.before)} documents before, ${count(found.documents)} now.`),
      found.largest.length ? h("ol", { class: "largest" }, found.largest.map(([id, name, documents, before]) => h("li", null,
        h("a", { href: nddup.href("document", id) }, nddup.oneLine(name)),
        h("span", { class: "note" }, before ? `${count(before)} documents before, ${count(documents)} now` : `new, ${count(documents)} documents`)))) : null);
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

  // Explanations of the terms of the summary, shown beside them.
  const MEANS = {
    "records read": "A record is one document as a file holds it: a page, a line, an element.",
    rejected: "Records that became no document, each with its reason: see Run.",
    documents: "Records with an id and a text. Two documents have the same sketch when the samples taken of their shingles are equal.",
    "near-duplicate pairs": "Two documents that share at least so much of their shingles, runs of consecutive words.",
    clusters: "Sets in which every two documents are near-duplicates and to which none can be added. Two sets may overlap; sets that do lie in one component.",
    "false in components": "Not part of the result: pairs that are no near-duplicates, but that would be called so if everything connected through others (a component) were taken for one group.",
    kept: "The documents to keep: one of each group of near-duplicates, and every unique one.",
    removed: "The documents to drop. Each is a near-duplicate of a kept one, which is named beside it.",
    "distinct sketches": "Documents with equal sketches count once here.",
  };
  const explained = (name) => (MEANS[name]
    ? h("details", { class: "what" }, h("summary", null, name), h("p", null, MEANS[name])) : name);

  function numbers(lines) {
    return h("dl", { class: "numbers" }, lines.map(([name, number, note]) =>
      h("div", null, h("dt", null, explained(name)), h("dd", null, h("span", { class: "big" }, count(number)),
        note ? h("span", { class: "note" }, note) : null))));
  }

  function short({ short: { tokens, clusters, largest, min_tokens: least } }) {
    if (!clusters) return null;
    return h("p", { class: "card hint" }, h("b", null, `${nddup.plural(clusters, "cluster holds", "clusters hold")} only very short texts`),
      `, under ${tokens} tokens, the largest ${nddup.plural(largest, "document", "documents")}: mostly messages and empty forms rather than content. `,
      h("code", null, `--set input.min_tokens=${tokens}`), ` leaves such documents out; in this run it is ${count(least)}.`);
  }

  function histograms(data) {
    const { sizes, resemblance, lengths } = data.histograms;
    const last = lengths.counts.reduce((found, one, at) => (one ? at : found), -1) + 1;
    const first = Math.max(0, lengths.counts.findIndex((one) => one));
    return h("div", { class: "charts" },
      nddup.histogram({ title: "Cluster size", labels: sizes.labels, counts: sizes.counts, x: "documents in a cluster", y: "clusters" }),
      nddup.histogram({ title: "Resemblance", labels: resemblance.labels.map((one) => (one / 100).toFixed(2)),
        counts: resemblance.counts, x: `${nddup.resemblance(data).toLowerCase()} of a pair`, y: "pairs",
        note: resemblance.unknown ? `${count(resemblance.unknown)} pairs have none.` : null }),
      nddup.histogram({ title: "Length", labels: lengths.labels.slice(first, last), counts: lengths.counts.slice(first, last),
        x: "tokens of a document", y: "documents" }));
  }

  function remarks(data) {
    const { shown, all } = data.clusters;
    const found = [...data.notes];
    if (shown < all) found.push(`the ${count(shown)} largest of ${count(all)} clusters are listed here`);
    return h("div", { class: "card" }, h("h2", null, "Limits that took effect"), found.length
      ? h("ul", { class: "remarks" }, found.map((note) => h("li", null, note)))
      : h("p", null, "None: nothing was skipped, cut or replaced. Every near-duplicate pair and every maximal set is in the result."));
  }

  // Families are disjoint: each is one kept document with those that it stands for.
  function families({ documents: { largest, families: all } }) {
    if (!largest.length) return null;
    return h("div", { class: "card" }, h("h2", null, "Largest families"),
      h("p", { class: "muted" }, "One kept document, and those that were removed for it. No document is in two."),
      h("ol", { class: "largest" }, largest.slice(0, 5).map(([id, url, title, stands]) => h("li", null,
        h("a", { href: nddup.href("document", id) }, nddup.oneLine(title || url || id, Boolean(title))),
        h("span", { class: "note" }, nddup.familyOf(stands))))),
      h("p", null, h("a", { href: FAMILIES }, `All ${nddup.plural(all, "family", "families")}`), " · ", h("a", { href: "#/documents?outcome=removed" }, "All removed documents")));
  }
  const FAMILIES = "#/documents?outcome=family&sort=stands";

  function first(data, list) {
    const rows = list.slice(0, 5);
    if (!rows.length) return null;
    return h("div", { class: "card" }, h("h2", null, "Largest clusters"),
      h("p", { class: "muted" }, "Maximal sets of documents of which every two are near-duplicates. They may overlap, and are no families: a document may be in several."),
      h("ol", { class: "largest" }, rows.map((row) => h("li", null,
        h("a", { href: `#/cluster/${row.id}` }, nddup.oneLine(row.label, true)),
        h("span", { class: "note" }, `${count(row.size)} documents`, row.more ? `, and ${nddup.plural(row.more, "set", "sets")} that overlap${row.more === 1 ? "s" : ""} with it` : "",
          row.longest > 0 && row.longest < data.short.tokens ? h("span", { class: "tag warn" }, "very short texts") : null)))),
      h("p", null, h("a", { href: "#/clusters" }, `All ${count(data.clusters.shown)} clusters`)));
  }

  nddup.views.overview = {
    title: "Overview",
    async build(view, data) {
      const list = await nddup.largest(5);
      view.append(h("div", { class: "hero" }, statement(data)), news(data) || "", numbers(data.headline), h("div", { class: "two" }, families(data), first(data, list)),
        short(data) || "", funnel(data.funnel), histograms(data), remarks(data));
    },
    show() {},
    shown() {
      nddup.draw();
    },
  };
})();
