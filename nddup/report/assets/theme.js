"use strict";
// Light, dark, or the system's theme. Runs before anything is painted, also where a browser has no storage for files.
const nddup = (() => {
  const THEMES = ["auto", "light", "dark"];
  let theme = "auto";
  try {
    theme = localStorage.getItem("nddup-theme") || "auto";
  } catch { /* no storage for pages opened from files */ }
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
