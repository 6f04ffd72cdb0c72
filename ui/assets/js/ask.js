// The fields of questions: Enter asks, Shift and Enter begin a line.

export function composers(root) {
  for (const form of root.querySelectorAll("[data-composer]")) {
    const field = form.querySelector("[data-ask]");
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (field.value.trim() !== "") form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) event.preventDefault(); // a second press asks nothing else
      form.dataset.sent = "1";
    });
  }
}

composers(document);
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("[data-composer]")) delete form.dataset.sent; // back from the answer
});

const field = document.getElementById("question");
if (field && matchMedia("(hover: hover)").matches) {
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}
