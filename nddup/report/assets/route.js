"use strict";
// Addresses inside the report: #/view/part/part?name=value. Parts may be foreign ids, so each is encoded by itself.
(() => {
  const decode = (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  const encode = (part) => {
    try {
      return encodeURIComponent(part);
    } catch { // a lone surrogate
      return encodeURIComponent(String(part).toWellFormed());
    }
  };

  nddup.target = () => {
    const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
    const [name, ...parts] = path.split("/");
    return { name, parts: parts.map(decode), params: new URLSearchParams(query) };
  };

  nddup.href = (name, ...parts) => `#/${[name, ...parts.map(encode)].join("/")}`;

  // The address of a view with its state: only values that differ from `plain` are in it.
  nddup.stateful = (path, state, plain) => {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(state)) if (value !== plain[name]) query.set(name, String(value));
    return query.size ? `${path}?${query}` : path;
  };

  // The state in an address, each value with the type that it has in `plain`.
  nddup.stateOf = (params, plain) => Object.fromEntries(Object.entries(plain).map(([name, value]) => {
    if (!params.has(name)) return [name, value];
    const given = params.get(name);
    if (typeof value === "boolean") return [name, given === "true"];
    if (typeof value === "number") return [name, Number.isFinite(Number(given)) ? Number(given) : value];
    return [name, given];
  }));

  const last = {}; // the address at which each view was last seen
  nddup.remember = (name, hash) => {
    last[name] = hash;
    if (location.hash !== hash) history.replaceState(history.state, "", hash);
  };
  nddup.back = (name, text) => nddup.h("p", { class: "back" }, nddup.h("a", { href: last[name] || `#/${name}` }, text));
})();
