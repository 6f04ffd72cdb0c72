// The area of administrators: copying what is shown once, and the progress of vectors.

import { announce } from "./app.js";
import { load } from "./html.js";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    const label = button.querySelector("span");
    try {
      await navigator.clipboard.writeText(field.value);
      label.textContent = "Copied";
      announce("Copied");
    } catch { // the browser allows it on encrypted pages only
      label.textContent = "Press Ctrl+C to copy";
      announce("The text is selected. Press Control and C to copy it.");
    }
  });
}

// While vectors are made, their coverage is read again every two seconds.
const vectors = document.querySelector("[data-vectors]");
vectors?.addEventListener("submit", (event) => {
  const form = event.target.closest("[data-embed]");
  if (!form) return;
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  announce("Vectors are made");
  const done = fetch(form.action, { method: "POST", headers: { Accept: "text/html", "Content-Type": "application/x-www-form-urlencoded" }, redirect: "follow" });
  const timer = setInterval(async () => {
    const bars = (await load(vectors.dataset.vectors)).querySelectorAll("progress");
    vectors.querySelectorAll("progress").forEach((bar, i) => { if (bars[i]) { bar.max = bars[i].max; bar.value = bars[i].value; } });
  }, 2000);
  done.finally(() => {
    clearInterval(timer);
    location.reload();
  });
});
