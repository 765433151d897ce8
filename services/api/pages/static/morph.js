// Makes an element equal to a newer one in place, so that focus, selection, scrolling and what a person opened or typed stay.

/** What a person changes, and the server does not know. */
const OWN = new Set(["open", "checked", "value", "selected", "aria-expanded"]);

export function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || key(old) !== key(fresh)) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.isEqualNode(fresh) || "keep" in old.dataset) return;
  morphAttributes(old, fresh);
  if (old.nodeName !== "TEXTAREA" && old.nodeName !== "OUTPUT") morphChildren(old, fresh);
}

function key(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || "" : "";
}

function morphAttributes(old, fresh) {
  const names = new Set([...old.getAttributeNames(), ...fresh.getAttributeNames()]);
  for (const name of names) {
    if (OWN.has(name)) continue;
    const value = fresh.getAttribute(name);
    if (value === null) old.removeAttribute(name);
    else if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

function morphChildren(old, fresh) {
  const keyed = new Map([...old.childNodes].filter(key).map((child) => [key(child), child]));
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const same = key(child) ? keyed.get(key(child)) : at && !key(at) && at.nodeName === child.nodeName ? at : null;
    if (!same) {
      old.insertBefore(child, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else old.insertBefore(same, at);
    morph(same, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
