// The legend: a switch between categories and clusters, and a list in which a click highlights a category or cluster.

const ENTRIES_AT_FIRST = 20; // number of entries that the list shows before "Show all" is clicked

/** Fills #legend. `total` is the number of titles. A click calls setMode(mode), highlight(entry or null) or clearAll(). */
function createLegend(legends, total, { setMode, highlight, clearAll }) {
  const count = document.getElementById("count");
  const list = document.getElementById("legend-list");
  const more = document.getElementById("legend-more");
  const clear = document.getElementById("legend-clear");
  const fold = document.getElementById("legend-fold");
  const panel = document.getElementById("legend");
  const switches = [...document.querySelectorAll("input[name=colour-by]")];
  const showsAll = { category: false, cluster: false };
  let drawnMode = null;

  for (const input of switches) input.addEventListener("change", () => setMode(input.value));
  clear.addEventListener("click", () => clearAll());
  const open = (isOpen) => {
    panel.classList.toggle("folded", !isOpen);
    fold.setAttribute("aria-expanded", String(isOpen));
  };
  const narrow = matchMedia("(max-width: 760px)"); // an open legend would hide the map
  fold.addEventListener("click", () => open(panel.classList.contains("folded")));
  narrow.addEventListener("change", () => open(!narrow.matches));
  open(!narrow.matches);

  const row = (entry, state) => {
    const dot = element("span", "dot");
    dot.style.backgroundColor = colourOf(entry, state.mode, state.theme);
    const name = element("span", "entry-name", entry.name);
    name.dir = "auto";
    name.title = entry.name;
    const button = element("button", entry.rank < 0 ? "entry none" : "entry", dot, name, element("span", "entry-count", formatCount(entry.count)));
    button.type = "button";
    button.setAttribute("aria-pressed", String(state.lit === entry));
    button.addEventListener("click", () => highlight(state.lit === entry ? null : entry));
    return element("li", "", button);
  };

  const render = (state) => {
    const { entries } = legends[state.mode];
    for (const input of switches) input.checked = input.value === state.mode;
    const none = entries.filter((entry) => entry.rank < 0);
    const named = entries.filter((entry) => entry.rank >= 0);
    // If the highlighted entry is not among the first entries, all entries are shown.
    const all = showsAll[state.mode] || (state.lit && state.lit.rank >= ENTRIES_AT_FIRST);
    const shown = all ? named : named.slice(0, ENTRIES_AT_FIRST);
    const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
    list.replaceChildren(...[...shown, ...none].map((entry) => row(entry, state)));
    if (focused >= 0) list.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
    list.classList.toggle("has-lit", Boolean(state.lit));
    const kind = state.mode === "category" ? "categories" : "clusters";
    more.hidden = named.length <= ENTRIES_AT_FIRST;
    more.textContent = all ? "Show fewer" : `Show all ${formatCount(named.length)} ${kind}`;
    more.onclick = () => {
      showsAll[state.mode] = !all;
      render(state);
    };
    clear.hidden = !state.lit && !state.filtered;
    clear.textContent = state.filtered ? (state.lit ? "Clear highlight and filters" : "Clear filters") : "Clear highlight";
    count.textContent = `${state.lit || state.filtered ? `${formatCount(state.shown)} of ` : ""}${formatCount(total)} ${total === 1 ? "title" : "titles"}`;
    if (drawnMode !== state.mode) list.scrollTop = 0;
    drawnMode = state.mode;
    if (state.lit) list.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest" });
  };
  return { render };
}
