// Filters by channel, language, day, kind and newness. A title must pass all filters and the highlight.

/** Fills #filters, and calls changed() after a choice. */
function createFilter(guide, changed) {
  const fields = {
    channel: { select: document.getElementById("filter-channel"), names: guide.channelNames, of: guide.channelsOf },
    language: { select: document.getElementById("filter-language"), names: guide.languageNames, of: guide.languagesOf },
    day: { select: document.getElementById("filter-day"), names: guide.dayNames, of: guide.daysOf },
    kind: { select: document.getElementById("filter-kind"), names: guide.kindNames, of: guide.kindsOf },
  };
  const newBox = document.getElementById("filter-new");
  const newCount = guide.newTitles.length;
  newBox.parentElement.hidden = !newCount;
  newBox.nextElementSibling.textContent = `New since the last run, with a ring (${formatCount(newCount)})`;

  for (const [kind, { select, names, of }] of Object.entries(fields)) {
    const counts = new Uint32Array(names.length);
    const { values } = of.all();
    for (let index = 0; index < values.length; index++) counts[values[index]]++;
    select.parentElement.hidden = names.length < 2;
    const order = names.map((_, name) => name).sort((a, b) => (kind === "day" ? (names[a] < names[b] ? -1 : 1) : counts[b] - counts[a] || (names[a] < names[b] ? -1 : 1)));
    select.append(...order.map((name) => {
      const option = element("option", "", `${kind === "language" ? languageName(names[name]) : names[name]} (${formatCount(counts[name])})`);
      option.value = names[name];
      return option;
    }));
    select.addEventListener("change", changed);
  }
  newBox.addEventListener("change", changed);
  document.getElementById("filters").hidden = ![...document.querySelectorAll("#filters label")].some((label) => !label.hidden);

  const chosen = () => Object.values(fields).filter(({ select }) => select.value);
  return {
    /** Returns a mask of the titles that pass all filters (1), or null without a filter. */
    mask() {
      const active = chosen().map(({ select, names, of }) => ({ index: names.indexOf(select.value), of }));
      if (!active.length && !newBox.checked) return null;
      const mask = new Uint8Array(guide.count);
      for (let i = 0; i < guide.count; i++) {
        mask[i] = (!newBox.checked || guide.isNew(i)) && active.every(({ index, of }) => of(i).includes(index)) ? 1 : 0;
      }
      return mask;
    },
    /** Returns the choices as {channel, language, day, kind, new}, without filters that are not set. */
    get() {
      const choices = Object.fromEntries(Object.entries(fields).filter(([, { select }]) => select.value).map(([kind, { select }]) => [kind, select.value]));
      return newBox.checked ? { ...choices, new: "1" } : choices;
    },
    /** Sets the choices; ignores values that this guide does not have. */
    set(choices) {
      for (const [kind, { select, names }] of Object.entries(fields)) select.value = names.includes(choices[kind]) ? choices[kind] : "";
      newBox.checked = Boolean(choices.new) && newCount > 0;
    },
    clear() {
      this.set({});
      changed();
    },
  };
}

/** Returns the name of a language, such as "German" for "de"; the code if the browser does not have the name. */
function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}
