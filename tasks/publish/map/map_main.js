// The page: state, drawing on demand, and the object `guidespace` for scripts and tests.

const guide = readGuide(document.getElementById("data").textContent);
const legends = makeLegends(guide);
const camera = createCamera(guide);
const surface = document.getElementById("overlay");
const firstMode = guide.categoryNames.length ? "category" : "cluster";
const state = { mode: firstMode, theme: "light", lit: null, hover: -1, pinned: -1, filtered: false, shown: 0 };
let ratio = 1;
let radii = pointRadii(guide, 1, 1);
let paint = null;
let colours = null;
let waiting = false;
let panels = []; // rectangles that cover the map; labels avoid them

const levels = createLevels(guide);
const points = createPointLayer(document.getElementById("points"), redraw);
const overlay = createOverlay(surface, guide, legends);
const search = createSearch(guide, { choose: (i) => select(i, { fly: true, searched: true }), swatch: (i) => colourOf(legends[state.mode].entryOf[i], state.mode, state.theme) });
const legend = createLegend(legends, guide.count, { setMode, highlight, clearAll });
const filter = createFilter(guide, repaint);
const address = createLinkWriter(describeView);
const cards = createCards(guide, legends, { select, close: () => select(-1), highlight: (mode, entry) => setMode(mode, entry) });
const scene = () => ({ camera, ratio, radii, paint, levels, colours, panels, hover: state.hover, pinned: state.pinned, litEntry: state.lit, mode: state.mode });

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame((now) => {
    waiting = false;
    const flying = camera.step(now);
    points.draw(camera, ratio, colours.ground, levels.choose(camera));
    panels = coveringPanels();
    overlay.draw(scene());
    if (flying) redraw();
    else address.later();
  });
}

/** Recomputes the colours of all points after a change of mode, theme, highlight or filter. */
function repaint() {
  const mask = filter.mask();
  state.filtered = mask !== null;
  paint = paintPoints(guide, legends[state.mode], state.mode, state.theme, state.lit, mask);
  state.shown = paint.lit.reduce((sum, flag) => sum + flag, 0);
  levels.arrange(paint);
  points.load(guide, radii, paint);
  legend.render(state);
  redraw();
}

/** Measures the window, and the part of it that no panel covers. */
function measureLayout() {
  const width = document.documentElement.clientWidth;
  const height = document.documentElement.clientHeight;
  const narrow = width <= 760;
  const legendPanel = document.getElementById("legend").getBoundingClientRect();
  const card = document.getElementById("card").getBoundingClientRect();
  const header = document.querySelector("header").getBoundingClientRect();
  const free = { left: 0, top: header.bottom, right: width, bottom: height };
  if (!narrow) free.left = legendPanel.right;
  if (!narrow) free.bottom -= 24; // with the margin of the camera, no point is under the hint at the start
  if (state.pinned >= 0 && narrow) free.bottom = card.top;
  if (state.pinned >= 0 && !narrow) free.right = card.left;
  return { width, height, free };
}

/** Returns the rectangles of the panels that cover the map. */
function coveringPanels() {
  const panels = document.querySelectorAll("header, #legend, #card:not([hidden]), .zoom, #map-hint:not(.gone)");
  return [...panels].map((panel) => panel.getBoundingClientRect());
}

function resize() {
  const { width, height, free } = measureLayout();
  const showsAll = !isMoved();
  ratio = Math.min(3, devicePixelRatio || 1);
  camera.resize(width, height, free);
  if (showsAll) camera.move(camera.whole(), 0);
  points.resize(width, height, ratio);
  overlay.resize(width, height, ratio);
  radii = pointRadii(guide, width, height);
  if (paint) points.load(guide, radii, paint);
  redraw();
}

function flightTime() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 750;
}

/** Pins a title (-1: unpins it) and, with fly, moves to it. */
function select(i, { fly = false, searched = false } = {}) {
  state.pinned = i;
  cards.pin(i, state.theme);
  document.getElementById("status").textContent = i < 0 ? "" : `${guide.titles[i]} selected`;
  if (!searched) search.clear();
  if (i >= 0) hideHint();
  if (i >= 0 && fly) {
    camera.free = measureLayout().free;
    const close = camera.closeScale(guide.x[i], guide.y[i]);
    camera.flyTo(guide.x[i], guide.y[i], Math.max(close, Math.min(camera.scale, close * 3)), flightTime());
  }
  redraw();
}

function hover(i, px = 0, py = 0) {
  const changed = i !== state.hover;
  state.hover = i;
  surface.classList.toggle("pointing", i >= 0);
  cards.hover(i === state.pinned ? -1 : i, state.theme, px, py);
  if (changed) redraw();
}

function highlight(entry) {
  state.lit = entry;
  repaint();
}

function setMode(mode, entry = null) {
  state.mode = mode;
  state.lit = entry;
  repaint();
}

function clearAll() {
  state.lit = null;
  filter.clear();
}

/** Returns whether the camera shows another view than the whole map. */
function isMoved() {
  const whole = camera.whole();
  return Math.abs(camera.x - whole.x) + Math.abs(camera.y - whole.y) > 1e-3 || Math.abs(camera.zoom() - 1) > 1e-3;
}

/** Returns the parameters of a link: mode, highlight, filters, pinned title, and the camera if it has moved. */
function describeView() {
  return {
    ...(state.mode === firstMode ? {} : { by: state.mode }),
    ...(state.lit ? { lit: state.lit.name } : {}),
    ...filter.get(),
    ...(state.pinned >= 0 ? { title: guide.titles[state.pinned] } : {}),
    ...(isMoved() ? { at: [camera.x.toFixed(4), camera.y.toFixed(4), camera.zoom().toFixed(3)].join(",") } : {}),
  };
}

/** Opens the view of a link; ignores values that this guide does not have. */
function openView(view) {
  state.mode = Object.hasOwn(legends, view.by ?? "") ? view.by : firstMode;
  state.lit = legends[state.mode].entries.find((entry) => entry.name === view.lit) ?? null;
  filter.set(view);
  repaint();
  const [x, y, zoom] = (view.at ?? "").split(",").map(Number);
  const placed = [x, y, zoom].every(Number.isFinite) && zoom > 0;
  select(guide.titles.indexOf(view.title), { fly: !placed });
  camera.free = measureLayout().free;
  if (placed) camera.show(x, y, zoom);
  else if (state.pinned < 0) camera.move(camera.whole(), 0);
}

/** Switches the theme and repaints the points. */
function setTheme(theme) {
  readTheme(theme);
  repaint();
}

function readTheme(theme) {
  state.theme = theme;
  document.documentElement.dataset.theme = theme;
  const style = getComputedStyle(document.documentElement);
  colours = Object.fromEntries(["ground", "ink", "label", "accent"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const button = document.getElementById("theme");
  button.setAttribute("aria-label", theme === "dark" ? "Light colours" : "Dark colours");
  cards.pin(state.pinned, theme);
}

function showAll() {
  camera.free = measureLayout().free;
  camera.move(camera.whole(), flightTime());
  redraw();
}

function hideHint() {
  document.getElementById("map-hint").classList.add("gone");
  redraw(); // labels may use its area
}

const app = {
  guide, camera, scene, redraw, hover, select, showAll,
  zoomMiddle: (factor) => camera.zoomAt((camera.free.left + camera.free.right) / 2, (camera.free.top + camera.free.bottom) / 2, factor),
  focusSearch: () => search.focus(),
  help: () => document.getElementById("help").showModal(),
  /** Unpins the title; if no title is pinned, clears the highlight; if there is no highlight, clears the filters. */
  clear: () => (state.pinned >= 0 ? select(-1) : state.lit ? highlight(null) : state.filtered ? clearAll() : null),
};

function fillPage() {
  const facts = guide.facts.map(([label, text]) => {
    const value = element("dd", "", text);
    value.title = text;
    value.dir = "auto";
    return element("div", "", element("dt", "", label), value);
  });
  document.getElementById("facts").replaceChildren(...facts);
  document.getElementById("help-facts").replaceChildren(...facts.map((fact) => fact.cloneNode(true)));
  document.getElementById("empty").hidden = guide.count > 0;
  document.getElementById("map-hint").hidden = guide.count === 0;
  surface.setAttribute("aria-label", `Map of ${formatCount(guide.count)} titles. Arrow keys move, plus and minus zoom, slash searches.`);
}

const systemTheme = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null; // not stored: a sandboxed frame has no storage
systemTheme.addEventListener("change", () => chosenTheme || setTheme(systemTheme.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => setTheme((chosenTheme = state.theme === "dark" ? "light" : "dark")));
for (const [id, act] of [["zoom-in", () => app.zoomMiddle(1.6)], ["zoom-out", () => app.zoomMiddle(1 / 1.6)], ["zoom-all", showAll]]) {
  document.getElementById(id).addEventListener("click", () => (act(), redraw()));
}
document.getElementById("help-open").addEventListener("click", app.help);
document.getElementById("help").addEventListener("click", (event) => event.target === event.currentTarget && event.currentTarget.close());
for (const kind of ["pointerdown", "wheel"]) surface.addEventListener(kind, hideHint, { passive: true });

fillPage();
readTheme(systemTheme.matches ? "dark" : "light"); // openView paints
resize();
openView(readLink());
addEventListener("hashchange", () => openView(readLink()));
wirePointers(surface, app);
wireKeys(app);
addEventListener("resize", resize);

window.guidespace = {
  /** Moves to a title and pins it. Returns whether the map has the title. */
  flyTo(title) {
    const i = guide.titles.indexOf(title);
    if (i >= 0) select(i, { fly: true });
    return i >= 0;
  },
  /** Returns the pinned title, or null. */
  selected: () => (state.pinned < 0 ? null : guide.titles[state.pinned]),
  /** Returns the numbers of titles, categories, clusters and highlighted titles. */
  counts: () => ({
    titles: guide.count,
    categories: guide.categoryNames.length,
    clusters: guide.clusterNames.length,
    noise: legends.cluster.none.count,
    lit: state.shown,
    colouredBy: state.mode,
    drawnBy: points.kind,
    ringed: overlay.ringed(),
  }),
  /** Returns the labels of the last frame: [{text, left, top, right, bottom}, …] in CSS pixels. */
  names: () => overlay.names(),
  /** Returns the work of the last frame: numbers of points drawn, titles examined, labels written, rectangles tested. */
  work: () => ({ points: points.drawn(), ...overlay.work() }),
  /** Returns the indices of the titles that the last frame drew. */
  draws: () => Array.from(levels.choose(camera)),
  /** Returns the URL fragment that reopens this view. */
  link: () => address.link(),
  /** Returns the position of a title in the window, in CSS pixels, and whether the camera is still; null if missing. */
  where(title) {
    const i = guide.titles.indexOf(title);
    return i < 0 ? null : { x: camera.screenX(guide.x[i]), y: camera.screenY(guide.y[i]), still: !camera.flying() };
  },
};
