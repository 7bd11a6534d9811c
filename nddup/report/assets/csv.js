"use strict";
// Downloads the list shown as a CSV file.
(() => {
  // A spreadsheet would read a text with such a start as a formula; documents may be hostile. The rule of csv_line.
  const formula = /^'*(?:[\t\r]|[\p{C}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]*[=+\-@＝﹦⁼₌＋﹢⁺₊－﹣⁻₋＠﹫﬩])/u;
  const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
  const safe = (text) => (formula.test(text) && !number.test(text) ? `'${text}` : text);
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = safe(String(value));
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  nddup.csv = (head, rows) => `${[head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;

  nddup.download = (name, text) => {
    const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
    const link = nddup.h("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
})();
