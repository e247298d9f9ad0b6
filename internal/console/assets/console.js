// What a page without it lacks: rows are filtered as somebody types, tables follow the
// cluster, and manifests are copied by a button. It makes no page: HTML comes from the
// server, which escapes it.
"use strict";

const filter = document.querySelector("[data-filter]");

function applyFilter() {
  if (!filter) return;
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const items = document.querySelectorAll(filter.dataset.filter);
  let shown = 0;
  for (const item of items) {
    const matches = words.every((word) => item.dataset.search.includes(word));
    item.hidden = !matches;
    shown += matches ? 1 : 0;
  }
  document.getElementById("count").value = `${shown} of ${items.length}`;
  document.getElementById("none").hidden = shown > 0;
}

if (filter) {
  filter.addEventListener("input", applyFilter);
  filter.form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, textarea, select")) {
      event.preventDefault();
      filter.focus();
    }
  });
  applyFilter();
}

function update(body, change) {
  const rows = new Map();
  for (const row of body.rows) rows.set(row.dataset.name, row);
  for (const name of change.gone ?? []) rows.get(name)?.remove();
  // From the end, so that the row that follows is there.
  for (const one of (change.rows ?? []).reverse()) {
    const holder = document.createElement("template");
    holder.innerHTML = one.html;
    const row = holder.content.firstElementChild;
    const old = rows.get(one.name);
    if (old) {
      const focused = old.contains(document.activeElement);
      old.replaceWith(row);
      if (focused) row.querySelector("a")?.focus();
    } else {
      body.insertBefore(row, rows.get(one.before) ?? null);
    }
    rows.set(one.name, row);
  }
  applyFilter();
}

const live = document.querySelector("[data-live]");
if (live) {
  const source = new EventSource(live.dataset.live);
  source.onmessage = (event) => {
    update(live.tBodies[0], JSON.parse(event.data));
    live.dataset.followed = event.lastEventId;
  };
  // A browser keeps few connections to a server: pages in the background give theirs back.
  window.addEventListener("pagehide", () => source.close());
}

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("pre").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}
