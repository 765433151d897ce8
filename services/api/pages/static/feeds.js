// The table of feeds: what is done with those that a person chose, a new feed, and the import of a list as it goes on.

import { call, look, say } from "./page.js";

const AT_ONCE = 4;
const MOST_SHOWN = 200;

function element(name, content = {}, ...children) {
  const made = Object.assign(document.createElement(name), content);
  made.append(...children);
  return made;
}

// ---- the chosen feeds -------------------------------------------------------------------------------------------

const bulk = document.getElementById("bulk");
const all = document.getElementById("all");
const boxes = () => [...document.querySelectorAll('#feeds input[name="feed"]')];
const chosen = () => boxes().filter((box) => box.checked);

const nameOf = (box) => box.closest("tr").querySelector("th a").textContent;
const feeds = (count) => (count === 1 ? "1 feed" : `${count} feeds`);

function count() {
  const number = chosen().length;
  document.getElementById("chosen").textContent = number ? `${feeds(number)} chosen.` : "No feed is chosen.";
  const at = document.activeElement;
  for (const button of bulk.querySelectorAll("button")) button.disabled = number === 0;
  if (at?.disabled && bulk.contains(at)) document.getElementById("chosen").focus(); // else the focus would be lost
  all.checked = number > 0 && number === boxes().length;
  all.indeterminate = number > 0 && !all.checked;
}

/** Return what is sent for each feed, and how it is told; null if something is missing or the person thinks again. */
function planned(what, number) {
  const tag = document.getElementById("bulk-tag").value.trim();
  switch (what) {
    case "pause":
      return { done: "paused", send: (id) => call("POST", `/api/feeds/${id}/pause`) };
    case "resume":
      return { done: "resumed", send: (id) => call("POST", `/api/feeds/${id}/resume`) };
    case "tag":
    case "untag": {
      if (!tag) {
        say(bulk, "Type the tag first.", true);
        document.getElementById("bulk-tag").focus();
        return null;
      }
      const body = what === "tag" ? { add_tags: [tag] } : { remove_tags: [tag] };
      return { done: "changed", send: (id) => call("PATCH", `/api/feeds/${id}`, { body }) };
    }
    case "delete": {
      const question = `Delete ${feeds(number)}, with their log and their pending articles? Articles seen are remembered: they don't come again.`;
      if (!window.confirm(question)) return null;
      return { done: "deleted", send: (id) => call("DELETE", `/api/feeds/${id}`) };
    }
  }
  return null;
}

async function act(what) {
  const waiting = chosen();
  const total = waiting.length;
  const plan = planned(what, total);
  if (!plan || bulk.getAttribute("aria-busy") === "true") return;
  const problems = document.getElementById("bulk-problems");
  problems.replaceChildren();
  bulk.setAttribute("aria-busy", "true");
  let good = 0;
  let failed = 0;
  async function work() {
    for (let box = waiting.shift(); box; box = waiting.shift()) {
      const name = nameOf(box);
      const answer = await plan.send(box.value);
      if (answer.ok) {
        good += 1;
        if (what === "delete") box.closest("tr").remove();
        else box.checked = false;
      } else {
        failed += 1;
        problems.append(element("li", {}, element("a", { href: `/feeds/${box.value}`, textContent: name }), `: ${answer.detail}`));
      }
      say(bulk, `${good + failed} of ${total} …`);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  bulk.removeAttribute("aria-busy");
  const left = failed ? ` ${feeds(failed)} not, and still chosen:` : "";
  say(bulk, `${feeds(good)} ${plan.done}.${left}`, failed > 0);
  await look();
  count();
}

if (bulk) {
  document.addEventListener("change", (event) => {
    if (event.target === all) for (const box of boxes()) box.checked = all.checked;
    if (event.target === all || event.target.name === "feed") count();
  });
  document.addEventListener("feedmill:look", count);
  bulk.addEventListener("submit", (event) => event.preventDefault());
  bulk.addEventListener("click", (event) => {
    const what = event.target.closest("button")?.dataset.do;
    if (what) act(what);
  });
  count();
}

// ---- tags that are in use, as suggestions -----------------------------------------------------------------------

const tags = document.getElementById("tags");

async function suggest(event) {
  if (event.target.getAttribute?.("list") !== "tags") return;
  document.removeEventListener("focusin", suggest);
  const answer = await call("GET", "/api/tags?limit=1000");
  if (answer.ok) tags.replaceChildren(...answer.body.items.map((row) => element("option", { value: row.tag })));
}
if (tags) document.addEventListener("focusin", suggest);

// ---- a new feed -------------------------------------------------------------------------------------------------

const add = document.getElementById("add");
const list = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);

async function addFeed(given) {
  const candidates = document.getElementById("candidates");
  candidates.replaceChildren();
  if (add.getAttribute("aria-busy") === "true") return;
  add.setAttribute("aria-busy", "true");
  say(add, "Looking there; that may take a minute …");
  const body = { tags: list(document.getElementById("add-tags").value), choose: "ask", ...given };
  const answer = await call("POST", "/api/feeds", { body });
  add.removeAttribute("aria-busy");
  if (answer.body?.candidates) {
    say(add, `This page links to ${answer.body.candidates.length} feeds. Choose one:`);
    for (const found of answer.body.candidates) {
      const button = element("button", { type: "button", textContent: found.title || found.url, title: found.url });
      button.addEventListener("click", () => addFeed({ url: found.url, check: false, found_at: given.url }));
      candidates.append(element("li", {}, button, " ", element("small", { className: "quiet", textContent: found.url })));
    }
    candidates.querySelector("button")?.focus();
    return;
  }
  if (!answer.ok) {
    say(add, answer.detail, true);
    return;
  }
  const { id, name, url, is_new: isNew, notes } = answer.body;
  say(add, [isNew ? "Added: " : "It was there already: ", ...notes.map((note) => `${note}; `)].join(""));
  document.getElementById("added").append(element("a", { href: `/feeds/${id}`, textContent: name ?? url }));
  document.getElementById("url").value = "";
  await look();
}

add?.addEventListener("submit", (event) => {
  event.preventDefault();
  addFeed({ url: document.getElementById("url").value.trim() });
});

// ---- the import of a list: the API answers with lines of JSON while it goes on -----------------------------------

const form = document.getElementById("import");
const bar = document.getElementById("progress");

async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const found = (rest + part.value).split("\n");
    rest = found.pop();
    for (const line of found) if (line) yield JSON.parse(line);
  }
}

/** What each line says; `at` keeps what the lines before said. */
const tell = {
  opened(fact, at) {
    at.total = fact.feeds;
    bar.max = Math.max(fact.feeds, 1);
    bar.value = 0;
    for (const warning of fact.warnings) skip(`line ${warning.line}: ${warning.detail ?? warning.reason}`, at);
  },
  progress(fact, at) {
    bar.value = fact.read;
    say(form, `${fact.read} of ${at.total} read, ${fact.added} new …`);
  },
  skipped(fact, at) {
    if (fact.reason !== "already_there") skip(`line ${fact.line}: ${fact.url ?? ""} ${fact.detail ?? fact.reason}`, at);
  },
  done(fact, at) {
    at.isDone = true;
    bar.value = bar.max;
    const would = fact.dry_run ? " would be" : "";
    const there = fact.reasons.already_there ?? 0;
    const soon = fact.first_polls_within_seconds > 60 ? ` First polls within ${Math.ceil(fact.first_polls_within_seconds / 60)} minutes.` : "";
    const tag = document.getElementById("import-tag").value.trim();
    const tagged = fact.tagged ? `, ${fact.tagged} more${would} tagged` : "";
    const added = `${feeds(fact.added)}${would} added${tag && fact.added ? ` with the tag ${tag}` : ""}`;
    say(form, `${added}${tagged}, ${there} there already, ${fact.refused - there} refused.${soon}`);
  },
  error(fact, at) {
    at.isDone = true;
    say(form, fact.detail, true);
  },
};

function skip(text, at) {
  at.skipped = (at.skipped ?? 0) + 1;
  const shown = document.getElementById("skipped");
  if (at.skipped <= MOST_SHOWN) shown.append(element("li", { textContent: text }));
  else shown.dataset.more = at.skipped - MOST_SHOWN;
}

async function importList(file, query) {
  const headers = { Accept: "application/x-ndjson", "Content-Type": "application/octet-stream" };
  const csrf = document.querySelector('meta[name="csrf-token"]')?.content;
  if (csrf) headers["X-CSRF-Token"] = csrf;
  const answer = await fetch(`/api/feeds/import?${query}`, { method: "POST", headers, body: file });
  if (!answer.ok) {
    const { detail } = await answer.json();
    say(form, detail.replace("--salvage (`salvage=true`) takes", "The box “take from a broken file …” takes"), true);
    return;
  }
  const at = {};
  for await (const line of lines(answer.body)) {
    for (const [kind, fact] of Object.entries(line)) tell[kind]?.(fact, at);
  }
  if (!at.isDone) say(form, "The answer broke off: the same import again adds the rest.", true);
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (form.getAttribute("aria-busy") === "true") return;
  const tag = document.getElementById("import-tag").value.trim();
  const isChecked = (id) => document.getElementById(id).checked;
  const query = new URLSearchParams({ dry_run: isChecked("dry-run"), salvage: isChecked("salvage"), ...(tag ? { tag } : {}) });
  form.setAttribute("aria-busy", "true");
  document.getElementById("skipped").replaceChildren();
  bar.removeAttribute("value");
  bar.hidden = false;
  say(form, "Sending …");
  try {
    await importList(document.getElementById("file").files[0], query);
  } catch {
    say(form, "The API went away: the same import again adds the rest.", true);
  }
  form.removeAttribute("aria-busy");
  bar.hidden = true;
  await look();
});
