"use strict";
// Removals to be judged, one after the other: is the document that stays better, equal, worse, or no duplicate?
(() => {
  const { h, count } = nddup;
  const WORDS = [["better", "The kept one is better"], ["equal", "Equal"], ["worse", "The kept one is worse"], ["not a duplicate", "Not a duplicate"]];
  const RISKS = {
    label: "a column differs", score: "the kept one has the lower score", shorter: "the kept one is shorter", close: "just above the threshold",
    source: "of another file", older: "the kept one is older", newer: "the kept one is newer",
  };
  const HEAD = ["doc_id", "duplicate_of", "judgement", "stratum", "risks", "resemblance", "lost", "tokens", "kept_tokens", "source", "record", "url",
    "kept_source", "kept_record", "kept_url"];
  let rows = [], judged = [], at = 0, key = "", parts = null, turn = 0, data;

  // Judgements outlast the page where the browser lets a page from disk store anything.
  function store() {
    try {
      localStorage.setItem(key, JSON.stringify(Object.fromEntries(rows.map((row, place) => [row.doc_id, judged[place]]).filter(([, word]) => word))));
    } catch { /* no storage for pages opened from files */ }
  }

  function stored() {
    try {
      return JSON.parse(localStorage.getItem(key) || "{}");
    } catch {
      return {};
    }
  }

  async function draw() {
    turn += 1;
    const mine = turn;
    const row = rows[at];
    const [removed, kept] = [await nddup.find(row.doc_id), await nddup.find(row.duplicate_of)];
    const shown = removed && kept ? await nddup.compare(nddup.asRow(kept), nddup.asRow(removed), data.shingle, row.resemblance === null ? -1 : Math.floor(row.resemblance * 1000 + 1e-6), data)
      : h("p", null, "One of the two is not among the documents of this report.");
    if (mine !== turn) return;
    const done = judged.filter(Boolean).length;
    parts.status.textContent = `${count(at + 1)} of ${count(rows.length)}, ${count(done)} judged`;
    const risks = row.risks.split(" ").filter(Boolean).map((name) => RISKS[name]);
    parts.told.textContent = `A stays, B is removed.${risks.length ? ` What may be wrong: ${risks.join(", ")}.` : ""}${row.lost === null ? "" : ` Lost: ${nddup.lost(Math.ceil(row.lost * 10_000 - 1e-9))}.`}`;
    parts.buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(judged[at] === WORDS[place][0])));
    parts.place.replaceChildren(shown);
  }

  function go(to) {
    at = Math.max(0, Math.min(rows.length - 1, to));
    return draw();
  }

  function judge(word) {
    judged[at] = judged[at] === word ? "" : word;
    store();
    return judged[at] ? go(at + 1) : draw();
  }

  function save() {
    nddup.download("judgements.csv", nddup.csv(HEAD, rows.map((row, place) => HEAD.map((name) => (name === "judgement" ? judged[place] || "" : row[name])))));
  }

  addEventListener("keydown", (event) => {
    if (!parts || parts.view.hidden || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const place = "1234".indexOf(event.key);
    if (event.key.length === 1 && place >= 0) judge(WORDS[place][0]);
    else if (event.key === "ArrowRight") go(at + 1);
    else if (event.key === "ArrowLeft") go(at - 1);
    else return;
    event.preventDefault();
  });

  nddup.views.judge = {
    title: "Judge removals",
    async build(view, summary) {
      data = summary;
      rows = data.risky;
      key = `nddup-judged ${data.run}`;
      const heading = h("h1", { id: "judge-title" }, "Is the right one kept?");
      if (!rows.length) {
        view.append(heading, h("p", { class: "card" }, h("code", null, `nddup report ${data.run} --risky 100`), " draws removals to be judged here, with both texts."));
        return;
      }
      const known = stored();
      judged = rows.map((row) => known[row.doc_id] || "");
      const buttons = WORDS.map(([word, text], place) => h("button", { type: "button", "aria-pressed": "false", "aria-keyshortcuts": String(place + 1), on: { click: () => judge(word) } },
        h("kbd", { "aria-hidden": "true" }, place + 1), ` ${text}`));
      const step = (text, by) => h("button", { type: "button", class: "quiet", on: { click: () => go(at + by) } }, text);
      const status = h("p", { class: "status", role: "status" }), told = h("p", { class: "muted" }), place = h("div", { class: "card compare", "aria-live": "polite" });
      parts = { view, status, told, place, buttons };
      view.append(heading, h("p", { class: "lead" }, "Removals drawn by what may be wrong. Keys 1 to 4 judge, ← and → move."),
        h("div", { class: "judging" }, h("div", { class: "words", role: "group", "aria-label": "Judgement" }, buttons), h("div", null, step("← Back", -1), step("Next →", 1))),
        h("div", { class: "above-list" }, status, h("button", { type: "button", class: "quiet", on: { click: save } }, "Save judgements")), told, place,
        h("p", { class: "muted" }, h("code", null, `nddup evaluate ${data.run} --judged judgements.csv`), " tells the rates over all removals; ", h("code", null, "keep.force"), " takes the same file."));
    },
    show: () => (parts ? draw() : undefined),
  };
})();
