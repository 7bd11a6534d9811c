"use strict";
// The first page answers three questions: what was found, may the rest be deleted, and what is strange.
(() => {
  const { h, count, percent } = nddup;
  const documentsOf = (number) => nddup.plural(number, "document", "documents");

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
      h("p", { class: "muted" }, `Since ${found.since}: ${told || "nothing in the families"}. ${documentsOf(found.before)} before, ${count(found.documents)} now.`),
      found.largest.length ? h("ol", { class: "largest" }, found.largest.map(([id, name, documents, before]) => h("li", null,
        h("a", { href: nddup.href("document", id) }, nddup.oneLine(name)),
        h("span", { class: "note" }, before ? `${documentsOf(before)} before, ${count(documents)} now` : `new, ${documentsOf(documents)}`)))) : null);
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
    documents: "Records with an id and a text.",
    "near-duplicate pairs": "Two documents that share at least so much of their shingles, runs of consecutive words.",
    clusters: "Sets in which every two documents are near-duplicates and to which none can be added. Two sets may overlap.",
    kept: "The documents to keep: one of each group of near-duplicates, and every unique one.",
    removed: "The documents to drop. Each is a near-duplicate of a kept one, which is named beside it.",
    "different texts": "Documents with the same text count once here.",
  };
  const explained = (name) => (MEANS[name]
    ? h("details", { class: "what" }, h("summary", null, name), h("p", null, MEANS[name])) : name);

  // What stays is said above.
  function numbers(lines) {
    return h("dl", { class: "numbers" }, lines.filter(([name]) => name !== "kept").map(([name, number, note]) =>
      h("div", null, h("dt", null, explained(name)), h("dd", null, h("span", { class: "big" }, count(number)),
        note ? h("span", { class: "note" }, note) : null))));
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
    return h("div", { class: "card", id: "limits", tabindex: -1 }, h("h2", null, "Limits that took effect"), found.length
      ? h("ul", { class: "remarks" }, found.map((note) => h("li", null, note)))
      : h("p", null, "None: nothing was skipped, cut or replaced. Every near-duplicate pair and every maximal set is in the result."));
  }

  // Families are disjoint: each is one kept document with those that it stands for.
  const FAMILIES = "#/documents?outcome=family&sort=stands";
  function found(data) {
    const { largest, families: all } = data.documents;
    const of = Object.fromEntries(data.headline.map(([name, number, note]) => [name, { number, note }]));
    return h("section", { class: "card" }, h("h2", null, "What was found?"),
      h("p", null, h("b", null, nddup.plural(all, "family", "families")), ": one document that stays, and those removed for it. Of the documents, ", of.documents.note, "."),
      largest.length ? h("ol", { class: "largest" }, largest.slice(0, 5).map(([id, url, title, stands]) => h("li", null,
        h("a", { href: nddup.href("document", id) }, nddup.oneLine(title || url || id, Boolean(title))),
        h("span", { class: "note" }, nddup.plural(stands + 1, "document", "documents"))))) : null,
      h("p", { class: "links" }, h("a", { href: FAMILIES }, "All families"), " · ", h("a", { href: "#/documents?outcome=removed" }, "All removed"), " · ",
        h("a", { href: "#/clusters" }, nddup.plural(data.clusters.all, "set", "sets"))));
  }

  const line = (kind, ...told) => h("li", { class: kind }, h("span", { class: "hidden-text" }, kind === "good" ? "Good: " : kind === "bad" ? "Attention: " : ""), told);

  function lost({ removed, known, nothing, worst, ignored }) {
    if (!removed) return line("good", "Nothing is removed.");
    if (!known) return line("open", "What is lost was not counted: sketches alone decided.");
    if (!worst.length && ignored.length) return line("open", `Only what tokens.ignore leaves out may be lost: ${ignored.join(", ")}.`);
    if (!worst.length) return line("good", `Nothing is lost: every shingle of ${known < removed ? `the ${count(known)} that were compared` : "what is removed"} is in what stays.`);
    const [[id, of, share]] = worst;
    return line("open", "At worst, ", h("a", { href: nddup.href("compare", id, of) }, h("b", null, nddup.lost(Math.ceil(share * 10_000 - 1e-9))), " of a removed text"),
      ` is not in the one that stays. ${count(nothing)} of ${count(removed)} lose nothing.`);
  }

  function checked(verdict, run) {
    if (!verdict) return line("open", "Not checked yet: ", h("code", null, `nddup check ${run}`), " recounts everything by another method.");
    const when = `${verdict.when.slice(0, 10)}, ${verdict.when.slice(11, 16)} UTC`;
    return verdict.is_sound ? line(verdict.unproved ? "open" : "good", h("b", null, "Checked"), `: ${verdict.summary} (${when}).`)
      : line("bad", h("b", null, `Do not delete: ${verdict.summary}`), ` (nddup check, ${when}).`);
  }

  const limits = (notes) => (notes.length
    ? line("open", h("a", { href: "#limits" }, nddup.plural(notes.length, "note", "notes")), ` on what was skipped, cut or limited${notes.length > 1 ? ", the first" : ""}: ${notes[0]}.`)
    : line("good", "No limit took effect: nothing was skipped, cut or replaced."));

  function disagreeing(columns) {
    return (columns || []).map(({ column, families, documents }) => (families
      ? line("bad", h("a", { href: "#/quality" }, nddup.plural(families, "family differs", "families differ")), " in ", nddup.foreign(column), `, with ${nddup.plural(documents, "document", "documents")}.`)
      : line("good", "No family differs in ", nddup.foreign(column), ".")));
  }

  const judging = ({ risky, run, losses }) => (risky.length
    ? line("open", h("a", { href: "#/judge" }, `Judge ${nddup.plural(risky.length, "removal", "removals")}`), " side by side: is the right one kept?")
    : !losses.removed ? [] : line("open", "Is the right one kept? ", h("code", null, `nddup report ${run} --risky 100`), " draws removals to judge."));

  function may(data, verdict) {
    return h("section", { class: "card" }, h("h2", null, "May I delete the rest?"), h("ul", { class: "answers" },
      lost(data.losses), checked(verdict, data.run), limits(data.notes), disagreeing(data.disagreements), judging(data)));
  }

  const CLOSE = 3; // whole percents from the threshold on
  function strange(data) {
    const { short: { tokens, clusters, largest }, rejects, documents, rule, histograms: { resemblance } } = data;
    const told = [];
    const rejected = rejects.reasons.reduce((sum, [, number]) => sum + number, 0);
    if (rejected) told.push(line("open", h("a", { href: "#/run" }, nddup.plural(rejected, "record", "records")), ` became no document: ${rejects.reasons.slice(0, 3).map(([reason, number]) => `${count(number)} ${reason}`).join(", ")}.`));
    if (clusters) told.push(line("open", h("b", null, `${nddup.plural(clusters, "cluster holds", "clusters hold")} only very short texts`),
      `, under ${tokens} tokens, the largest ${nddup.plural(largest, "document", "documents")}: messages and empty forms. `, h("code", null, `--set input.min_tokens=${tokens}`), ` leaves them out.`));
    if (data.framed.length) {
      const [host, share] = data.framed[0];
      const more = data.framed.length > 1 ? `, and of ${nddup.plural(data.framed.length - 1, "more host", "more hosts")},` : "";
      told.push(line("open", `${nddup.percent(share, 1)} of the pages of `, nddup.foreign(host), `${more} share most of their words, as by menus. `, h("code", null, "--set input.text=main"), " compares main texts."));
    }
    const [first] = documents.largest;
    if (first && documents.all >= 100 && (first[3] + 1) / documents.all > 0.02) {
      told.push(line("open", `One family holds ${nddup.percent(first[3] + 1, documents.all)} of all documents: `, h("a", { href: nddup.href("document", first[0]) }, "look at it"), "."));
    }
    const close = resemblance.labels.reduce((sum, percent, at) => (percent < 100 * rule.threshold + CLOSE ? sum + resemblance.counts[at] : sum), 0);
    const nearest = data.borderline ? h("a", { href: "borderline.html" }, "the nearest, side by side") : null;
    if (rule.measure === "resemblance" && close) {
      told.push(line("open", `${nddup.plural(close, "pair lies", "pairs lie")} within ${CLOSE / 100} of the threshold`, nearest ? ": " : "", nearest, "."));
    } else if (nearest && resemblance.labels.length) told.push(line("open", "The pairs that reach the threshold by least: ", nearest, "."));
    return h("section", { class: "card" }, h("h2", null, "What is strange?"), told.length ? h("ul", { class: "answers" }, told) : h("p", null, "Nothing stands out."));
  }

  nddup.views.overview = {
    title: "Overview",
    async build(view, data) {
      const verdict = await nddup.load("check");
      view.append(h("div", { class: "hero" }, statement(data)), news(data) || "", h("div", { class: "questions" }, found(data), may(data, verdict), strange(data)),
        numbers(data.headline), funnel(data.funnel), histograms(data), remarks(data));
    },
    show() {},
    shown() {
      nddup.draw();
    },
  };
})();
