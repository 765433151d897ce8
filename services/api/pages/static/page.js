// What every page does: shows times by the browser's locale, looks again when figures changed, and sends changes to the API.

import { morph } from "./morph.js";
import { localise } from "./times.js";

const banner = document.getElementById("banner");
const RETRY_MS = 5000;
const PATIENCE_MS = 3000; // the server ends its events from time to time
const SILENCE_MS = 15_000; // a sign of life comes every five seconds
const LOOK_MS = 10_000;
const READ_MS = 20_000;
const CHANGE_MS = 90_000; // a new feed is fetched before the answer
const ALONE_MS = 30_000; // between looks without events

// ---- changes ----------------------------------------------------------------------------------------------------

/**
 * Ask the API. Returns {ok, status, body}: `body` is the answer's JSON, or null; of an error `detail` says what to do.
 * @param {object} [options] `body` is sent as JSON; `headers` go along.
 */
export async function call(method, path, { body, headers = {} } = {}) {
  const patience = method === "GET" ? READ_MS : CHANGE_MS;
  const csrf = document.querySelector('meta[name="csrf-token"]')?.content;
  const sent = { Accept: "application/json", ...headers };
  if (csrf) sent["X-CSRF-Token"] = csrf;
  let payload = body;
  if (body !== undefined && !(body instanceof Blob)) {
    sent["Content-Type"] = "application/json";
    payload = JSON.stringify(body);
  }
  let answer;
  let text;
  try {
    answer = await fetch(path, { method, headers: sent, body: payload, signal: AbortSignal.timeout(patience) });
    text = await answer.text();
  } catch (error) {
    const late = `the API has not answered for ${patience / 1000} s: look whether it is done before you try again`;
    return { ok: false, status: 0, body: null, detail: error.name === "TimeoutError" ? late : "the API does not answer: try again" };
  }
  if (answer.status === 401 && path !== "/api/session") toLogin();
  let found = null;
  try {
    found = text ? JSON.parse(text) : null;
  } catch {
    found = text; // lines of JSON, OPML
  }
  return { ok: answer.ok, status: answer.status, body: found, detail: answer.ok ? null : (found?.detail ?? answer.statusText) };
}

/** Show what came of an action: in the <output> that `data-answer` names, in its form's, or in one beside it. */
export function say(element, text, isProblem = false) {
  let output = document.getElementById(element.dataset.answer ?? "") ?? element.closest("form")?.querySelector("output");
  output ??= element.parentElement.querySelector(":scope > output");
  if (!output) {
    output = document.createElement("output");
    element.after(output);
  }
  output.className = isProblem ? "problem" : "done";
  output.textContent = text;
}

/** Return the values of a form as JSON. `data-type` of a field: number, boolean, list. An empty one is left out, or null with data-empty="null". */
export function values(form) {
  const found = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled || (field.type === "radio" && !field.checked)) continue;
    const kind = field.dataset.type ?? (field.type === "number" ? "number" : "text");
    if (kind === "boolean") found[field.name] = field.type === "checkbox" ? field.checked : field.value === "true";
    else if (kind === "list") found[field.name] = field.value.split(/[\n,]/).map((part) => part.trim()).filter(Boolean);
    else if (field.value !== "") found[field.name] = kind === "number" ? Number(field.value) : field.value;
    else if (field.dataset.empty === "null") found[field.name] = null;
  }
  return found;
}

async function act(element, body) {
  const { api, confirm: question, next, done } = element.dataset;
  if (element.getAttribute("aria-busy") === "true" || (question && !window.confirm(question))) return;
  const [method, path] = api.split(" ");
  element.setAttribute("aria-busy", "true");
  const answer = await call(method, path, { body, headers: JSON.parse(element.dataset.headers ?? "{}") });
  element.removeAttribute("aria-busy");
  if (!answer.ok) {
    say(element, answer.detail, true);
    return;
  }
  element.dispatchEvent(new CustomEvent("feedmill:done", { bubbles: true, detail: answer }));
  if (next) {
    location.assign(next);
    return;
  }
  if (done) say(element, done);
  await look();
  if (!element.isConnected && document.activeElement === document.body) {
    document.querySelector(`[data-turn="${element.dataset.turn}"]`)?.focus();
  }
}

document.addEventListener("submit", (event) => {
  if (!event.target.dataset.api) return;
  event.preventDefault();
  act(event.target, values(event.target));
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-api]");
  if (button) act(button, button.dataset.body === undefined ? undefined : JSON.parse(button.dataset.body));
});

// ---- looking again ----------------------------------------------------------------------------------------------

let running = null;

/** Get this page again, and show what differs in the elements marked `data-live`; tell whether that worked. One at a time. */
export function look() {
  running ??= again().finally(() => {
    running = null;
  });
  return running;
}

async function again() {
  let answer;
  let text;
  try {
    const signal = AbortSignal.timeout(LOOK_MS);
    answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store", signal });
    text = await answer.text();
  } catch {
    away();
    return false;
  }
  if (answer.redirected && new URL(answer.url).pathname === "/login") {
    location.assign(answer.url);
    return false;
  }
  const fresh = new DOMParser().parseFromString(text, "text/html");
  if (!answer.ok) {
    away(fresh.querySelector("[data-detail]")?.textContent);
    return false;
  }
  back();
  localise(fresh);
  for (const element of document.querySelectorAll("[data-live][id]")) {
    const newer = fresh.getElementById(element.id);
    if (newer) morph(element, newer);
  }
  document.dispatchEvent(new CustomEvent("feedmill:look"));
  return true;
}

// ---- events -----------------------------------------------------------------------------------------------------

let source = null;
let since = null;
let timer = null;
let silence = null;
let later = null;

function listen() {
  if (document.hidden || source) return;
  source = new EventSource("/events");
  source.addEventListener("look", look);
  source.addEventListener("hello", () => {
    if (since) look();
  });
  for (const kind of ["hello", "look", "beat"]) source.addEventListener(kind, hear);
  hear();
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) {
      lookAlone();
      return;
    }
    since ??= new Date();
    timer ??= setTimeout(away, PATIENCE_MS);
  };
}

/** Note a sign of life. An API that hangs keeps its connections, and says nothing. */
function hear() {
  const at = new Date();
  clearTimeout(silence);
  silence = setTimeout(() => {
    since ??= at;
    away();
    lookAlone();
  }, SILENCE_MS);
}

/** Look without events, which are refused or silent, and ask for them again later. */
async function lookAlone() {
  stop();
  const wait = (await look()) ? ALONE_MS : RETRY_MS;
  clearTimeout(later);
  later = setTimeout(listen, wait);
}

function stop() {
  clearTimeout(silence);
  source?.close();
  source = null;
}

function away(reason) {
  since ??= new Date();
  const at = since.toLocaleTimeString(navigator.languages);
  banner.textContent = `${typeof reason === "string" ? reason : "The API does not answer."} This page is as it was at ${at}; it tries again.`;
  banner.hidden = false;
}

function back() {
  clearTimeout(timer);
  timer = since = null;
  banner.hidden = true;
}

function toLogin() {
  location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
}

localise(document);
if (document.querySelector("[data-live][id]")) {
  listen();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stop(); // a browser has six connections to a host, for all tabs
    } else {
      look();
      listen();
    }
  });
}
window.addEventListener("pagehide", stop);
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // from the cache of a browser, perhaps after a logout
});
