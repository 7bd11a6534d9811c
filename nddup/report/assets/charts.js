"use strict";
// Charts: Chart.js on a canvas, and the same numbers as a table.
(() => {
  const { h, count } = nddup;
  const waiting = []; // charts are made when their canvas is on the page and shown

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function paint(chart) {
    const { scales, plugins } = chart.options;
    chart.data.datasets.forEach((set, at) => {
      set.backgroundColor = colour(chart.config.type === "bar" ? "--accent-soft" : at ? "--second" : "--accent");
      set.hoverBackgroundColor = colour("--accent");
      set.borderColor = colour(at ? "--second" : "--accent");
    });
    for (const scale of Object.values(scales)) {
      scale.ticks.color = colour("--muted");
      scale.title.color = colour("--muted");
      scale.grid.color = colour("--line");
    }
    plugins.legend.labels.color = colour("--ink");
    plugins.tooltip.backgroundColor = colour("--ink");
    plugins.tooltip.titleColor = colour("--page");
    plugins.tooltip.bodyColor = colour("--page");
    chart.update("none");
  }

  const axis = (title, extra) => ({ title: { display: true, text: title }, ticks: { font: { size: 12 } }, grid: {}, border: { display: false }, ...extra });

  function options(x, y, more) {
    return {
      animation: false,
      maintainAspectRatio: false,
      plugins: {
        legend: { display: false, labels: { boxWidth: 12, boxHeight: 2 } },
        tooltip: { displayColors: false, cornerRadius: 4, padding: 8, callbacks: { label: (item) => more.label(item) } },
      },
      scales: {
        x: axis(x, { grid: { display: false }, ticks: { font: { size: 12 }, maxRotation: 45, autoSkipPadding: 8 } }),
        y: axis(y, more.y),
      },
    };
  }

  function keep(canvas, config, then) {
    waiting.push(() => {
      const chart = new Chart(canvas, config);
      paint(chart);
      nddup.onTheme(() => paint(chart));
      addEventListener("beforeprint", () => chart.resize());
      addEventListener("afterprint", () => chart.resize());
      if (then) then(chart);
    });
  }

  const figure = (title, note, extra, canvas, table) => h("figure", { class: "chart card" },
    h("figcaption", null, h("h3", null, title), note ? h("p", { class: "muted" }, note) : null, extra),
    canvas ? h("div", { class: "canvas" }, canvas) : h("p", { class: "muted" }, "None."),
    canvas ? h("details", null, h("summary", null, "As a table"), table) : null);

  nddup.histogram = ({ title, note, labels, counts, x, y }) => {
    const total = counts.reduce((sum, one) => sum + one, 0);
    if (!total) return figure(title, note);
    const most = counts.indexOf(Math.max(...counts));
    const said = `${title}: ${count(total)} ${y}, most of them (${count(counts[most])}) at ${labels[most]} ${x}`;
    const canvas = h("canvas", { role: "img", "aria-label": said });
    const logarithm = h("button", { type: "button", class: "quiet", "aria-pressed": "false" }, "Log scale");
    const bars = { data: counts, borderRadius: 2, categoryPercentage: 0.94, barPercentage: 0.94, minBarLength: 2 };
    const whole = (value) => (Number.isInteger(value) ? count(value) : "");
    const more = { label: (item) => count(item.parsed.y), y: { beginAtZero: true, ticks: { font: { size: 12 }, maxTicksLimit: 6, callback: whole } } };
    keep(canvas, { type: "bar", data: { labels, datasets: [bars] }, options: options(x, y, more) }, (chart) =>
      logarithm.addEventListener("click", () => {
        const pressed = logarithm.getAttribute("aria-pressed") !== "true";
        logarithm.setAttribute("aria-pressed", String(pressed));
        chart.options.scales.y.type = pressed ? "logarithmic" : "linear";
        chart.options.scales.y.beginAtZero = !pressed;
        paint(chart);
      }));
    const rows = labels.map((label, at) => [label, count(counts[at])]).filter((_, at) => counts[at] > 0);
    return figure(title, note, logarithm, canvas, nddup.table({ caption: title, hideCaption: true, head: [x, y], numeric: [1], rows }));
  };

  // Ratios over a threshold: `points` are records with `at`, `lines` (key, name) of those drawn.
  nddup.curve = ({ title, x, points, lines, columns }) => {
    const canvas = h("canvas", { role: "img", "aria-label": `${title}: ${lines.map(([, name]) => name).join(" and ")} over ${x}` });
    const number = (value) => (value === null ? "–" : Number.isInteger(value) ? count(value) : value.toFixed(4));
    const more = { label: (item) => `${item.dataset.label} ${number(item.parsed.y)}`, y: { suggestedMax: 1, max: 1, ticks: { font: { size: 12 }, maxTicksLimit: 6 } } };
    const config = options(x, "", more);
    config.plugins.legend.display = true;
    config.interaction = { mode: "index", intersect: false };
    config.scales.x.type = "linear";
    const datasets = lines.map(([key, label], at) => ({ label, data: points.map((point) => ({ x: point.at, y: point[key] })),
      borderWidth: 2, pointRadius: 0, pointHoverRadius: 3, borderDash: at ? [5, 3] : [] }));
    keep(canvas, { type: "line", data: { datasets }, options: config });
    const head = ["at", ...columns];
    const rows = points.map((point) => head.map((name) => number(point[name])));
    return figure(title, null, null, canvas, nddup.table({ caption: title, hideCaption: true, head, numeric: head.map((_, at) => at), rows }));
  };

  nddup.draw = () => {
    while (waiting.length) waiting.shift()();
  };
  Chart.defaults.font.family = "system-ui, sans-serif";
})();
