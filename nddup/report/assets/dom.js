"use strict";
// Makes elements from plain values. Texts only ever become text nodes, so no markup can enter.
(() => {
  nddup.h = (tag, properties, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
      else if (name === "class") element.className = value;
      else if (name === "width") element.style.width = value;
      else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
      .map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
    return element;
  };
  const { h } = nddup;

  const whole = new Intl.NumberFormat("en");
  nddup.count = (number) => whole.format(number);
  nddup.plural = (number, one, many) => `${whole.format(number)} ${number === 1 ? one : many}`;
  nddup.share = (thousandths) => (thousandths < 0 ? "–" : (thousandths / 1000).toFixed(3));
  nddup.percent = (part, all) => (all ? `${((100 * part) / all).toFixed(1)} %` : "–");
  nddup.bytes = (number) => {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0;
    while (number >= 1000 && unit < units.length - 1) {
      number /= 1000;
      unit += 1;
    }
    return `${unit ? number.toFixed(1) : number} ${units[unit]}`;
  };

  // A foreign text, isolated so that its writing direction does not affect the text beside it.
  nddup.foreign = (text, properties) => h("bdi", properties, text);

  // A foreign text on one line; a long address is cut before its end, which identifies it best.
  const TAIL = 28;
  nddup.oneLine = (text, fromStart) => (fromStart || text.length <= TAIL ? h("bdi", { class: "one-line", title: text }, h("span", { class: "start" }, text)) : h("bdi", { class: "one-line", title: text },
    h("span", { class: "start" }, text.slice(0, -TAIL)), h("span", { class: "end" }, text.slice(-TAIL))));

  // A web address becomes a link; anything else stays text.
  nddup.address = (url) => {
    let parsed = null;
    try {
      parsed = new URL(url);
    } catch { /* not an address */ }
    if (!parsed || !["http:", "https:"].includes(parsed.protocol)) return nddup.foreign(url, { class: "url" });
    const outside = { href: parsed.href, rel: "noopener noreferrer nofollow", target: "_blank", class: "url" };
    return h("a", outside, nddup.foreign(url));
  };

  nddup.table = ({ caption, head, rows, numeric = [], hideCaption = false }) =>
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      h("table", null,
        h("caption", { class: hideCaption ? "hidden-text" : null }, caption),
        h("thead", null, h("tr", null, head.map((name, at) =>
          h("th", { scope: "col", class: numeric.includes(at) ? "number" : null }, name)))),
        h("tbody", null, rows.map((row) => h("tr", null, row.map((cell, at) =>
          h("td", { class: numeric.includes(at) ? "number" : null }, cell)))))));
})();
