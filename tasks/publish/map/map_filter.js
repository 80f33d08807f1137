// Filters by channel, language, day, kind and new titles, which are combined with each other and with a highlight.

/** Connects #filters and calls changed() after a choice. */
function createFilter(guide, changed) {
  const fields = {
    channel: { select: document.getElementById("filter-channel"), names: guide.channelNames, of: guide.channelsOf },
    language: { select: document.getElementById("filter-language"), names: guide.languageNames, of: guide.languageOf },
    day: { select: document.getElementById("filter-day"), names: guide.dayNames, of: guide.dayOf },
    kind: { select: document.getElementById("filter-kind"), names: guide.kindNames, of: guide.kindOf },
  };
  const fresh = document.getElementById("filter-new");
  const freshCount = guide.freshCount;
  fresh.parentElement.hidden = !freshCount;
  fresh.nextElementSibling.textContent = `New since the last run, with a ring (${formatCount(freshCount)})`;

  for (const [kind, { select, names, of }] of Object.entries(fields)) {
    const counts = new Uint32Array(names.length);
    const { values } = of.all();
    for (let at = 0; at < values.length; at++) counts[values[at]]++;
    select.parentElement.hidden = names.length < 2;
    const order = names.map((_, name) => name).sort((a, b) => (kind === "day" ? (names[a] < names[b] ? -1 : 1) : counts[b] - counts[a] || (names[a] < names[b] ? -1 : 1)));
    select.append(...order.map((name) => {
      const option = element("option", "", `${kind === "language" ? languageName(names[name]) : names[name]} (${formatCount(counts[name])})`);
      option.value = names[name];
      return option;
    }));
    select.addEventListener("change", changed);
  }
  fresh.addEventListener("change", changed);
  document.getElementById("filters").hidden = ![...document.querySelectorAll("#filters label")].some((label) => !label.hidden);

  const chosen = () => Object.values(fields).filter(({ select }) => select.value);
  return {
    /** 1 for titles that pass, or null without a filter. */
    mask() {
      const active = chosen().map(({ select, names, of }) => ({ index: names.indexOf(select.value), of }));
      if (!active.length && !fresh.checked) return null;
      const mask = new Uint8Array(guide.count);
      for (let i = 0; i < guide.count; i++) {
        mask[i] = (!fresh.checked || guide.isFresh(i)) && active.every(({ index, of }) => of(i).includes(index)) ? 1 : 0;
      }
      return mask;
    },
    /** The choices as {channel, language, day, kind, new} without empty ones. */
    get() {
      const choices = Object.fromEntries(Object.entries(fields).filter(([, { select }]) => select.value).map(([kind, { select }]) => [kind, select.value]));
      return fresh.checked ? { ...choices, new: "1" } : choices;
    },
    /** Sets the choices; ignores values that this guide does not have. */
    set(choices) {
      for (const [kind, { select, names }] of Object.entries(fields)) select.value = names.includes(choices[kind]) ? choices[kind] : "";
      fresh.checked = Boolean(choices.new) && freshCount > 0;
    },
    clear() {
      this.set({});
      changed();
    },
  };
}

/** "German" for "de"; the code if the browser has no name. */
function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}
