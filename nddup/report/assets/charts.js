"use strict";
// Charts: Chart.js on a canvas, and the same numbers as a table.
(() => {
  const { h, count } = nddup;
  const waiting = []; // charts are drawn once their canvas is on the page and visible

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const inked = (name) => () => colour(name); // read at every drawing, because the theme may change

  const axis = (title, extra) => ({ title: { display: true, text: title, color: inked("--muted") }, border: { display: false },
    ...extra, ticks: { font: { size: 12 }, color: inked("--muted"), ...extra.ticks }, grid: { color: inked("--line"), ...extra.grid } });

  function options(x, y, more) {
    return {
      animation: false,
      maintainAspectRatio: false,
      plugins: {
        colors: { enabled: false },
        legend: { display: false, labels: { boxWidth: 12, boxHeight: 2, color: inked("--ink") } },
        tooltip: { displayColors: false, cornerRadius: 4, padding: 8, backgroundColor: inked("--ink"), titleColor: inked("--page"), bodyColor: inked("--page"), callbacks: { label: (item) => more.label(item) } },
      },
      scales: {
        x: axis(x, { grid: { display: false }, ticks: { maxRotation: 45, autoSkipPadding: 8 } }),
        y: axis(y, more.y),
      },
    };
  }

  function keep(canvas, config, then) {
    waiting.push(() => {
      const chart = new Chart(canvas, config);
      nddup.onTheme(() => chart.update("none"));
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
    const bars = { data: counts, backgroundColor: inked("--accent-soft"), hoverBackgroundColor: inked("--accent"), borderRadius: 2, categoryPercentage: 0.94, barPercentage: 0.94, minBarLength: 2 };
    const whole = (value) => (Number.isInteger(value) ? count(value) : "");
    const more = { label: (item) => count(item.parsed.y), y: { beginAtZero: true, ticks: { maxTicksLimit: 6, callback: whole } } };
    keep(canvas, { type: "bar", data: { labels, datasets: [bars] }, options: options(x, y, more) }, (chart) =>
      logarithm.addEventListener("click", () => {
        const pressed = logarithm.getAttribute("aria-pressed") !== "true";
        logarithm.setAttribute("aria-pressed", String(pressed));
        chart.options.scales.y.type = pressed ? "logarithmic" : "linear";
        chart.options.scales.y.beginAtZero = !pressed;
        chart.update("none");
      }));
    const rows = labels.map((label, at) => [label, count(counts[at])]).filter((_, at) => counts[at] > 0);
    return figure(title, note, logarithm, canvas, nddup.table({ caption: title, hideCaption: true, head: [x, y], numeric: [1], rows }));
  };

  // Ratios over a threshold: `points` are records with `at`; `lines` has the (key, name) of each ratio drawn.
  nddup.curve = ({ title, x, points, lines, columns }) => {
    const canvas = h("canvas", { role: "img", "aria-label": `${title}: ${lines.map(([, name]) => name).join(" and ")} over ${x}` });
    const number = (value) => (value === null ? "–" : Number.isInteger(value) ? count(value) : value.toFixed(4));
    const more = { label: (item) => `${item.dataset.label} ${number(item.parsed.y)}`, y: { suggestedMax: 1, max: 1, ticks: { maxTicksLimit: 6 } } };
    const config = options(x, "", more);
    config.plugins.legend.display = true;
    config.interaction = { mode: "index", intersect: false };
    config.scales.x.type = "linear";
    const datasets = lines.map(([key, label], at) => ({ label, data: points.map((point) => ({ x: point.at, y: point[key] })),
      borderColor: inked(at ? "--second" : "--accent"), backgroundColor: inked(at ? "--second" : "--accent"), borderWidth: 2, pointRadius: 0, pointHoverRadius: 3, borderDash: at ? [5, 3] : [] }));
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
