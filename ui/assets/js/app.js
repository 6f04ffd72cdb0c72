// What every page has: the theme, the list of shortcuts, and keys that lead to places.

const root = document.documentElement;
root.classList.add("scripted");

document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `assay-theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
});

const help = document.getElementById("help");
document.querySelector("[data-help]")?.addEventListener("click", () => help.showModal());

// typing reports whether a key belongs to a field.
function typing(target) {
  return target.closest("input, textarea, select, [contenteditable]") !== null;
}

// onKey calls fn with each plain key that no field takes. fn returns true if it has used the key.
export function onKey(fn) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    if (fn(event.key)) event.preventDefault();
  });
}

onKey((key) => {
  if (key === "?") {
    help.showModal();
    return true;
  }
  if (key === "/") {
    const field = document.querySelector("[data-ask]");
    if (field) field.focus();
    else location.assign("/");
    return true;
  }
  return false;
});

// announce has screen readers say a text.
export function announce(text) {
  let region = document.getElementById("announcement");
  if (!region) {
    region = document.createElement("p");
    region.id = "announcement";
    region.className = "hidden";
    region.setAttribute("role", "status");
    document.body.append(region);
  }
  region.textContent = text;
}
