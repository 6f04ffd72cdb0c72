// The page of a run: its steps while it is active, then its answer.

import { announce, onKey } from "./app.js";
import { composers } from "./ask.js";
import { claims } from "./claims.js";
import { load, parse } from "./html.js";

const page = document.getElementById("run");
const again = 5000; // ms until an interrupted run is looked at again
const patience = 15000; // ms until a run that waits for a person is looked at again
let events = null;
let timer = 0;
let failures = 0; // connections that brought nothing, one after another

// run returns the element of the run, which is replaced when its phase changes.
function run() {
  return page.querySelector("[data-run]");
}

function phase() {
  return run().dataset.phase;
}

// begin does what the phase of the run needs.
function begin() {
  claims(page);
  copies();
  if (phase() === "active" || phase() === "interrupted") follow();
  else if (phase() === "waiting") later(refresh, patience);
}

function later(fn, ms) {
  clearTimeout(timer);
  timer = setTimeout(fn, ms);
}

// follow receives the steps. The browser connects again by itself, and says which step it has seen last.
function follow() {
  stop();
  events = new EventSource(run().dataset.live);
  for (const kind of ["step_started", "step"]) {
    events.addEventListener(kind, (event) => {
      failures = 0;
      place(JSON.parse(event.data));
    });
  }
  events.addEventListener("answer", refresh);
  events.addEventListener("error", (event) => {
    if (!event.data && events?.readyState !== EventSource.CLOSED) return; // the browser connects again
    stop();
    later(refresh, failures === 0 ? 0 : Math.min(again, 250 * 2 ** failures)); // the run has failed, or nothing can be received
    failures++;
  });
}

function stop() {
  events?.close();
  events = null;
}

// place inserts a step, or replaces it. Steps that have ended are in the order of their ordinals, before
// those that run.
function place(message) {
  const steps = document.getElementById("steps");
  if (!steps) return;
  const old = document.getElementById(message.id);
  if (old && message.ordinal < 0 && Number(old.dataset.ordinal) >= 0) return; // it has ended already
  old?.remove();
  const rank = (n) => (n < 0 ? Infinity : n);
  const next = [...steps.children].find((s) => rank(Number(s.dataset.ordinal)) > rank(message.ordinal));
  steps.insertBefore(parse(message.html), next ?? null);
  if (message.say) announce(message.say);
}

// refresh loads the run again, and keeps the place and the focus of the reader.
async function refresh() {
  stop();
  clearTimeout(timer);
  const before = phase();
  let part;
  try {
    part = await load(`${location.pathname}?part=run`);
  } catch {
    later(refresh, again); // the server may be starting again
    return;
  }
  const fresh = part.querySelector("[data-run]");
  if (!fresh) {
    location.reload();
    return;
  }
  const after = fresh.dataset.phase;
  if (after === before && after !== "active") {
    later(after === "interrupted" ? follow : refresh, after === "interrupted" ? again : patience);
    return;
  }
  const focused = page.contains(document.activeElement);
  const { scrollX, scrollY } = window;
  page.replaceChildren(part);
  window.scrollTo(scrollX, scrollY);
  if (focused) {
    const place = document.getElementById("answer") ?? run().querySelector("h1");
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
  }
  composers(page);
  if (after !== "active") announce(words());
  if (after === "interrupted") {
    claims(page);
    later(follow, again);
    return;
  }
  begin();
}

// words says what has become of the run.
function words() {
  const badge = run().querySelector(".run-facts .badge")?.textContent.trim() ?? "";
  const counts = [...run().querySelectorAll(".legend li")].map((li) => li.textContent.trim()).join(", ");
  const sources = run().querySelectorAll(".source").length;
  return [badge, counts, sources ? `${sources} ${sources === 1 ? "source" : "sources"}` : ""].filter(Boolean).join(". ");
}

// copies lets the buttons copy texts of the server.
function copies() {
  for (const button of page.querySelectorAll("[data-export]")) {
    button.addEventListener("click", async () => {
      const text = fetch(button.dataset.export).then((r) => {
        if (!r.ok) throw new Error(`status ${r.status}`);
        return r.text();
      });
      try {
        if (window.ClipboardItem) {
          const plain = text.then((t) => new Blob([t], { type: "text/plain" }));
          await navigator.clipboard.write([new ClipboardItem({ "text/plain": plain })]);
        } else {
          await navigator.clipboard.writeText(await text);
        }
        say(button, "Copied");
      } catch {
        say(button, "Could not copy; use Download");
      }
    });
  }
}

// say shows a word in a button for a moment.
function say(button, text) {
  const label = button.lastChild;
  const before = button.dataset.label ?? label.textContent;
  button.dataset.label = before;
  label.textContent = text;
  announce(text);
  setTimeout(() => { label.textContent = before; }, 2500);
}

onKey((key) => {
  if (key !== "t" || !run()?.dataset.trace) return false;
  location.assign(run().dataset.trace);
  return true;
});

addEventListener("pagehide", stop);
addEventListener("pageshow", (event) => {
  if (event.persisted && (phase() === "active" || phase() === "interrupted")) refresh();
});

begin();
