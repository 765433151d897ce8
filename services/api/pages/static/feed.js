// One feed: it is fetched while a person looks, and its settings are changed.

import { call, look, say } from "./page.js";
import { isVisible, shown } from "./texts.js";
import { localise } from "./times.js";

const WAIT_SECONDS = 5;
const MOMENT = /(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)/; // as the API writes it in a sentence
const UNITS = { s: 1, m: 60, h: 3600, d: 86400 };

function element(name, content = {}, ...children) {
  const made = Object.assign(document.createElement(name), content);
  made.append(...children);
  return made;
}

// ---- fetched now, for real or as a dry run ----------------------------------------------------------------------

const actions = document.querySelector(".actions");
const tried = document.getElementById("tried");
const acted = document.getElementById("acted");

function tell(text, isProblem = false) {
  acted.className = isProblem ? "problem" : "done";
  acted.replaceChildren(...text.split(MOMENT).map((part) => (MOMENT.test(part) ? time(part.replace(" UTC", "Z").replace(" ", "T")) : part)));
  localise(acted);
}

async function fire(isDry) {
  if (actions.getAttribute("aria-busy") === "true") return;
  actions.setAttribute("aria-busy", "true");
  tried.hidden = true;
  tell("Its job is on its way, ahead of the backlog …");
  const { feed, shard } = actions.dataset;
  let answer = await call("POST", `/api/feeds/${feed}/fire`, { body: { dry_run: isDry } });
  const began = Date.now();
  while (answer.ok && answer.body.status === "running") {
    answer = await call("GET", `/api/fires/${answer.body.id}?wait=${WAIT_SECONDS}`);
    const seconds = Math.round((Date.now() - began) / 1000);
    if (answer.ok && answer.body.status === "running")
      tell(`No result after ${seconds} s: its job waits in ${shard}.front, for a fetcher or for its host's turn …`);
  }
  actions.removeAttribute("aria-busy");
  if (!answer.ok) tell(answer.detail, true);
  else show(answer.body, isDry);
  await look();
}

function show(task, isDry) {
  if (task.status === "error") tell(`It did not work: ${task.error ?? task.outcome}`, true);
  else {
    const counts = `${task.fetched ?? 0} entries: ${task.new ?? 0} new, ${task.changed ?? 0} changed, ${task.known ?? 0} known`;
    tell(isDry ? `It would bring ${counts}. Nothing was written.` : `It brought ${counts}.`);
  }
  if (!task.entries?.length) return;
  const rows = task.entries.map((entry) =>
    element(
      "tr",
      {},
      cell("State", entry.state),
      cell("Published", time(entry.published_at)),
      cell("Title", link(entry.url, entry.title)),
      cell("Text", entry.content_quality),
      cell("Flags", entry.flags.join(", ").replaceAll("_", " ") || "–"),
    ),
  );
  const names = ["State", "Published", "Title", "Text", "Flags"].map((name) => element("th", { scope: "col", textContent: name }));
  const table = element(
    "table",
    { className: "cards tried" },
    element("caption", { textContent: `What the feed lists now, the first ${task.entries.length}` }),
    element("thead", {}, element("tr", {}, ...names)),
    element("tbody", {}, ...rows),
  );
  localise(table);
  tried.replaceChildren(table);
  tried.hidden = false;
}

function cell(label, content) {
  const made = element("td", {}, content);
  made.dataset.label = label;
  return made;
}

function time(at) {
  if (!at) return "–";
  const made = element("time", { dateTime: at, title: `${at.slice(0, 19).replace("T", " ")} UTC`, textContent: at });
  made.dataset.local = "";
  return made;
}

/** A stranger's address is a link only if it leads to the web; it stands for a title of which nobody sees anything. */
function link(url, text) {
  const label = shown(isVisible(text) ? text : (url ?? "–"));
  return /^https?:\/\//i.test(url) ? element("a", { href: url, rel: "noopener noreferrer nofollow", textContent: label }) : label;
}

actions?.addEventListener("click", (event) => {
  const kind = event.target.closest("button[data-fire]")?.dataset.fire;
  if (kind) fire(kind === "dry");
});

// ---- settings: only what a person changed is sent ---------------------------------------------------------------

const settings = document.getElementById("settings");

/** What the server sent for a field. */
const before = (field) => field.defaultValue ?? [...field.options].find((option) => option.defaultSelected)?.value ?? "";

/** Return seconds, or null for an empty field; raises the sentence for a person. */
function seconds(text) {
  if (!text) return null;
  const found = /^(\d+(?:\.\d+)?)\s*([smhd]?)$/i.exec(text);
  if (!found) throw `“${text}” is no span: give one such as 90s, 5m, 2h or 1d`;
  return Number(found[1]) * UNITS[found[2].toLowerCase() || "s"];
}

function changes() {
  const given = {};
  for (const field of settings.elements) {
    const text = field.value.trim();
    if (!field.name || text === before(field).trim()) continue;
    if ("span" in field.dataset) given[field.name] = seconds(text);
    else if (field.name === "tags") given.tags = text.split(",").map((part) => part.trim()).filter(Boolean);
    else if (field.type === "number") given[field.name] = Number(text);
    else if (field.name === "date_order" || field.name === "name") given[field.name] = text || null;
    else given[field.name] = text;
  }
  return given;
}

/** Take what was saved for what the server sent. */
function keep(field) {
  if (field.name === "url") field.value = "";
  if (field.options) for (const option of field.options) option.defaultSelected = option.selected;
  else field.defaultValue = field.value;
}

async function save() {
  const given = changes();
  if (!Object.keys(given).length) {
    say(settings, "Nothing is changed.");
    return;
  }
  const headers = { "If-Match": settings.dataset.etag };
  const answer = await call("PATCH", settings.dataset.path, { body: given, headers });
  if (!answer.ok) {
    const again = answer.status === 412 ? " Load the page again to see it." : "";
    say(settings, `${answer.detail}.${again}`.replace("..", "."), true);
    return;
  }
  for (const field of settings.elements) keep(field);
  await look();
  say(settings, "Saved.");
}

settings?.addEventListener("submit", (event) => {
  event.preventDefault();
  save().catch((problem) => say(settings, problem, true));
});
