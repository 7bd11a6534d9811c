"""The page of `nddup serve` for people: a form, whose script asks `POST /query`."""

import base64
import hashlib

SCRIPT = """
const [field, rows, said] = ["textarea", "tbody", "output"].map((name) => document.querySelector(name));
let token = "";
const ask = () => fetch("/query?top=50", {
  method: "POST", body: field.value,
  headers: {"Content-Type": "text/plain;charset=utf-8", ...(token && {Authorization: `Bearer ${token}`})},
});
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  rows.replaceChildren();
  said.textContent = "…";
  let answer = await ask();
  if (answer.status === 401) {
    token = prompt("Token") ?? "";
    answer = await ask();
  }
  const found = await answer.json();
  if (!answer.ok) { said.textContent = found.error; return; }
  const like = found.matches.filter((match) => match.doc_id !== null);
  said.textContent = `${like.length} like it, in version ${found.version}, ${Math.round(found.seconds * 1000)} ms`;
  for (const match of like) {
    const row = rows.insertRow();
    for (const value of [match.resemblance.toFixed(3), match.doc_id, match.source, match.kept ? "kept" : "removed"]) {
      row.insertCell().textContent = value;
    }
  }
});
"""

PAGE = f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>nddup: look up</title>
<style>:root {{ color-scheme: light dark; }} body {{ font: 1rem/1.5 system-ui; max-width: 60rem; margin: 2rem auto;
padding: 0 1rem; }} textarea {{ width: 100%; height: 12rem; box-sizing: border-box; }} td, th {{ text-align: left;
padding: .2rem 1rem .2rem 0; overflow-wrap: anywhere; }}</style>
<main><h1>Is this text stored?</h1>
<form><label for="text">A text or a page</label><textarea id="text" required></textarea>
<p><button>Look up</button> <output for="text"></output></p></form>
<table><thead><tr><th scope="col">resemblance<th scope="col">document<th scope="col">file<th scope="col">state</tr>
</thead><tbody></tbody></table></main>
<script>{SCRIPT}</script></html>
"""

POLICY = (
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src"
    f" 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'; base-uri 'none';"
    " frame-ancestors 'none'"
)
