"use strict";
// One document: its outcome and the reason, its nearest documents, its clusters; and any two documents side by side.
(() => {
  const { h, count } = nddup;
  const POLICIES = {
    longest: "the longest", "first-id": "the one with the smallest id", first: "the first of the collection", "shortest-url": "the one with the shortest address",
    newest: "the newest capture", oldest: "the oldest capture",
  };
  const REMOVED = { exact: "it has the same content as ", equal: "it has the same text as ", near: "it is a near-duplicate of ", forced: "keep.force says so; it is a near-duplicate of " };
  const STATES = ["kept", "same content", "same text", "near-duplicate", "by keep.force"];
  const TEXT = 4_000; // characters shown at first

  const compareLink = (a, b, text) => h("a", { href: nddup.href("compare", a, b) }, text);

  // Whether a document is kept or removed, and why, in a sentence or two.
  function why(data, one) {
    const outcome = nddup.outcomeOf(one);
    if (one.state && !one.of) return [h("b", null, "Removed: "), "keep.force says so; no document that is kept is a near-duplicate of it."];
    if (one.state) {
      const lost = one.lost < 0 ? "" : one.lost ? `${nddup.lost(one.lost)} of its shingles are not there. ` : "All of its shingles are there. ";
      return [h("b", null, "Removed: "), REMOVED[outcome], nddup.documentLink(one.of), ", which is kept. ", lost, compareLink(one.id, one.of, "Compare the two"), "."];
    }
    if (outcome === "unique") {
      return [h("b", null, "Kept, unique: "), one.features ? "no other document of the run is a near-duplicate of it." : "it has no words to compare, so it is in no pair."];
    }
    const prefers = POLICIES[data.policy] || data.policy;
    if (!one.stands) return [h("b", null, "Kept: "), `none of its ${nddup.plural(one.pairs, "near-duplicate", "near-duplicates")} that is kept comes before it by the policy “${data.policy}”; it stands for no other.`];
    const is = data.policy === "longest" && one.tokens >= one.longest;
    return [h("b", null, "Kept: "), is ? `the longest of a ${nddup.familyOf(one.stands)}. ` : `it is preferred to its near-duplicates by the policy “${data.policy}” (${prefers}), of a ${nddup.familyOf(one.stands)}. `,
      `${nddup.plural(one.stands, "document was", "documents were")} removed in its favour.`];
  }

  async function facts(one) {
    const unread = [one.unreadBytes && nddup.plural(one.unreadBytes, "byte", "bytes"), one.unreadParts && nddup.plural(one.unreadParts, "part", "parts")].filter(Boolean);
    const lines = [["Address", one.url ? nddup.address(one.url) : "–"], ["Source", nddup.foreign(`${one.source}, record ${one.record}`)],
      ["Length", `${nddup.plural(one.tokens, "token", "tokens")}, ${nddup.plural(one.features, "distinct feature", "distinct features")}`],
      ["Near-duplicates", count(one.pairs)]];
    if (one.leader) lines.push(["Leader", "of a component of more pairs than pairs.max_edges, which lists only those of its leaders"]);
    if (unread.length) lines.push(["Not read", unread.join(", ")]);
    if (one.parent) lines.push(["Inside", (await nddup.find(one.parent)) ? nddup.documentLink(one.parent) : nddup.foreign(one.parent)]);
    return h("dl", { class: "facts card" }, lines.map(([name, value], at) => h("div", { class: at ? null : "wide" }, h("dt", null, name), h("dd", null, value))));
  }

  async function nearest(data, one, flat) {
    const heading = h("h2", null, "Nearest documents");
    if (flat === null) return [heading, h("p", { class: "muted" }, "This run has too many pairs for the report to list the nearest of each document: ", h("code", null, `nddup show RUN --doc ${one.id}`), " does.")];
    if (!flat.length) return [];
    const rows = [];
    for (let at = 0; at < flat.length; at += 3) {
      const [other, overlap, resemblance] = flat.slice(at, at + 3);
      const found = await nddup.find(other);
      const told = found && (found.url === other ? found.title : found.url || found.title);
      rows.push([[nddup.documentLink(other), told ? h("div", { class: "note" }, nddup.foreign(told)) : null], nddup.share(resemblance), count(overlap), compareLink(one.id, other, "Compare")]);
    }
    return [heading, h("p", { class: "muted" }, rows.length < one.pairs ? `The nearest ${rows.length} of ${count(one.pairs)}.` : "All that the run lists."),
      h("div", { class: "card" }, nddup.table({ caption: "Nearest documents", hideCaption: true, head: ["Document", nddup.resemblance(data), "Shared features", "Texts"], numeric: [1, 2], rows }))];
  }

  // The documents that were removed for this one.
  async function family(data, one) {
    if (!one.stands) return [];
    const flat = (await nddup.load(`stands-${one.number}`))[one.at];
    if (!flat.length) return [];
    const rows = [];
    for (let at = 0; at < flat.length; at += 4) {
      const [other, state, like, lost] = flat.slice(at, at + 4);
      rows.push([[nddup.documentLink(other), h("div", { class: "note" }, STATES[state])], nddup.share(like), nddup.lost(lost), compareLink(one.id, other, "Compare")]);
    }
    return [h("h2", null, "Its family"), h("p", { class: "muted" }, `A ${nddup.familyOf(one.stands)}: this one and those removed for it. `, rows.length < one.stands ? `The first ${count(rows.length)} of ${count(one.stands)} removed documents. ` : "",
      "Lost: the share of a removed document's shingles that this one lacks; – where only sketches were compared."),
    h("div", { class: "card" }, nddup.table({ caption: "Documents removed for this one", hideCaption: true, head: ["Document", nddup.resemblance(data), "Lost", "Texts"], numeric: [1, 2], rows }))];
  }

  async function clusters(one) {
    if (!one.clusters.length) return [];
    const columns = await nddup.columns();
    const rows = one.clusters.map((rank) => [h("a", { href: nddup.href("cluster", columns.id[rank]) }, h("code", null, columns.id[rank])),
      nddup.foreign(columns.title[rank] || columns.label[rank]), count(columns.size[rank]), count(columns.support[rank])]);
    const more = one.inAll > rows.length ? `The largest ${rows.length} of ${count(one.inAll)}. ` : "";
    return [h("h2", null, "The sets it is in"), h("p", { class: "muted" }, more, rows.length > 1 ? "A document may be in several: sets that overlap." : ""),
      h("div", { class: "card" }, nddup.table({ caption: "Clusters of the document", hideCaption: true, head: ["Cluster", "Begins", "Documents", "Shared features"], numeric: [2, 3], rows }))];
  }

  async function text(one) {
    const [chunk, row] = one.text;
    const heading = h("h2", null, "Text");
    if (chunk < 0) return [heading, h("p", { class: "card no-text" }, "The text of this document is not stored in this report.")];
    const whole = (await nddup.load(`texts-${chunk}`))[row][1].replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n").trim();
    const body = h("div", { class: "body" }, nddup.foreign(whole.slice(0, TEXT)));
    const more = whole.length > TEXT ? h("button", { type: "button", class: "quiet more", on: { click: () => {
      body.replaceChildren(nddup.foreign(whole));
      more.remove();
    } } }, `Show all ${count(whole.length)} characters`) : null;
    return [heading, h("div", { class: "card text" }, body, more)];
  }

  // Leads to the comparison with any document, whether or not they are alike.
  function withAnother(one) {
    const input = h("input", { type: "text", id: "document-other", autocomplete: "off", spellcheck: "false", required: true, placeholder: "Id of a document" });
    return h("form", { class: "filters card", on: { submit: (event) => {
      event.preventDefault();
      location.hash = nddup.href("compare", one.id, input.value.trim());
    } } }, h("div", { class: "field wide" }, h("label", { for: "document-other" }, "Compare with"), input), h("button", { class: "quiet" }, "Compare"));
  }

  const missing = (view, titleId, id, data) => view.replaceChildren(nddup.back("documents", "← All documents"),
    h("h1", { id: titleId }, "No such document"),
    h("p", null, nddup.foreign(id || ""), data.documents.shown < data.documents.all
      ? ` is not among the ${count(data.documents.shown)} documents that this report holds of ${count(data.documents.all)}.` : " is no document of this run."));

  nddup.views.document = {
    title: "Document",
    build: async () => {},
    async show(view, data, { parts: [id] }) {
      const one = await nddup.find(id || "");
      if (!one) {
        missing(view, "document-title", id, data);
        return;
      }
      const near = await nddup.load(`nearest-${one.number}`);
      const [details, others, own, ofClusters, ofText] = [await facts(one), await nearest(data, one, near && near[one.at]), await family(data, one), await clusters(one), await text(one)];
      view.replaceChildren(nddup.back("documents", "← All documents"),
        h("h1", { id: "document-title", class: "document-title" }, h("span", { class: "hidden-text" }, "Document "), nddup.foreign(one.id)),
        one.title ? h("p", { class: "begins" }, nddup.foreign(one.title)) : "", h("p", { class: "lead" }, why(data, one)), details,
        ...own, ...others, ...ofClusters, ...ofText, withAnother(one));
    },
  };

  nddup.views.compare = {
    title: "Comparison",
    build: async () => {},
    async show(view, data, { parts: [first, second] }) {
      const [a, b] = [await nddup.find(first || ""), await nddup.find(second || "")];
      if (!a || !b) {
        missing(view, "compare-title", a ? second : first, data);
        return;
      }
      const flat = ((await nddup.load(`nearest-${a.number}`)) || [])[a.at] || [];
      const at = flat.findIndex((value, place) => place % 3 === 0 && value === b.id);
      const shown = await nddup.compare(nddup.asRow(a), nddup.asRow(b), data.shingle, at < 0 ? -1 : flat[at + 2], data);
      view.replaceChildren(nddup.back("documents", "← All documents"), h("h1", { id: "compare-title" }, "Two documents"),
        h("p", { class: "lead" }, "A is ", nddup.documentLink(a.id), ` (${nddup.outcomes[nddup.outcomeOf(a)]}), B is `, nddup.documentLink(b.id), ` (${nddup.outcomes[nddup.outcomeOf(b)]}).`),
        h("div", { class: "card compare" }, shown));
    },
  };
})();
