"use strict";
// How the run went: stages, rejects, skipped files, settings, versions.
(() => {
  const { h, count } = nddup;

  const rows = (list) => list.map(([name, number]) => `${count(number)} ${name}`).join(", ");

  function stages(list) {
    const total = list.reduce((sum, stage) => sum + stage.seconds, 0);
    return h("div", { class: "card" }, h("h2", null, "Stages"),
      nddup.table({ caption: "Stages of the run", hideCaption: true, head: ["Stage", "Seconds", "Share", "Read", "Left", "Shuffled"], numeric: [1, 2, 5],
        rows: list.map((stage) => [stage.name, stage.seconds.toFixed(1), nddup.percent(stage.seconds, total), rows(stage.rows_in),
          rows(stage.rows_out), nddup.bytes(stage.shuffle)]) }));
  }

  function rejects({ reasons, first }) {
    if (!reasons.length) return h("div", { class: "card" }, h("h2", null, "Rejects"), h("p", null, "Every record became a document."));
    return h("div", { class: "card" }, h("h2", null, "Rejects"),
      nddup.table({ caption: "Rejects by reason", hideCaption: true, head: ["Reason", "Records"], numeric: [1], rows: reasons.map(([reason, number]) => [reason, count(number)]) }),
      h("h3", null, `The first ${first.length}`),
      nddup.table({ caption: "The first rejects", hideCaption: true, head: ["Record", "Id", "Reason", "Detail", "Excerpt"],
        rows: first.map(([source, record, id, reason, detail, excerpt]) => [nddup.foreign(`${source}#${record}`), id === null ? "–" : nddup.foreign(id), reason,
          nddup.foreign(detail || ""), nddup.foreign(excerpt || "", { class: "excerpt" })]) }));
  }

  const pairs = (title, list) => h("div", { class: "card" }, h("h2", null, title),
    nddup.table({ caption: title, hideCaption: true, head: ["Name", "Value"],
      rows: list.map(([name, value]) => [h("code", null, name), value === null ? h("span", { class: "muted" }, "unset") : nddup.foreign(String(value))]) }));

  // Settings: those that differ from the default come first and are marked.
  function settings(list) {
    const changed = list.filter((one) => one.length > 2);
    const value = (text) => (text === null ? h("span", { class: "muted" }, "unset") : nddup.foreign(text));
    const row = ([name, is, plain], at, all) => [h("code", null, name), value(is), all === changed ? value(plain) : h("span", { class: "muted" }, "default")];
    return h("div", { class: "card" }, h("h2", null, "Settings"),
      changed.length ? [h("h3", null, `${nddup.plural(changed.length, "setting differs", "settings differ")} from the default`),
        h("div", { class: "changed" }, nddup.table({ caption: "Settings that differ from the default", hideCaption: true, head: ["Name", "Value", "Default"], rows: changed.map(row) }))]
        : h("p", null, "All settings have their default values."),
      h("details", null, h("summary", null, `The ${count(list.length - changed.length)} settings with their default values`),
        nddup.table({ caption: "Settings with their default values", hideCaption: true, head: ["Name", "Value", ""], rows: list.filter((one) => one.length === 2).map(row) })));
  }

  nddup.views.run = {
    title: "Run",
    async build(view, data) {
      const reasons = data.rejects.reasons;
      view.append(h("h1", { id: "run-title" }, "The run"), stages(data.stages),
        h("div", { class: "charts" }, reasons.length ? nddup.histogram({ title: "Rejects by reason", labels: reasons.map(([reason]) => reason),
          counts: reasons.map(([, number]) => number), x: "reason", y: "records" }) : null),
        rejects(data.rejects),
        data.skipped.length ? h("div", { class: "card" }, h("h2", null, "Files not read"),
          nddup.table({ caption: "Files not read", hideCaption: true, head: ["File", "Why"], rows: data.skipped.map(([path, why]) => [nddup.foreign(path), why]) })) : "",
        settings(data.settings), pairs("Versions", data.versions));
    },
    show() {},
    shown() {
      nddup.draw();
    },
  };
})();
