// Moments as the browser's locale writes them, in its time zone. The title keeps UTC.

const full = new Intl.DateTimeFormat(navigator.languages, { dateStyle: "medium", timeStyle: "short" });

/** Rewrite the text of each <time data-local> within a node; one that only says how long ago gets its moment as title. */
export function localise(within) {
  for (const time of within.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    if ("local" in time.dataset) time.textContent = full.format(at);
    else if ("ago" in time.dataset && !time.title.includes("·")) time.title = `${full.format(at)} · ${time.title}`;
  }
}
