"use strict";
// Which view is shown: the part of the address after #.
(async () => {
  const opening = document.getElementById("opening");
  const built = new Map();
  const scrolled = new Map();
  let data = null, current = null;

  const fail = (error) => {
    opening.hidden = false;
    opening.textContent = `The report cannot be shown: ${error.message}`;
  };

  function target() {
    const [, name, id] = decodeURIComponent(location.hash).split("/");
    const names = { clusters: "clusters", cluster: "cluster", quality: "quality", run: "details" };
    return [names[name] || "overview", id];
  }

  async function route() {
    const [name, id] = target();
    const view = document.getElementById(name);
    if (current) scrolled.set(current, scrollY);
    if (!built.has(name)) built.set(name, nddup.views[name].build(view, data));
    await built.get(name);
    if (target()[0] !== name) return;
    if (name === "cluster") await nddup.views.cluster.show(view, data, id);
    for (const other of document.querySelectorAll(".view")) other.hidden = other !== view;
    for (const link of document.querySelectorAll("nav a")) {
      const is = link.dataset.view === name || (name === "cluster" && link.dataset.view === "clusters");
      if (is) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${nddup.views[name].title} · nddup`;
    if (name !== "cluster") nddup.views[name].show();
    scrollTo(0, name === "clusters" ? scrolled.get(name) || 0 : 0);
    if (current) document.getElementById("main").focus({ preventScroll: true });
    current = name;
  }

  try {
    data = await nddup.load("summary");
    document.getElementById("run").textContent = data.run;
    await route();
    opening.hidden = true;
    document.documentElement.dataset.ready = "";
    addEventListener("hashchange", () => {
      if (!location.hash.startsWith("#/") && location.hash) return; // a place in the page
      route().catch(fail);
    });
  } catch (error) {
    fail(error);
  }
})();
