"use strict";
// Compares two texts: their common shingles, as the run counts them, and an alignment of their tokens. No DOM here.
(() => {
  // Tokens as in the run: runs of letters, digits and _; single characters in scripts written without spaces; each with
  // its combining marks and with what nobody sees.
  const ALONE = ["Han", "Tangut", "Khitan_Small_Script", "Nushu", "Yi", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Khmer",
    "Myanmar", "Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet", "Ahom"].map((script) => `\\p{Script=${script}}`).join("");
  const LETTER = "(?!\\p{DI})[\\p{L}\\p{N}_]", REST = "\\p{M}\\p{DI}";
  const TOKEN = new RegExp(`(?=[${ALONE}])${LETTER}[${REST}]*|(?![${ALONE}])${LETTER}(?:[${REST}]|(?![${ALONE}])${LETTER})*`, "gu");
  const SMALL = 40_000; // most cells of the table of an exact alignment
  const SHORTEST = 3; // tokens: a shorter equal run between differences counts as chance

  // Normalises a token: drops what nobody sees, decomposes, folds case and the dots of i, composes.
  const CHILLU = { "ൺ": "ണ്", "ൻ": "ന്", "ർ": "ര്", "ൽ": "ല്", "ൾ": "ള്", "ൿ": "ക്" };
  const normalised = (word) => word.replace(/\p{DI}/gu, "").replace(/[ൺ-ൿ]/g, (letter) => CHILLU[letter]).normalize("NFD")
    .toUpperCase().toLowerCase().replace(/ς/g, "σ").normalize("NFD").replace(/i([\u0316-\u0333]*)\u0307+/g, "i$1")
    .normalize("NFC");
  const lower = (word) => (/^[\x00-\x7f]*$/.test(word) ? word.toLowerCase() : normalised(word));

  // A text as `tokens.ignore` has it, and where each of its characters is in the text.
  function respell(text, respelt) {
    const places = [];
    let other = "", at = 0;
    for (const character of text) {
      const spelt = respelt[character] ?? character;
      for (let unit = 0; unit < spelt.length; unit += 1) places.push(at);
      other += spelt;
      at += character.length;
    }
    return { other, places: [...places, at] };
  }

  function tokenise(text, { respelt, number }) {
    const words = [], starts = [], ends = [];
    const { other, places } = respelt ? respell(text, respelt) : { other: text, places: null };
    for (const found of other.matchAll(TOKEN)) {
      const word = lower(found[0]), end = found.index + found[0].length;
      words.push(number && /^[0-9]+$/.test(word) ? number : word);
      starts.push(places ? places[found.index] : found.index);
      ends.push(places ? places[end] : end);
    }
    return { words, starts, ends };
  }

  function shingles(words, length, offset) {
    const found = new Map(); // shingle -> places
    const last = Math.max(1, words.length - length + 1);
    for (let at = 0; words.length && at < last; at += offset) {
      const key = words.slice(at, at + length).join(" ");
      if (found.has(key)) found.get(key).push(at);
      else found.set(key, [at]);
    }
    return found;
  }

  function cover(words, own, other, length) {
    const covered = new Uint8Array(words.length);
    for (const [key, places] of own) {
      if (other.has(key)) for (const at of places) covered.fill(1, at, at + length);
    }
    return covered;
  }

  // Blocks of equal tokens, in order in both: [start in a, start in b, length].
  function align(a, b, length) {
    const blocks = [];
    const waiting = [[0, a.length, 0, b.length, length]];
    while (waiting.length) {
      let [lowA, highA, lowB, highB, k] = waiting.pop();
      const low = lowA;
      while (lowA < highA && lowB < highB && a[lowA] === b[lowB]) {
        lowA += 1;
        lowB += 1;
      }
      if (lowA > low) blocks.push([low, lowB - (lowA - low), lowA - low]);
      const high = highA;
      while (lowA < highA && lowB < highB && a[highA - 1] === b[highB - 1]) {
        highA -= 1;
        highB -= 1;
      }
      if (highA < high) blocks.push([highA, highB, high - highA]);
      if (lowA === highA || lowB === highB) continue;
      if ((highA - lowA) * (highB - lowB) <= SMALL) {
        blocks.push(...exact(a, b, lowA, highA, lowB, highB));
        continue;
      }
      let anchors = [];
      for (; k > 0 && !anchors.length; k = k > 1 ? k >> 1 : 0) {
        anchors = anchored(a, b, lowA, highA, lowB, highB, k);
        if (anchors.length) break;
      }
      if (!anchors.length) continue;
      let [fromA, fromB] = [lowA, lowB];
      for (const [atA, atB] of anchors) {
        if (atA < fromA || atB < fromB) continue;
        waiting.push([fromA, atA, fromB, atB, k]);
        let size = 0;
        while (atA + size < highA && atB + size < highB && a[atA + size] === b[atB + size]) size += 1;
        blocks.push([atA, atB, size]);
        [fromA, fromB] = [atA + size, atB + size];
      }
      waiting.push([fromA, highA, fromB, highB, k]);
    }
    return blocks.sort((one, other) => one[0] - other[0]);
  }

  // The longest chain, in order in both texts, of runs of k tokens that occur exactly once in each.
  function anchored(a, b, lowA, highA, lowB, highB, k) {
    const once = (words, low, high) => {
      const found = new Map();
      for (let at = low; at + k <= high; at += 1) {
        const key = words.slice(at, at + k).join(" ");
        found.set(key, found.has(key) ? -1 : at);
      }
      return found;
    };
    const inB = once(b, lowB, highB);
    const pairs = [];
    for (const [key, at] of once(a, lowA, highA)) {
      const other = inB.get(key);
      if (at >= 0 && other !== undefined && other >= 0) pairs.push([at, other]);
    }
    pairs.sort((one, other) => one[0] - other[0]);
    const tails = [], before = new Int32Array(pairs.length);
    pairs.forEach(([, place], at) => {
      let low = 0, high = tails.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (pairs[tails[middle]][1] < place) low = middle + 1;
        else high = middle;
      }
      before[at] = low ? tails[low - 1] : -1;
      tails[low] = at;
    });
    const chain = [];
    for (let at = tails.length ? tails[tails.length - 1] : -1; at >= 0; at = before[at]) chain.push(pairs[at]);
    return chain.reverse();
  }

  // The longest common subsequence of two short ranges.
  function exact(a, b, lowA, highA, lowB, highB) {
    const rows = highA - lowA, width = highB - lowB + 1;
    const best = new Uint16Array((rows + 1) * width);
    for (let i = rows - 1; i >= 0; i -= 1) {
      for (let j = width - 2; j >= 0; j -= 1) {
        best[i * width + j] = a[lowA + i] === b[lowB + j]
          ? best[(i + 1) * width + j + 1] + 1
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
      }
    }
    const blocks = [];
    let i = 0, j = 0;
    while (i < rows && j < width - 1) {
      if (a[lowA + i] === b[lowB + j]) {
        const last = blocks[blocks.length - 1];
        if (last && last[0] + last[2] === lowA + i && last[1] + last[2] === lowB + j) last[2] += 1;
        else blocks.push([lowA + i, lowB + j, 1]);
        i += 1;
        j += 1;
      } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
      else j += 1;
    }
    return blocks;
  }

  // Adjacent blocks are joined; short ones between differences are dropped.
  function tidy(blocks, aLength, bLength) {
    const joined = [];
    for (const [atA, atB, size] of blocks) {
      const last = joined[joined.length - 1];
      if (last && last[0] + last[2] === atA && last[1] + last[2] === atB) last[2] += size;
      else joined.push([atA, atB, size]);
    }
    return joined.filter(([atA, atB, size]) => size >= SHORTEST
      || (atA === 0 && atB === 0) || (atA + size === aLength && atB + size === bLength));
  }

  // What all texts share, as the run counts shingles: the number of common ones and of those of the shortest text, and for
  // each text the tokens in common shingles.
  nddup.extent = (texts, shingle) => {
    const { length, offset } = shingle;
    const sides = texts.map((text) => ({ ...tokenise(text, shingle), text }));
    const held = sides.map(({ words }) => shingles(words, length, offset));
    const [first, ...others] = held;
    const common = new Map([...first].filter(([key]) => others.every((other) => other.has(key))));
    return { common: common.size, least: Math.min(...held.map((own) => own.size)),
      sides: sides.map((side, at) => ({ ...side, covered: cover(side.words, held[at], common, length) })) };
  };

  // Steps through both texts, {same, a: [from, to], b: [from, to]} in tokens, and the counts of their common shingles.
  nddup.differ = (textA, textB, shingle) => {
    const { length, offset } = shingle;
    const a = tokenise(textA, shingle), b = tokenise(textB, shingle);
    const inA = shingles(a.words, length, offset), inB = shingles(b.words, length, offset);
    let common = 0;
    for (const key of inA.keys()) if (inB.has(key)) common += 1;
    const union = inA.size + inB.size - common;
    const blocks = tidy(align(a.words, b.words, length), a.words.length, b.words.length);
    const steps = [];
    let [fromA, fromB] = [0, 0];
    for (const [atA, atB, size] of [...blocks, [a.words.length, b.words.length, 0]]) {
      if (atA > fromA || atB > fromB) steps.push({ same: false, a: [fromA, atA], b: [fromB, atB] });
      if (size) steps.push({ same: true, a: [atA, atA + size], b: [atB, atB + size] });
      [fromA, fromB] = [atA + size, atB + size];
    }
    return {
      a: { ...a, covered: cover(a.words, inA, inB, length), text: textA, shingles: inA.size },
      b: { ...b, covered: cover(b.words, inB, inA, length), text: textB, shingles: inB.size },
      common, resemblance: union ? common / union : 1, steps,
    };
  };
})();
