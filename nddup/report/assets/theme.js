"use strict";
// Light, dark, or as the system says. Runs before anything is painted; a browser that keeps nothing for files is fine.
const nddup = (() => {
  const THEMES = ["auto", "light", "dark"];
  let theme = "auto";
  try {
    theme = localStorage.getItem("nddup-theme") || "auto";
  } catch { /* storage is closed to files */ }
  const listeners = [];

  function show() {
    if (!THEMES.includes(theme)) theme = "auto";
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = `Theme: ${theme}`;
    for (const listener of listeners) listener();
  }

  show();
  document.addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme").addEventListener("click", () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      try {
        localStorage.setItem("nddup-theme", theme);
      } catch { /* as above */ }
      show();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  });
  return { views: {}, onTheme: (listener) => listeners.push(listener) };
})();
