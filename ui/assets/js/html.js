// The one place where text becomes markup: parts of pages that this server has rendered and escaped.

const policy = window.trustedTypes?.createPolicy("assay", { createHTML: (text) => text });

// parse returns the nodes of a part of a page that came from this server.
export function parse(text) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(text) : text;
  return template.content;
}

// load fetches a part of a page from this server.
export async function load(path, options) {
  const url = new URL(path, location.href);
  if (url.origin !== location.origin) throw new Error("another origin");
  const response = await fetch(url, { headers: { Accept: "text/html" }, ...options });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return parse(await response.text());
}
