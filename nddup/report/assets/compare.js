"use strict";
// Two documents side by side: equal passages are aligned, and text in only one of them is marked.
(() => {
  const { h, count } = nddup;
  const LONG = 90, ENDS = 30; // tokens: of an equal passage longer than LONG, only ENDS tokens at each end are shown at first
  const INLINE = 12; // tokens: a shorter equal passage stays among the differences around it
  const STORED = 20_000;

  // The text of tokens from..to, with the characters between them and up to the next token.
  function slice(side, from, to) {
    const start = from === 0 ? 0 : side.starts[from];
    const end = to < side.starts.length ? side.starts[to] : side.text.length;
    const text = side.text.slice(start, end).replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n");
    return from === 0 ? text.trimStart() : text;
  }

  // Tokens from..to: those in shingles that the other text has elsewhere are `moved`; the others occur `only` here.
  function marked(side, from, to) {
    const found = [];
    for (let at = from; at < to;) {
      const { covered } = side;
      let end = at + 1;
      while (end < to && covered[end] === covered[at]) end += 1;
      const text = slice(side, at, end);
      const trail = text.length - text.trimEnd().length;
      found.push(h(covered[at] ? "span" : "mark", { class: covered[at] ? "moved" : "only" }, text.slice(0, text.length - trail)),
        text.slice(text.length - trail));
      at = end;
    }
    return found;
  }

  // The comparison ignores how a token is written, and the characters between it and the next token.
  const written = (side, at) => side.text.slice(side.starts[at], side.ends[at]);
  const between = (side, at) => side.text.slice(at < 0 ? 0 : side.ends[at], at + 1 < side.starts.length ? side.starts[at + 1] : side.text.length);
  const gap = (side, at) => between(side, at).replace(/\s+/g, " ").trim();
  const clean = (text) => text.replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n");

  // Tokens from..to of one side, equal to as many of the other: text that still differs is marked as not compared.
  function passage(side, from, to, other, start) {
    const found = [];
    let plain = "";
    const add = (text, isOther) => {
      if (!isOther || !text.trim()) plain += clean(text);
      else {
        found.push(plain, h("span", { class: "uncompared" }, clean(text)));
        plain = "";
      }
    };
    if (from === 0) add(between(side, -1).trimStart(), start === 0 && gap(side, -1) !== gap(other, -1));
    for (let at = from; at < to; at += 1) {
      const twin = start + at - from;
      add(written(side, at), written(side, at) !== written(other, twin));
      add(between(side, at), gap(side, at) !== gap(other, twin) && (at + 1 < to || at + 1 === side.words.length));
    }
    return [...found, plain];
  }

  // Counts the places in equal passages that are written differently.
  function countUncompared({ a, b, steps }) {
    let places = 0;
    for (const step of steps.filter(({ same }) => same)) {
      for (let at = step.a[0]; at < step.a[1]; at += 1) {
        const twin = step.b[0] + at - step.a[0];
        if (written(a, at) !== written(b, twin) || (at + 1 < step.a[1] && gap(a, at) !== gap(b, twin))) places += 1;
      }
    }
    return places;
  }

  function samePassage(side, [from, to], other, [start, end]) {
    if (to - from <= LONG) return passage(side, from, to, other, start);
    return [passage(side, from, from + ENDS, other, start), h("span", { class: "left-out" }, ` … `), passage(side, to - ENDS, to, other, end - ENDS)];
  }

  // Steps as rows: each long equal passage is a row, and so is everything between two of them.
  function rowsOf(steps) {
    const rows = [];
    for (const step of steps) {
      const last = rows[rows.length - 1];
      const isLong = step.same && step.a[1] - step.a[0] >= INLINE;
      if (isLong || !last || last.isLong) rows.push({ isLong, steps: [step] });
      else last.steps.push(step);
    }
    return rows;
  }

  function sameRow({ a, b }, step) {
    const size = step.a[1] - step.a[0];
    const cells = [h("div", { class: "cell" }, samePassage(a, step.a, b, step.b)), h("div", { class: "cell twin" }, samePassage(b, step.b, a, step.a))];
    const row = h("div", { class: "pair-row same" }, cells);
    if (size <= LONG) return [row];
    const more = h("button", { type: "button", class: "quiet more", on: { click: () => {
      cells[0].replaceChildren(...passage(a, ...step.a, b, step.b[0]));
      cells[1].replaceChildren(...passage(b, ...step.b, a, step.a[0]));
      more.remove();
    } } }, `Show all ${count(size)} equal words`);
    return [row, more];
  }

  function differingRow({ a, b }, steps) {
    const cell = (side, key, other, twin) => {
      const parts = steps.map((step) => (step.same ? h("span", { class: "same" }, passage(side, ...step[key], other, step[twin][0])) : marked(side, ...step[key])));
      const isEmpty = steps.every((step) => step[key][0] === step[key][1]);
      return h("div", { class: "cell" }, h("span", { class: "hidden-text" }, `Differs, in ${key.toUpperCase()}: `),
        isEmpty ? h("span", { class: "muted" }, "nothing here") : parts);
    };
    return h("div", { class: "pair-row differs" }, cell(a, "a", b, "b"), cell(b, "b", a, "a"));
  }

  function said(found, { length, respelt }, listed, { exact }) {
    const parts = [found.resemblance === 1 ? `Every shingle of ${nddup.plural(length, "word", "words")} of either is in the other` : `${nddup.plural(found.common, "shingle", "shingles")} of ${nddup.plural(length, "word", "words")} in both, ${count(found.a.shingles - found.common)} only in A, `
      + `${count(found.b.shingles - found.common)} only in B: resemblance ${nddup.share(Math.floor(1000 * found.resemblance + 1e-6))} of these texts`];
    if (listed >= 0) parts.push(exact ? `the run lists ${nddup.share(listed)}, exact` : `the sketches estimate ${nddup.share(listed)}`);
    if ([found.a, found.b].some((side) => side.text.length >= STORED)) parts.push(`only the first ${count(STORED)} characters are stored`);
    const places = countUncompared(found);
    const which = respelt ? "Punctuation, letter case and what tokens.ignore names" : "Punctuation and letter case";
    const aside = places ? ` ${which} are not compared: ${nddup.plural(places, "place differs", "places differ")} only in these.` : ` ${which} are not compared.`;
    return `${parts.join("; ")}.${aside}`;
  }

  const legend = () => h("p", { class: "legend", "aria-hidden": "true" },
    h("span", { class: "sample same" }, "in both"), h("span", { class: "sample" }, h("mark", { class: "only" }, "only here")),
    h("span", { class: "sample" }, h("span", { class: "moved" }, "elsewhere in the other")),
    h("span", { class: "sample" }, h("span", { class: "uncompared" }, "punctuation or case, not compared")));

  async function textOf(document) {
    if (document[8] < 0) return null;
    const rows = await nddup.load(`texts-${document[8]}`);
    return rows[document[9]][1];
  }

  // A word of a command as a shell takes it.
  const quoted = (word) => (/^[\w@%+=:,.\/#-]+$/.test(word) && !word.startsWith("#") ? word : `'${word.replaceAll("'", `'\\''`)}'`);

  function unstored(ids, missing, run) {
    const command = `nddup report ${quoted(run)} ${ids.map((id) => `--doc ${quoted(id)}`).join(" ")}`;
    return h("p", { class: "no-text" }, missing.length > 1 ? "The texts of both are not stored in this report. " : ["The text of ", nddup.foreign(missing[0]), " is not stored in this report. "],
      "While the inputs are there, this reads them again; then reload the page: ", h("code", null, nddup.foreign(command)));
  }

  nddup.compare = async (first, second, shingle, listed, { rule, run }) => {
    const [textA, textB] = await Promise.all([textOf(first), textOf(second)]);
    const missing = [textA === null && first[0], textB === null && second[0]].filter((id) => id !== false);
    if (missing.length) return unstored([first[0], second[0]], missing, run);
    const found = nddup.differ(textA, textB, shingle);
    const head = (name, document) => h("div", { class: "cell" }, h("b", null, `${name} `), nddup.foreign(document[0]), h("br"),
      document[1] && document[1] !== document[0] ? nddup.address(document[1]) : null);
    return h("div", { class: "compared" }, h("p", { class: "verdict" }, said(found, shingle, listed, rule)), legend(),
      h("div", { class: "pair-row pair-head" }, head("A", first), head("B", second)),
      h("div", { class: "pair-rows" }, rowsOf(found.steps).map(({ isLong, steps }) => (isLong ? sameRow(found, steps[0]) : differingRow(found, steps)))),
      found.steps.length ? null : h("p", { class: "muted" }, "Neither holds a word."));
  };
})();
