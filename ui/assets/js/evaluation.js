// Evaluations: the progress of one that runs, and a set that is dropped on the form.

import { announce } from "./app.js";
import { load } from "./html.js";

const pause = 2000;

// follow shows the progress until the evaluation has ended, and then its result.
async function follow(state) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (state.querySelector("details[open]") || document.hidden) continue; // do not take the form away
    let next;
    try {
      next = (await load(state.dataset.progress)).querySelector("[data-evaluation]");
    } catch {
      continue; // the server may be starting again; the page has a link to reload
    }
    if (!next) return;
    if (next.dataset.evaluation !== "running") {
      announce("The evaluation has ended.");
      location.reload();
      return;
    }
    const focused = state.contains(document.activeElement);
    if (!focused) {
      state.replaceWith(next);
      state = next;
    }
  }
}

const running = document.querySelector('[data-evaluation="running"]');
if (running) follow(running);
