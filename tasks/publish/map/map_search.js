// The search box: a combobox that lists matching titles and moves the map to the selected one.

const MAX_MATCHES = 12;

/**
 * Finds the titles that contain every word of the query. The order is: the title that equals the query, titles that
 * begin with the query, titles with a word that begins with the query, all others; within these groups, by airings.
 */
function findTitles(guide, folded, query) {
  const phrase = foldText(query).trim();
  if (!phrase) return { results: [], total: 0 };
  const words = phrase.split(" ");
  const matches = [];
  for (let i = 0; i < guide.count; i++) {
    const text = folded[i];
    if (!words.every((word) => text.includes(word))) continue;
    const at = text.indexOf(phrase);
    const score = text === phrase ? 4 : at === 0 ? 3 : at > 0 && !/[\p{L}\p{N}]/u.test(text[at - 1]) ? 2 : at > 0 ? 1 : 0;
    matches.push([i, score]);
  }
  matches.sort((a, b) => b[1] - a[1] || guide.airings[b[0]] - guide.airings[a[0]] || folded[a[0]].length - folded[b[0]].length || a[0] - b[0]);
  return { results: matches.slice(0, MAX_MATCHES).map((match) => match[0]), total: matches.length };
}

/** Fills #search and #matches. choose(i) is called with the selected title; swatch(i) returns the colour of a title. */
function createSearch(guide, { choose, swatch }) {
  const input = document.getElementById("search");
  const list = document.getElementById("matches");
  const note = document.getElementById("match-note");
  const panel = document.getElementById("match-panel");
  let folded = null; // computed at the first key: 20,000 titles take about 50 ms
  let results = [];
  let active = -1;

  const close = () => {
    panel.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
  };

  const mark = (index) => {
    active = index;
    [...list.children].forEach((option, row) => option.setAttribute("aria-selected", String(row === index)));
    if (index >= 0) {
      input.setAttribute("aria-activedescendant", `match-${index}`);
      list.children[index].scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  };

  const take = (index) => {
    const title = results[index];
    close();
    input.value = guide.titles[title];
    input.blur();
    choose(title);
  };

  const option = (title, row, part) => {
    const name = element("span", "match-title");
    name.dir = "auto";
    const text = guide.titles[title];
    const span = findFolded(text, part);
    if (span) name.append(text.slice(0, span[0]), element("mark", "", text.slice(...span)), text.slice(span[1]));
    else name.append(text);
    const dot = element("span", "dot");
    dot.style.backgroundColor = swatch(title);
    const about = element("span", "match-about", guide.categoriesIn(title).slice(0, 2).join(", "));
    const item = element("li", "match", dot, name, about);
    item.id = `match-${row}`;
    item.setAttribute("role", "option");
    item.addEventListener("pointerdown", (event) => event.preventDefault()); // so that the input keeps the focus
    item.addEventListener("click", () => take(row));
    item.addEventListener("pointermove", () => active !== row && mark(row));
    return item;
  };

  const show = () => {
    const query = input.value.trim();
    folded ??= guide.titles.map(foldText);
    const result = findTitles(guide, folded, query);
    results = result.results;
    list.replaceChildren(...results.map((title, row) => option(title, row, foldText(query).trim())));
    const more = result.total - results.length;
    note.textContent = !query ? "" : !results.length ? `No title contains “${query}”.` : more > 0 ? `and ${formatCount(more)} more` : "";
    note.hidden = !note.textContent;
    list.hidden = !results.length;
    panel.hidden = !query;
    input.setAttribute("aria-expanded", String(Boolean(query)));
    mark(results.length ? 0 : -1);
  };

  input.addEventListener("input", show);
  input.addEventListener("focus", () => {
    input.select();
    if (input.value.trim()) show();
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      if (panel.hidden) input.value = "";
      if (panel.hidden) input.blur();
      close();
    } else if (event.key === "Enter" && !event.isComposing && active >= 0) {
      take(active);
    } else if (results.length && !panel.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      mark((active + (event.key === "ArrowDown" ? 1 : results.length - 1)) % results.length);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  });

  return { focus: () => input.focus(), clear: () => (input.value = "") };
}
