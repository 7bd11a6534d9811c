"use strict";
// Shows the view that the part of the address after # names.
(async () => {
  const opening = document.getElementById("opening");
  const VIEWS = ["overview", "clusters", "cluster", "family", "documents", "document", "compare", "quality", "run"];
  const UNDER = { cluster: "clusters", family: "clusters", document: "documents", compare: "documents" }; // entry in the navigation
  const built = new Map();
  const scrolled = new Map();
  let data = null, current = null, turn = 0;

  const fail = (error) => {
    opening.hidden = false;
    opening.textContent = `The report cannot be shown: ${error.message}`;
  };
  const nameOf = ({ name }) => (VIEWS.includes(name) ? name : "overview");

  async function route() {
    turn += 1;
    const mine = turn;
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
    if (current && isNew) document.getElementById("main").focus({ preventScroll: true });
    current = { hash: location.hash };
  }

  function reveal(name, view) {
    for (const other of document.querySelectorAll(".view")) other.hidden = other !== view;
    const isFamilies = name === "documents" && nddup.target().params.get("outcome") === "family";
    const entry = isFamilies ? "families" : UNDER[name] || name;
    for (const link of document.querySelectorAll("nav a")) {
      if (link.dataset.view === entry) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${nddup.views[name].title} · nddup`;
  }

  try {
    data = await nddup.load("summary");
    document.getElementById("run-path").textContent = data.run;
    await route();
    opening.hidden = true;
    document.documentElement.dataset.ready = "";
    addEventListener("hashchange", () => {
      if (!location.hash.startsWith("#/") && location.hash) return; // an anchor in the page
      route().catch(fail);
    });
  } catch (error) {
    fail(error);
  }
})();
