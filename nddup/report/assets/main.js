"use strict";
// Shows the view that the part of the address after # names.
(async () => {
  const opening = document.getElementById("opening");
  const VIEWS = ["overview", "clusters", "cluster", "family", "documents", "document", "compare", "judge", "quality", "run"];
  const UNDER = { clusters: "families", cluster: "families", family: "families", document: "documents", compare: "documents", judge: "overview" }; // entry in the navigation
  const built = new Map();
  const scrolled = new Map();
  const focused = []; // of each entry of the history, what had the focus when it was left
  let data = null, current = null, turn = 0;

  const fail = (error) => {
    opening.hidden = false;
    opening.textContent = `The report cannot be shown: ${error.message}`;
  };
  const nameOf = ({ name }) => (VIEWS.includes(name) ? name : "overview");

  // What has the focus in a view, so that it can be found again when the view is drawn anew.
  function noteFocus() {
    const held = document.activeElement, view = held?.closest(".view");
    if (!view) return null;
    if (held.id) return { id: held.id };
    const alike = [...view.querySelectorAll(held.tagName)].filter((one) => one.textContent === held.textContent);
    return { tag: held.tagName, text: held.textContent, at: alike.indexOf(held), isGrid: held.getAttribute("role") === "grid" };
  }

  function restoreFocus(view, noted) {
    if (!noted) return false;
    const alike = noted.id ? [document.getElementById(noted.id)] : noted.isGrid ? [view.querySelector("[role=grid]")]
      : [...view.querySelectorAll(noted.tag)].filter((one) => one.textContent === noted.text);
    const found = noted.isGrid || noted.id ? alike[0] : alike[noted.at];
    if (!found || !view.contains(found)) return false;
    found.focus({ preventScroll: true });
    return document.activeElement === found;
  }

  async function route() {
    turn += 1;
    const mine = turn;
    if (current) focused[current.entry] = noteFocus();
    const isReturn = Number.isInteger(history.state?.entry);
    const entry = isReturn ? history.state.entry : current ? current.entry + 1 : 0;
    if (!isReturn) history.replaceState({ entry }, "");
    const target = nddup.target();
    const name = nameOf(target);
    const view = document.getElementById(name);
    if (current) scrolled.set(current.hash, scrollY);
    if (!built.has(name)) built.set(name, nddup.views[name].build(view, data));
    await built.get(name);
    if (mine !== turn) return;
    const isNew = view.hidden;
    if (isNew && ["clusters", "documents"].includes(name)) reveal(name, view); // a list must be visible to measure its place
    await nddup.views[name].show(view, data, target);
    if (mine !== turn) return;
    reveal(name, view);
    if (isNew || !["clusters", "documents"].includes(name)) scrollTo(0, ["clusters", "documents"].includes(name) ? scrolled.get(location.hash) || 0 : 0);
    if (nddup.views[name].shown) nddup.views[name].shown();
    const isRestored = current && isReturn && restoreFocus(view, focused[entry]);
    if (current && isNew && !isRestored) document.getElementById("main").focus({ preventScroll: true });
    current = { hash: location.hash, entry };
  }

  function reveal(name, view) {
    opening.hidden = true; // before a list measures its place
    for (const other of document.querySelectorAll(".view")) other.hidden = other !== view;
    const isFamilies = name === "documents" && nddup.target().params.get("outcome") === "family";
    const entry = isFamilies ? "families" : UNDER[name] || name;
    for (const link of document.querySelectorAll("nav a")) {
      if (link.dataset.view === entry) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${nddup.views[name].title} · nddup`;
  }

  // Opens an address and waits until its view is shown.
  nddup.go = async (hash) => {
    if (location.hash === hash) return;
    const done = new Promise((resolve) => { arrived = resolve; });
    location.hash = hash;
    await done;
  };
  let arrived = () => {};

  try {
    data = await nddup.load("summary");
    document.getElementById("run-path").textContent = data.run;
    await route();
    document.documentElement.dataset.ready = "";
    addEventListener("hashchange", () => {
      if (!location.hash.startsWith("#/") && location.hash) return; // an anchor in the page
      route().then(() => arrived()).catch(fail);
    });
  } catch (error) {
    fail(error);
  }
})();
