"use strict";
// All documents of the report, in chunks sorted by id: found by id, or by a search through all of them.
(() => {
  const OUTCOMES = {
    family: "kept, of a family", kept: "kept, has near-duplicates", unique: "kept, unique", removed: "removed", exact: "removed: same content",
    equal: "removed: same text", near: "removed: near-duplicate", forced: "removed: by keep.force",
  };
  const STATES = ["kept", "exact", "equal", "near", "forced"];
  const SITE = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:@]+)/i;

  nddup.outcomes = OUTCOMES;
  nddup.siteOf = (url) => (url && SITE.exec(url) ? SITE.exec(url)[1].toLowerCase() : "");

  const readable = (url) => {
    try {
      return decodeURIComponent(url);
    } catch {
      return "";
    }
  };

  async function chunk(number) {
    const columns = await nddup.load(`documents-${number}`);
    if (!columns.texts) {
      columns.sites = columns.url.map(nddup.siteOf);
      columns.texts = columns.id.map((id, at) => [id, columns.url[at] || "", columns.url[at] && columns.url[at].includes("%") ? readable(columns.url[at]) : "",
        columns.sources[columns.source[at]], columns.title[at]].join("\n").toLowerCase());
    }
    return columns;
  }

  // One document with all its columns.
  const one = (columns, at) => ({
    id: columns.id[at], url: columns.url[at], source: columns.sources[columns.source[at]], record: columns.record[at],
    tokens: columns.tokens[at], features: columns.features[at], state: columns.state[at], of: columns.duplicate_of[at],
    stands: columns.stands[at], longest: columns.longest[at], pairs: columns.pairs[at], title: columns.title[at],
    like: columns.like[at], lost: columns.lost[at], text: columns.text[at], clusters: columns.clusters[at], inAll: columns.in[at],
    parent: columns.parent[at], leader: columns.leader[at], unreadBytes: columns.unread_bytes[at], unreadParts: columns.unread_parts[at],
  });
  // A family is a kept document with the documents removed for it; its size counts both.
  nddup.familyOf = (stands) => `family of ${nddup.plural(stands + 1, "document", "documents")}`;
  nddup.outcomeOf = ({ state, pairs, stands }) => (state ? STATES[state] : pairs || stands ? "kept" : "unique");

  // Ids are sorted by their UTF-8 bytes: by UTF-16 code unit, with surrogates after all other units.
  const rank = (unit) => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);
  function before(a, b) {
    for (let at = 0; at < a.length && at < b.length; at += 1) {
      if (a.charCodeAt(at) !== b.charCodeAt(at)) return rank(a.charCodeAt(at)) < rank(b.charCodeAt(at));
    }
    return a.length < b.length;
  }

  function last(ids, id) { // place of the last id that is not after `id`
    let low = 0, high = ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (before(id, ids[middle])) high = middle;
      else low = middle + 1;
    }
    return low - 1;
  }

  // A document, the number of its chunk and its row there; null if it is not in the report.
  nddup.find = async (id) => {
    const { firsts } = (await nddup.load("summary")).documents;
    const number = last(firsts, id);
    if (number < 0) return null;
    const columns = await chunk(number);
    const at = last(columns.id, id);
    return columns.id[at] === id ? { ...one(columns, at), number, at } : null;
  };

  // A document by its place among all; as the row that lists and comparisons take.
  nddup.at = async (place) => {
    const { each } = (await nddup.load("summary")).documents;
    return one(await chunk(Math.floor(place / each)), place % each);
  };
  nddup.asRow = (found) => [found.id, found.url, found.source, found.record, found.tokens, found.features, found.state, found.of, ...found.text];

  // Whether a document matches: every word is in its id, address, file or the stored beginning of its text, and it passes the other filters.
  function asked({ query, source, site, outcome }) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const [file, host] = [source.trim().toLowerCase(), site.trim().toLowerCase()];
    const isAll = !words.length && !file && !host && !outcome;
    const passes = (columns, at) => words.every((word) => columns.texts[at].includes(word))
      && (!file || columns.sources[columns.source[at]].toLowerCase().includes(file))
      && (!host || columns.sites[at].includes(host))
      && (!outcome || ofOutcome(columns, at) === outcome || (outcome === "removed" && columns.state[at] > 0) || (outcome === "family" && columns.stands[at] > 0));
    return { isAll, passes };
  }
  const ofOutcome = (columns, at) => (columns.state[at] ? STATES[columns.state[at]] : columns.pairs[at] || columns.stands[at] ? "kept" : "unique");

  // Searches all documents and calls `visit(columns, row)` for those that match. Returns false if `isStale()` stops it.
  nddup.search = async (criteria, visit, progress, isStale) => {
    const { firsts } = (await nddup.load("summary")).documents;
    const { passes } = asked(criteria);
    for (let number = 0; number < firsts.length; number += 1) {
      const columns = await chunk(number);
      if (isStale()) return false;
      for (let at = 0; at < columns.id.length; at += 1) if (passes(columns, at)) visit(columns, at);
      progress(Math.round((100 * (number + 1)) / firsts.length));
    }
    return true;
  };
  nddup.asksNothing = (criteria) => asked(criteria).isAll;
  nddup.documentOf = one;

  // What is shown under an id: the address, unless the id is the address; else its place in the collection.
  nddup.placeOf = (id, url, source, record) => (url && url !== id ? url : `${source}#${record}`);

  // A link to the page of a document.
  nddup.documentLink = (id, text, properties) => nddup.h("a", { href: nddup.href("document", id), ...properties }, nddup.foreign(text || id));

  // The outcome of a document in words; for a removed one, with a link to the kept one.
  const REMOVED = [null, "same content as", "same text as", "near-duplicate of", "by keep.force, near"];
  nddup.outcome = (state, of) => (!state ? "kept" : of ? [`removed: ${REMOVED[state]} `, nddup.documentLink(of)] : "removed: by keep.force");

  // How a resemblance of the run was got: of all shingles of two texts, or from their sketches.
  nddup.resemblance = ({ rule }) => (rule.exact ? "Exact resemblance" : "Estimated resemblance");

  // What is lost, in 1/10000 of the removed document's shingles: part of one is never shown as nothing.
  nddup.lost = (share) => (share < 0 ? "–" : `${share < 10 && share > 0 ? "< 0.1" : (share / 100).toFixed(1)} %`);
})();
