"use strict";
// Chunks of data, each a script in this folder: a page from disk may not fetch. `nddup.load("members-3")` returns a promise.
(() => {
  const KEPT = { members: 16, texts: 12, nearest: 12, stands: 12, families: 12 }; // chunks held of each kind; of other kinds, all
  const waiting = new Map();
  const held = new Map();
  const pathOf = (name) => {
    if (!/^[a-z]+(-\d+)?$/.test(name)) throw new Error(`no chunk is called ${name}`);
    return `data/${name}.js`;
  };
  const policy = window.trustedTypes
    ? trustedTypes.createPolicy("nddup", { createScriptURL: pathOf })
    : { createScriptURL: pathOf };
  const came = new Map();

  nddup.put = (name, value) => came.set(name, value);
  nddup.unpack = (name, packed) => came.set(name, inflate(packed));

  async function inflate(packed) {
    if (typeof DecompressionStream === "undefined") throw new Error("it needs a browser of 2023 or later");
    const bytes = Uint8Array.from(atob(packed), (one) => one.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  }

  function request(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = policy.createScriptURL(name);
      const finish = () => {
        script.remove();
        waiting.delete(name);
        if (came.has(name)) {
          resolve(came.get(name));
          came.delete(name);
        } else {
          reject(new Error(`data/${name}.js is missing or damaged: write the report again with nddup report`));
        }
      };
      script.addEventListener("load", finish);
      script.addEventListener("error", finish);
      document.head.append(script);
    });
  }

  function hold(name, promise) {
    held.delete(name);
    held.set(name, promise); // now the most recently used
    const [kind] = name.split("-");
    const same = [...held.keys()].filter((other) => other.startsWith(`${kind}-`));
    if (KEPT[kind] && same.length > KEPT[kind]) held.delete(same[0]);
  }

  nddup.load = (name) => {
    let promise = held.get(name) || waiting.get(name);
    if (!promise) {
      promise = request(name);
      waiting.set(name, promise);
    }
    hold(name, promise);
    promise.catch(() => held.delete(name));
    return promise;
  };
})();
