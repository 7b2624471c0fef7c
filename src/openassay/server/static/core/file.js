// Something made in the page, as a file to keep.

export const kept = (text, name, media) => keep(new Blob([text], { type: `${media};charset=utf-8` }), name);

export function keep(blob, name) {
  const url = URL.createObjectURL(blob);
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A name that every system takes. */
export const fileName = (title, suffix) =>
  `${
    title
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 60) || "artifact"
  }.${suffix}`;
