// Strangers' texts, as the server shows them (shared/observability/display.py).

const LAST_LATIN = "\u02ff";
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\u{e0100}-\u{e01ef}]|(?! )\p{Zs}/u;
const JOINERS = "\u200c\u200d"; // of Persian and Indian letters, and of an emoji's parts

/** Return a text with what nobody sees, or what changes the direction of writing, as JSON's escapes. */
export function shown(text) {
  const all = [...text];
  const joins = (at) => [all[at - 1], all[at + 1]].every((side) => side > LAST_LATIN && !INVISIBLE.test(side));
  return all.map((one, at) => (!INVISIBLE.test(one) || (JOINERS.includes(one) && joins(at)) ? one : escaped(one))).join("");
}

/** Whether a person sees something of a text. */
export const isVisible = (text) => [...(text ?? "")].some((one) => one !== " " && !INVISIBLE.test(one));

function escaped(character) {
  const brief = { "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f" }[character];
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return brief ?? units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
