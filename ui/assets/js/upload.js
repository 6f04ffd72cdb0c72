// Uploads of many files: drag and drop, progress, cancel, retry. Without this module the form sends
// the chosen files at once.

import { parse } from "./html.js";

const form = document.getElementById("upload");
const rows = document.getElementById("rows");
const queue = document.getElementById("queue");
const summary = document.getElementById("summary");
const chosen = document.getElementById("files");
const atOnce = 3;
const files = []; // entries: { file, path, row, state, replace, request, fields }

// States of an entry. "asking" waits for the user to confirm that a document is replaced.
const words = {
  waiting: "Waiting", asking: "Replaces a stored document", sending: "Sending", reading: "Reading",
  stored: "", refused: "", cancelled: "Cancelled",
};

// settings returns the fields of the form without files, as they are now.
function settings() {
  const fields = [];
  for (const [name, value] of new FormData(form)) {
    if (typeof value === "string" && name !== "url") fields.push([name, value]);
  }
  return fields;
}

const part = (entry, selector) => entry.row.querySelector(selector);

// show sets the state of an entry, with more words if there are any.
function show(entry, state, more) {
  entry.state = state;
  const text = more || words[state];
  const line = part(entry, ".progress-state");
  line.textContent = text;
  line.hidden = !text;
  part(entry, "progress").hidden = state !== "sending" && state !== "reading";
  part(entry, "[data-do=replace]").hidden = state !== "asking";
  part(entry, "[data-do=retry]").hidden = state !== "refused" && state !== "cancelled";
  part(entry, "[data-do=cancel]").hidden = !["waiting", "asking", "sending"].includes(state);
  entry.row.dataset.state = state;
  later();
}

let pending = 0;

// later updates the summary a moment later, so that many changes are said once.
function later() {
  pending ||= setTimeout(() => {
    pending = 0;
    const n = (...states) => files.filter((entry) => states.includes(entry.state)).length;
    const busy = n("waiting", "sending", "reading");
    const say = [`${n("stored")} of ${files.length} stored`];
    if (busy) say.push(`${busy} to go`);
    if (n("asking")) say.push(`${n("asking")} would replace a stored document`);
    if (n("refused")) say.push(`${n("refused")} refused`);
    summary.textContent = say.join(", ") + ".";
    document.getElementById("replace-all").hidden = !n("asking");
    document.getElementById("retry-all").hidden = !n("refused");
    document.getElementById("cancel-all").hidden = !n("waiting", "sending", "asking");
  }, 200);
}

// size returns a number of bytes with a unit.
function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

// add puts files into the queue: pairs of a file and its path.
async function add(found) {
  if (!found.length) return;
  if (!form.reportValidity()) return;
  const fields = settings();
  queue.hidden = false;
  const added = found.map(([file, path]) => {
    const row = document.getElementById("row").content.cloneNode(true).firstElementChild;
    const entry = { file, path, row, state: "waiting", replace: false, request: null, fields };
    row.querySelector(".file").textContent = path;
    row.querySelector(".size").textContent = size(file.size);
    row.addEventListener("click", (event) => act(entry, event.target.closest("[data-do]")?.dataset.do));
    return entry;
  });
  files.push(...added);
  rows.append(...added.map((entry) => entry.row));
  added.forEach((entry) => show(entry, "checking", "Checking the name"));
  await check(added, fields);
  next();
}

// check asks which names documents have, so that the user confirms before anything is sent.
async function check(added, fields) {
  const given = Object.fromEntries(fields);
  const body = new URLSearchParams({ collection: given.collection });
  added.forEach((entry) => body.append("name", entry.path));
  let taken = {};
  try {
    const response = await fetch("/documents/upload/check", { method: "POST", body });
    if (response.ok) taken = await response.json();
  } catch {
    // The server refuses to replace a document that was not confirmed.
  }
  for (const entry of added) {
    const stored = given.replace ? undefined : taken[entry.path];
    if (!stored) {
      show(entry, "waiting");
      continue;
    }
    show(entry, "asking", `Replaces version ${stored.version.slice(0, 8)}`);
    const link = document.createElement("a");
    link.href = stored.path;
    link.textContent = "Show the stored document";
    part(entry, ".progress-state").append(" ", link);
  }
}

// next begins to send as many files as may be sent at once.
function next() {
  let busy = files.filter((entry) => entry.request).length;
  for (const entry of files) {
    if (busy >= atOnce) return;
    if (entry.state !== "waiting") continue;
    send(entry);
    busy++;
  }
}

// send uploads one file.
function send(entry) {
  const body = new FormData();
  for (const [name, value] of entry.fields) {
    if (name !== "replace") body.append(name, value);
  }
  if (entry.replace || entry.fields.some(([name]) => name === "replace")) body.append("replace", "1");
  body.append("files", entry.file, entry.path);
  const bar = part(entry, "progress");
  const request = new XMLHttpRequest();
  entry.request = request;
  part(entry, ".result").replaceChildren();
  bar.value = 0;
  bar.setAttribute("aria-label", `Sent of ${entry.path}`);
  show(entry, "sending", "Sending 0 %");
  request.upload.addEventListener("progress", (event) => {
    if (!event.lengthComputable) return;
    bar.value = (100 * event.loaded) / event.total;
    part(entry, ".progress-state").textContent = `Sending ${Math.floor(bar.value)} %`;
  });
  request.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    show(entry, "reading");
  });
  request.addEventListener("load", () => finish(entry, request));
  request.addEventListener("error", () => end(entry, "refused", "The connection broke. Nothing of this file was stored."));
  request.addEventListener("abort", () => end(entry, "cancelled"));
  request.open("POST", "/documents/upload?rows=1");
  request.send(body);
}

// finish shows the outcome that the server has rendered.
function finish(entry, request) {
  const page = parse(request.responseText);
  const outcome = page.querySelector("[data-outcome]");
  if (!outcome) {
    const why = request.status === 401 ? "You are signed out. Sign in in another tab, then try again." : `The server refused it (status ${request.status}).`;
    end(entry, "refused", why);
    return;
  }
  part(entry, ".result").replaceChildren(outcome);
  const kind = outcome.dataset.outcome;
  end(entry, kind === "refused" ? "refused" : kind === "taken" ? "asking" : "stored");
}

function end(entry, state, more) {
  entry.request = null;
  show(entry, state, more);
  next();
}

// act does what a button of a row says.
function act(entry, what) {
  if (what === "cancel") {
    if (entry.request) entry.request.abort();
    else show(entry, "cancelled");
  } else if (what === "replace" || what === "retry") {
    entry.replace ||= what === "replace";
    entry.fields = settings();
    show(entry, "waiting");
    next();
  }
}

for (const [id, what, states] of [
  ["replace-all", "replace", ["asking"]], ["retry-all", "retry", ["refused"]], ["cancel-all", "cancel", ["waiting", "asking", "sending"]],
]) {
  document.getElementById(id).addEventListener("click", () => {
    files.filter((entry) => states.includes(entry.state)).reverse().forEach((entry) => act(entry, what));
  });
}

// collect returns the files of a dropped file or folder, with their paths.
async function collect(item, found) {
  if (item.isFile) {
    const file = await new Promise((resolve, reject) => item.file(resolve, reject));
    found.push([file, item.fullPath.replace(/^\//, "")]);
    return;
  }
  const reader = item.createReader();
  for (;;) {
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!entries.length) return;
    for (const inner of entries) await collect(inner, found);
  }
}

addEventListener("dragover", (event) => {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
addEventListener("drop", async (event) => {
  document.body.classList.remove("dropping");
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
  const entries = items.map((item) => item.webkitGetAsEntry?.());
  const plain = [...event.dataTransfer.files];
  const found = [];
  for (const [i, entry] of entries.entries()) {
    if (entry) await collect(entry, found).catch(() => found.push([plain[i], plain[i].name]));
    else if (plain[i]) found.push([plain[i], plain[i].name]);
  }
  found.sort((a, b) => a[1].localeCompare(b[1], undefined, { numeric: true }));
  add(found);
});

// Chosen files begin when the form is sent; a web page is left to the form itself.
form.addEventListener("submit", (event) => {
  if (!chosen.files.length || form.elements.url?.value) return;
  event.preventDefault();
  add([...chosen.files].map((file) => [file, file.webkitRelativePath || file.name]));
  chosen.value = "";
});

addEventListener("beforeunload", (event) => {
  if (files.some((entry) => ["waiting", "sending", "reading"].includes(entry.state))) event.preventDefault();
});

// A collection that requires an access list demands a choice.
const collection = document.getElementById("collection");
let touched = false;
form.querySelectorAll("[name=access]").forEach((radio) => radio.addEventListener("change", () => { touched = true; }));
collection.addEventListener("change", () => {
  const option = [...document.querySelectorAll("#collections option")].find((o) => o.value === collection.value);
  if (touched) return;
  form.querySelectorAll("[name=access]").forEach((radio) => { radio.checked = radio.value === "everyone" && !option?.hasAttribute("data-required"); });
});
document.getElementById("names").addEventListener("input", () => {
  form.querySelector("[value=named]").checked = true;
  touched = true;
});
