// The progress of a sync. Without this module the page waits until the sync ends.

// events yields the server-sent events of a response: their names and data.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const field = (name) => block.split("\n").filter((line) => line.startsWith(name + ": ")).map((line) => line.slice(name.length + 2)).join("\n");
      if (field("data")) yield [field("event"), JSON.parse(field("data"))];
    }
  }
}

const box = document.querySelector(".syncing");
let running = false;

// sync syncs a source and shows how far it is. The page then shows the stored state.
async function sync(form) {
  const query = new URLSearchParams();
  for (const name of ["full", "yes"]) {
    if (new FormData(form).get(name)) query.set(name, "true");
  }
  const bar = box.querySelector("progress");
  const text = box.querySelector("p");
  box.hidden = false;
  box.scrollIntoView({ block: "nearest" });
  text.textContent = "The sync begins.";
  running = true;
  document.querySelectorAll("[data-sync] button").forEach((button) => { button.disabled = true; });
  let failed = "";
  try {
    const response = await fetch(`/api/v1/sources/${encodeURIComponent(form.dataset.sync)}/sync?${query}`, { method: "POST", headers: { Accept: "text/event-stream" } });
    if (!response.ok) failed = (await response.json()).detail || `The server refused it (status ${response.status}).`;
    else {
      for await (const [name, data] of events(response)) {
        if (name === "progress") {
          bar.max = Math.max(data.progress.found, 1);
          bar.value = data.progress.done;
          text.textContent = `${data.progress.done} of ${data.progress.found} items found so far, ${data.progress.skipped} skipped.`;
        } else if (name === "error") {
          failed = data.detail || data.title;
        }
      }
    }
  } catch {
    failed = "The connection broke. The sync ends at its next safe point.";
  }
  running = false;
  if (!failed) {
    location.reload();
    return;
  }
  bar.hidden = true;
  text.textContent = failed + " ";
  const again = document.createElement("a");
  again.href = location.pathname;
  again.textContent = "Show the state of the source";
  text.append(again);
}

document.querySelectorAll("[data-sync]").forEach((form) => form.addEventListener("submit", (event) => {
  event.preventDefault();
  sync(form);
}));

addEventListener("beforeunload", (event) => {
  if (running) event.preventDefault();
});
