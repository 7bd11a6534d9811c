"use strict";
// A list of any length, sorted and filtered by its view; only the rows on the screen exist in the page.
(() => {
  const { h } = nddup;
  const SPARE = 6; // rows kept beyond each edge of the screen

  // name: class of the rows; label: the list's name for screen readers; columns: [key, title, class], a click on a title
  // calls `sortBy(key)`; heights: of a row on a wide and on a narrow screen; row(item): { cells, style }; open(item);
  // key(event, item).
  nddup.list = ({ name, label, columns, heights, sortBy, row, open, key = () => false }) => {
    let items = [], active = 0;
    const sorts = columns.map(([sort, title]) => (sort ? h("button", { type: "button", "data-sort": sort, on: { click: () => sortBy(sort) } }, title) : title));
    const head = h("div", { role: "row", "aria-rowindex": 1, class: `row head ${name}` },
      columns.map(([, , style], at) => h("span", { role: "columnheader", class: style }, sorts[at])));
    const rows = h("div", { role: "rowgroup", class: "rows", on: { click: (event) => {
      const found = event.target.closest("[data-at]");
      if (!found) return;
      active = Number(found.dataset.at); // where the focus is when one comes back
      if (!event.target.closest("a, button")) open(items[active]);
    } } });
    const grid = h("div", { role: "grid", class: "grid", tabindex: 0, "aria-label": label, "aria-colcount": columns.length,
      on: { keydown: onKey } }, h("div", { role: "rowgroup", class: "heading" }, head), rows);
    const height = () => heights[matchMedia("(max-width: 720px)").matches ? 1 : 0];

    function paint() {
      if (!grid.isConnected || grid.closest("[hidden]")) return;
      const each = height();
      rows.style.height = `${items.length * each}px`;
      const top = rows.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(-top / each) - SPARE);
      const last = Math.min(items.length, Math.ceil((innerHeight - top) / each) + SPARE);
      const made = [];
      for (let at = first; at < last; at += 1) {
        const { cells, style = "" } = row(items[at]);
        const element = h("div", { role: "row", id: `${name}-${at}`, "aria-rowindex": at + 2, "aria-selected": String(at === active),
          class: `row ${name} ${style}${at === active ? " active" : ""}` }, cells);
        element.style.transform = `translateY(${at * each}px)`;
        element.dataset.at = at;
        made.push(element);
      }
      rows.replaceChildren(...made);
      if (active >= first && active < last) grid.setAttribute("aria-activedescendant", `${name}-${active}`);
      else grid.removeAttribute("aria-activedescendant");
    }

    function move(to) {
      active = Math.max(0, Math.min(items.length - 1, to));
      const each = height();
      const top = rows.getBoundingClientRect().top + active * each;
      const above = document.querySelector("header.site").offsetHeight + head.offsetHeight;
      if (top < above) scrollBy(0, top - above);
      else if (top + each > innerHeight) scrollBy(0, top + each - innerHeight);
      paint();
    }

    function onKey(event) {
      if (event.target !== grid) return;
      const page = Math.max(1, Math.floor(innerHeight / height()) - 3);
      const moves = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: items.length - 1 };
      if (event.key in moves) {
        event.preventDefault();
        move(moves[event.key]);
      } else if (event.key === "Enter" && items.length) open(items[active]);
      else if (items.length && key(event, items[active])) event.preventDefault();
    }

    addEventListener("scroll", () => requestAnimationFrame(paint), { passive: true });
    addEventListener("resize", () => requestAnimationFrame(paint));
    return {
      grid, paint,
      set(next, { sort, isDescending, keep = false }) {
        items = next;
        active = keep ? Math.min(active, Math.max(0, items.length - 1)) : 0;
        grid.setAttribute("aria-rowcount", items.length + 1);
        rows.hidden = items.length === 0;
        columns.forEach(([key], at) => {
          if (key) sorts[at].parentElement.setAttribute("aria-sort", key === sort ? (isDescending ? "descending" : "ascending") : "none");
        });
        paint();
      },
    };
  };

  // Filters ----------------------------------------------------------------------------------------------------------
  const later = (then) => {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(then, 150);
    };
  };
  const field = (id, text, input, name = "") => h("div", { class: `field ${name}` }, h("label", { for: id }, text), input);

  // Inputs bound to `state`, which call `changed(name)`: search, number, select, choice (typed, with suggestions), check.
  nddup.filters = (prefix, label, state, changed, wanted) => {
    const inputs = {};
    const made = wanted.filter(Boolean).map(({ name, kind, text, options = [], placeholder, least }) => {
      const id = `${prefix}-${name}`;
      const set = (value) => {
        state[name] = value;
        changed(name);
      };
      let input, extra = null;
      if (kind === "select") {
        input = h("select", { id, on: { change: () => set(input.value) } }, options.map(([value, title]) => h("option", { value }, title)));
      } else if (kind === "check") {
        input = h("input", { type: "checkbox", id, on: { change: () => set(input.checked) } });
        inputs[name] = input;
        return h("div", { class: "field check" }, input, h("label", { for: id }, text));
      } else if (kind === "number") {
        input = h("input", { type: "number", id, min: least, inputmode: "numeric", on: { input: later(() => set(Number(input.value) || least)) } });
      } else {
        input = h("input", { type: "search", id, placeholder, autocomplete: "off", spellcheck: "false", list: kind === "choice" ? `${id}-names` : null,
          on: { input: later(() => set(input.value)) } });
        if (kind === "choice") extra = h("datalist", { id: `${id}-names` }, options.map(([value, number]) => h("option", { value }, nddup.count(number))));
      }
      inputs[name] = input;
      return field(id, text, [input, extra], kind === "search" ? "wide" : "");
    });
    const isCheck = (one) => one.classList.contains("check");
    const checks = made.filter(isCheck);
    const form = h("div", { class: "filters card", role: "search", "aria-label": label }, made.filter((one) => !isCheck(one)),
      checks.length ? h("div", { class: "checks" }, checks) : null);
    const fill = () => {
      for (const [name, input] of Object.entries(inputs)) {
        if (input.type === "checkbox") input.checked = state[name];
        else if (input !== document.activeElement) input.value = state[name];
      }
    };
    return { form, inputs, fill };
  };

  // "/" moves the focus to the search field of the current view, or opens the documents to search them.
  const searchField = () => document.querySelector(".view:not([hidden]) .field.wide input[type=search]");
  document.addEventListener("keydown", async (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName)) return;
    event.preventDefault();
    if (!searchField()) await nddup.go("#/documents");
    searchField()?.focus();
  });
})();
