// Requeues or purges the chosen letters of a queue.

import { call } from "./page.js";
import { morph } from "./morph.js";
import { localise } from "./times.js";

const answerLine = document.getElementById("answer");
const MOST = 1000; // of each queue are looked at

const verbs = {
  requeue: { question: (many) => `Send ${many} back to the queue where they failed?`, done: (body) => `${body.requeued} requeued` },
  purge: { question: (many) => `Throw ${many} away for good?`, done: (body) => `${body.purged} thrown away` },
};

function show(text, isProblem) {
  answerLine.className = isProblem ? "problem" : "done";
  answerLine.textContent = text;
}

async function refresh() {
  const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" }, cache: "no-store" });
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const newer = fresh.getElementById("letters");
  if (!answer.ok || !newer) return;
  localise(fresh);
  morph(document.getElementById("letters"), newer);
}

document.addEventListener("change", (event) => {
  if (!event.target.matches("input[data-all]")) return;
  for (const box of event.target.form.querySelectorAll('input[name="ids"]')) box.checked = event.target.checked;
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  const verb = verbs[event.submitter?.value];
  if (!form.matches("form.letters") || !verb) return;
  event.preventDefault();
  const ids = [...form.querySelectorAll('input[name="ids"]:checked')].map((box) => box.value);
  if (!ids.length) {
    show("Choose letters first.", true);
    return;
  }
  if (!window.confirm(verb.question(ids.length === 1 ? "one letter" : `${ids.length} letters`))) return;
  event.submitter.setAttribute("aria-busy", "true");
  const answer = await call("POST", `/api/dead-letters/${event.submitter.value}`, {
    body: { ids, service: form.dataset.service, limit: MOST },
  });
  event.submitter.removeAttribute("aria-busy");
  show(answer.ok ? `${verb.done(answer.body)}.` : answer.detail, !answer.ok);
  await refresh();
});
