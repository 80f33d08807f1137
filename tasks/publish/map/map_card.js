// Cards with the facts of a title: a small card at the pointer, and the pinned card with links to neighbours.

const CHANNELS_SHOWN = 6; // maximum number of channels on the small card
const MIN_SHARE = 0.05; // minimum contribution to a cosine at which a reason is shown; words in common are always shown
// Texts for reasons that are not words: for a positive and for a negative contribution.
const PARTS = {
  "(meaning)": ["similar meaning", "different meaning"],
  "(memory)": ["same memory slot", "different memory slots"],
  "(channel)": ["similar channels", "different channels"],
  "(hour)": ["similar hours", "different hours"],
  "(weekday)": ["similar weekdays", "different weekdays"],
  "(duration)": ["similar duration", "different durations"],
  "(manner)": ["similar schedule", "different schedules"],
  "(person)": ["same people", "different people"],
  "(country)": ["similar countries", "different countries"],
  "(date)": ["similar age", "different age"],
  "(rating)": ["similar age rating", "different age ratings"],
  "(keyword)": ["similar keywords", "different keywords"],
  "(original_language)": ["similar original language", "different original languages"],
  "(length)": ["similar length", "different lengths"],
};

/** Fills #card and #hover. A click calls select(i), close() or highlight(mode, entry). */
function createCards(guide, legends, { select, close, highlight }) {
  const pinnedCard = document.getElementById("card");
  const pinnedBody = document.getElementById("card-body");
  const hoverCard = document.getElementById("hover");
  document.getElementById("card-close").addEventListener("click", close);

  const term = (name, ...values) => element("div", "fact", element("dt", "", name), element("dd", "", ...values));

  /** Returns the label of a category or cluster; if `linked`, a button that highlights its titles. */
  const label = (entry, mode, theme, linked) => {
    const dot = element("span", "dot");
    dot.style.backgroundColor = colourOf(entry, mode, theme);
    const name = element("span", "", entry.name);
    name.dir = "auto";
    const chip = element(linked ? "button" : "span", "chip", dot, name);
    if (linked) {
      chip.type = "button";
      chip.title = `Highlight all ${formatCount(entry.count)} titles`;
      chip.addEventListener("click", () => highlight(mode, entry));
    }
    return chip;
  };

  /**
   * Returns a text such as "shared word “night”; similar meaning; but “law” and “quiz”". It lists the words that both
   * titles contain (or else two related words), then other similar parts, then a difference.
   */
  const describeReasons = (reasons) => {
    const shown = reasons.filter(({ left, right, share }) => (left === right && !PARTS[left]) || Math.abs(share) >= MIN_SHARE);
    const quotePair = ({ left, right }) => `“${left}” and “${right}”`;
    const parts = shown.filter(({ left, share }) => PARTS[left] && share > 0).map(({ left }) => PARTS[left][0]);
    const words = shown.filter(({ left, share }) => share > 0 && !PARTS[left]);
    const common = words.filter(({ left, right }) => left === right).map(({ left }) => `“${left}”`);
    const related = words.slice(0, 1).map((pair) => `${quotePair(pair)} occur in the same kind of programme`);
    const different = shown.filter(({ share }) => share < 0).map((pair) => `but ${PARTS[pair.left]?.[1] ?? quotePair(pair)}`);
    const commonText = `shared word${common.length > 1 ? "s" : ""} ${common.join(" and ")}`;
    const texts = [...(common.length ? [commonText] : related), ...parts, ...different];
    return texts.length ? element("span", "why", texts.join("; ")) : null;
  };

  /** Returns a text such as "next Sat 7 June at 18:30 on BBC One" in the time zone of the browser; null without airings. */
  const describeAiring = (i) => {
    const times = guide.timesOf(i);
    if (!times.length) return null;
    const next = times.find(({ start }) => start >= Date.now());
    const { start, channel } = next ?? times[times.length - 1];
    const hasAllTimes = times.length < guide.maxTimes; // otherwise an earlier airing may be missing
    const when = next ? (hasAllTimes || next !== times[0] ? "next " : "among others ") : "last ";
    const text = element("span", "", `${when}${formatTime(start)} on ${channel}`);
    text.dir = "auto";
    return term("Airs", text);
  };

  const neighbourRow = ({ title, cosine, reasons }, linked) => {
    const name = element("span", "neighbour-title", guide.titles[title]);
    name.dir = "auto";
    const bar = element("span", "bar", element("span", ""));
    bar.firstChild.style.width = `${Math.max(0, cosine) * 100}%`;
    bar.setAttribute("aria-hidden", "true");
    const row = element(linked ? "button" : "span", "neighbour", name, bar, element("span", "cosine", cosine.toFixed(2)));
    if (linked) {
      row.type = "button";
      row.addEventListener("click", () => select(title, { fly: true }));
    }
    return element("li", "", row, linked ? describeReasons(reasons) : null);
  };

  /** Returns the elements of the card of a title; `linked` for the pinned card, which has buttons and all facts. */
  const fill = (i, theme, linked) => {
    const heading = element("h2", "card-title", guide.titles[i]);
    heading.dir = "auto";
    const description = guide.descriptionOf(i) ? element("p", "description", guide.descriptionOf(i)) : null;
    if (description) description.dir = "auto";
    const categories = guide.categoriesIn(i).map((name) => label(legends.category.entryOfName.get(name), "category", theme, linked));
    const channels = guide.channelsIn(i);
    const shown = linked ? channels : channels.slice(0, CHANNELS_SHOWN);
    const cluster = guide.clusters[i] < 0 ? legends.cluster.none : legends.cluster.entryOfCluster.get(guide.clusters[i]);
    const neighbours = guide.neighbours(i);
    const facts = element(
      "dl",
      "facts",
      term("Category", ...(categories.length ? categories : [element("span", "absent", "none")])),
      term("Cluster", label(cluster, "cluster", theme, linked)),
      term("Channels", shown.length ? shown.join(", ") + (channels.length > shown.length ? ` and ${channels.length - shown.length} more` : "") : element("span", "absent", "unknown")),
      term("Airings", formatCount(guide.airings[i])),
      describeAiring(i),
    );
    const note = guide.isHeldOut(i) ? element("p", "held-out", "Held out: this title was not used in training.") : null;
    const rows = (linked ? neighbours : neighbours.slice(0, 5)).map((neighbour) => neighbourRow(neighbour, linked));
    const nearest = rows.length
      ? [
          element("div", "nearest-head", element("h3", "", "Nearest titles"), element("span", "", "similarity")),
          element("ol", "nearest", ...rows),
        ]
      : [element("p", "absent", "No neighbours: no known words.")];
    return [heading, description, facts, note, ...nearest].filter((part) => part !== null);
  };

  return {
    /** Shows the pinned card of a title, or hides it for -1. */
    pin(i, theme) {
      pinnedCard.hidden = i < 0;
      document.body.classList.toggle("has-card", i >= 0);
      if (i < 0) return;
      pinnedBody.replaceChildren(...fill(i, theme, true));
      pinnedBody.scrollTop = 0;
    },
    /** Shows the small card of a title beside (px, py), inside the window, or hides it for -1. */
    hover(i, theme, px, py) {
      hoverCard.hidden = i < 0;
      if (i < 0) return;
      if (hoverCard.dataset.shown !== `${i} ${theme}`) hoverCard.replaceChildren(...fill(i, theme, false), element("p", "hint", "Click to keep it open"));
      hoverCard.dataset.shown = `${i} ${theme}`;
      const { offsetWidth: width, offsetHeight: height } = hoverCard;
      const left = px + 18 + width > innerWidth - 8 ? px - 18 - width : px + 18;
      const top = Math.min(Math.max(8, py - 24), innerHeight - height - 8);
      hoverCard.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
    },
  };
}
