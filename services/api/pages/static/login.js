// The login: the token goes in the body of a request, never into an address.

import { call, say } from "./page.js";

const form = document.getElementById("login");
const field = document.getElementById("token");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = field.value.trim();
  if (!/^fm_[0-9a-f]{8}_[0-9a-f]{64}$/.test(token)) {
    say(form, "This is no token of Feedmill: one begins with fm_ and has 76 characters.", true);
    field.focus();
    return;
  }
  say(form, "…");
  const answer = await call("POST", "/api/session", { body: { token } });
  if (!answer.ok) {
    say(form, answer.detail, true);
    field.select();
    return;
  }
  field.value = "";
  const target = new URL(form.dataset.target, location.origin);
  location.replace(target.origin === location.origin ? target : "/");
});
