// Draws the overlay: lines to neighbours, rings, and labels of clusters and titles that do not overlap.

const FONT = '"Inter", system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif';
const MAX_TITLES_IN_VIEW = 600; // with more titles in view, titles have no labels
const MAX_LABELLED = 260; // maximum number of titles with a label
const SUBCLUSTER_ZOOM = 1.6; // minimum magnification for labels of subclusters, which are similar to those of clusters
const EDGE = 6; // CSS pixels between a label and the edge of the window
const MAX_RINGS = 1500; // with more new titles in view, they have no rings

/** Remembers occupied rectangles. take() occupies a rectangle if it is free (force: always), and returns whether it did. */
function createOccupancy() {
  const cells = new Map();
  const CELL = 96;
  let tested = 0;
  return {
    /** The number of tested rectangles. */
    tested: () => tested,
    take(left, top, right, bottom, force = false) {
      tested++;
      const touched = [];
      for (let cx = Math.floor(left / CELL); cx <= Math.floor(right / CELL); cx++) {
        for (let cy = Math.floor(top / CELL); cy <= Math.floor(bottom / CELL); cy++) {
          const key = `${cx},${cy}`;
          const inside = cells.get(key) ?? [];
          if (!force && inside.some((box) => left < box[2] && right > box[0] && top < box[3] && bottom > box[1])) return false;
          touched.push([key, inside]);
        }
      }
      for (const [key, inside] of touched) cells.set(key, [...inside, [left, top, right, bottom]]);
      return true;
    },
  };
}

/** Returns the median position of titles, and the radius around it that contains half of the titles. */
function placeTitles(guide, titles) {
  const [xs, ys, away] = [0, 1, 2].map(() => new Float32Array(titles.length));
  const median = (values) => values.sort()[values.length >> 1];
  for (let at = 0; at < titles.length; at++) {
    xs[at] = guide.x[titles[at]];
    ys[at] = guide.y[titles[at]];
  }
  const [x, y] = [median(xs), median(ys)];
  for (let at = 0; at < titles.length; at++) away[at] = Math.hypot(guide.x[titles[at]] - x, guide.y[titles[at]] - y);
  return { x, y, reach: median(away) };
}

/** Returns the names of clusters with their positions. */
function placeClusters(guide, legend) {
  const named = legend.entries.filter((entry) => entry.rank >= 0);
  return named.map((entry) => ({ entry, ...placeTitles(guide, entry.members), lines: breakName(entry.name) }));
}

/** Returns the names of subclusters with their positions and the clusters that contain them. */
function placeSubclusters(guide, clusters) {
  const members = guide.subclusterNames.map(() => []);
  guide.subclusters.forEach((subcluster, i) => subcluster >= 0 && members[subcluster].push(i));
  const parents = new Map(clusters.map((cluster) => [guide.clusters[cluster.entry.members[0]], cluster]));
  const subclusters = members.map((titles, id) => ({ titles, name: guide.subclusterNames[id], parent: parents.get(guide.subclusterParents[id]) }));
  return subclusters
    .filter(({ titles, name, parent }) => titles.length && name && parent)
    .map(({ titles, name, parent }) => ({ ...placeTitles(guide, titles), parent, count: titles.length, lines: breakName(name) }));
}

/** Splits a long name into two lines of similar length. */
function breakName(name) {
  const text = name.length > 46 ? `${name.slice(0, 45)}…` : name;
  if (text.length <= 18) return [text];
  const marks = [...text.matchAll(/[·,:/] /g)].map((match) => match.index + 1);
  const spaces = marks.length ? marks : [...text.matchAll(/ /g)].map((match) => match.index);
  if (!spaces.length) return [text];
  const middle = spaces.reduce((best, at) => (Math.abs(at - text.length / 2) < Math.abs(best - text.length / 2) ? at : best));
  return [text.slice(0, middle).replace(/ ?[·/]$/, ""), text.slice(middle + 1)];
}

/** Creates the overlay. A scene is {camera, ratio, colours, paint, levels, radii, hover, pinned, litEntry, mode, panels}. */
function createOverlay(canvas, guide, legends) {
  const context = canvas.getContext("2d");
  const clusters = placeClusters(guide, legends.cluster);
  const subclusters = placeSubclusters(guide, clusters);
  const biggest = clusters.length ? clusters[0].entry.count : 1;
  const widths = new Map(); // width of a text by font and text
  let occupied;
  let scene;
  let written; // titles with a label
  let ringed = 0; // number of rings in the last frame
  let looked = 0; // number of titles that the last frame examined
  let names = []; // labels of the last frame

  const measure = (text, font) => {
    const key = font + text;
    if (!widths.has(key)) {
      context.font = font;
      widths.set(key, context.measureText(text).width);
    }
    return widths.get(key);
  };

  const write = (text, x, y, font, align, colour, alpha, halo) => {
    context.font = font;
    context.textAlign = align;
    context.globalAlpha = alpha;
    context.lineWidth = halo;
    context.strokeStyle = scene.colours.ground;
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  };

  /** Returns the centre of a label, moved so that the label is inside the window. */
  const inside = (px, width, window) => Math.max(width / 2 + EDGE, Math.min(window - width / 2 - EDGE, px));

  const radius = (i) => scene.radii[i] * pointGrowth(scene.camera.zoom());

  /** Writes the label of a title right of its point or, if there is no free space, left, above or below. */
  const writeTitle = (i, { strong = false, force = false } = {}) => {
    if (written.has(i)) return;
    written.add(i);
    const { camera, colours } = scene;
    const full = guide.titles[i];
    const text = full.length > 44 ? `${[...full].slice(0, 42).join("")}…` : full;
    const font = `${strong ? 600 : 400} ${strong ? 13 : 12}px ${FONT}`;
    const width = measure(text, font);
    const px = camera.screenX(guide.x[i]);
    const py = camera.screenY(guide.y[i]);
    const gap = radius(i) + 5;
    const middle = inside(px, width, camera.width);
    const above = middle - width / 2;
    const places = [[px + gap, py], [px - gap - width, py], [above, py - gap - 6], [above, py + gap + 6]]; // left ends
    const [right, bottom] = [camera.width - EDGE - width, camera.height - 8];
    const isInside = ([x, y]) => x >= EDGE && x <= right && y >= 8 && y <= bottom;
    let place = places.find(([x, y]) => isInside([x, y]) && occupied.take(x - 2, y - 8, x + width + 2, y + 8));
    if (!place && force) place = places.find(isInside) ?? places[0];
    if (!place) return;
    const [left, y] = place;
    names.push({ text, left, top: y - 8, right: left + width, bottom: y + 8 });
    write(text, left, y, font, "left", strong ? colours.ink : colours.label, 1, 3.5);
  };

  /** Draws lines from a title to its neighbours; `strength` is the opacity factor. */
  const drawLines = (from, strength) => {
    const { camera, colours } = scene;
    const px = camera.screenX(guide.x[from]);
    const py = camera.screenY(guide.y[from]);
    context.strokeStyle = colours.accent;
    context.lineCap = "round";
    for (const { title, cosine } of guide.neighbours(from)) {
      context.globalAlpha = strength * (0.25 + 0.6 * Math.max(0, cosine));
      context.lineWidth = 0.75 + 1.25 * Math.max(0, cosine);
      const [dx, dy] = [camera.screenX(guide.x[title]) - px, camera.screenY(guide.y[title]) - py];
      const rim = Math.min(1, (radius(from) + 5) / Math.max(1, Math.hypot(dx, dy))); // the line starts at the rim of the point
      context.beginPath();
      context.moveTo(px + rim * dx, py + rim * dy);
      context.lineTo(px + dx, py + dy);
      context.stroke();
    }
  };

  const drawRing = (i, reach, width, colour) => {
    context.globalAlpha = 1;
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.beginPath();
    context.arc(scene.camera.screenX(guide.x[i]), scene.camera.screenY(guide.y[i]), radius(i) + reach, 0, 2 * Math.PI);
    context.stroke();
  };

  /** Draws a thin ring around each highlighted title that is new since the last run. */
  const drawNewRings = () => {
    const { camera, paint, colours } = scene;
    looked += guide.newTitles.length;
    const inView = guide.newTitles.filter((i) => {
      const [px, py] = [camera.screenX(guide.x[i]), camera.screenY(guide.y[i])];
      return paint.lit[i] && px > -8 && py > -8 && px < camera.width + 8 && py < camera.height + 8;
    });
    if (inView.length <= MAX_RINGS) for (const i of inView) drawRing(i, 1.5, 1.25, colours.accent);
    return inView.length <= MAX_RINGS ? inView.length : 0;
  };

  /** Returns the size of a cluster relative to the window: 1 if it fills the window. */
  const depth = (reach) => (reach * scene.camera.scale) / (0.4 * Math.min(scene.camera.width, scene.camera.height));

  /** Writes the name of a cluster at or near its position if there is free space. */
  const writeName = ({ x, y, lines }, size, alpha) => {
    const { camera, colours } = scene;
    const px = camera.screenX(x);
    const py = camera.screenY(y);
    if (alpha <= 0.05 || px < 0 || py < 0 || px > camera.width || py > camera.height) return;
    const font = `650 ${size}px ${FONT}`;
    const width = Math.max(...lines.map((line) => measure(line, font)));
    const height = size * 1.18 * lines.length;
    const middle = inside(px, width, camera.width);
    const [left, right] = [middle - width / 2, middle + width / 2];
    const free = (y) => occupied.take(left - 8, y - height / 2 - 5, right + 8, y + height / 2 + 5);
    const at = [py, py - height, py + height].find((y) => inside(y, height, camera.height) === y && free(y));
    if (at === undefined) return;
    names.push({ text: lines.join(" · "), left, top: at - height / 2, right, bottom: at + height / 2 });
    const line = (row) => at + (row - (lines.length - 1) / 2) * size * 1.18;
    lines.forEach((text, row) => write(text, middle, line(row), font, "center", colours.ink, alpha, 4));
  };

  const drawClusterNames = () => {
    const { camera, litEntry, mode } = scene;
    const maxNames = 36 * camera.zoom() ** 1.4; // of the largest clusters; more at a higher magnification
    for (const cluster of clusters) {
      const { entry, reach } = cluster;
      if (entry.rank >= maxNames && entry !== litEntry) break;
      const size = Math.round((11 + 5.5 * Math.sqrt(entry.count / biggest)) * 2) / 2;
      // If a cluster fills the window, its label is replaced by labels of subclusters and titles.
      const fadeOut = Math.min(1, Math.max(0, 1.7 - depth(reach)));
      writeName(cluster, size, fadeOut * (litEntry && !(mode === "cluster" && litEntry === entry) ? 0.35 : 1));
    }
    for (const subcluster of camera.zoom() > SUBCLUSTER_ZOOM ? subclusters : []) {
      const fadeIn = Math.min(1, Math.max(0, 2 * depth(subcluster.parent.reach) - 0.6)); // when the cluster fills half of the window
      const fadeOut = Math.min(1, Math.max(0, 1.7 - depth(subcluster.reach)));
      writeName(subcluster, 11.5, fadeIn * fadeOut * (litEntry && litEntry !== subcluster.parent.entry ? 0.35 : 1));
    }
  };

  /** Returns the highlighted titles in view, most aired first, or null if there are too many titles for labels. */
  const titlesInView = () => {
    const { camera, levels } = scene;
    const margin = 10;
    const inView = [];
    for (const i of levels.litNear(camera, margin)) {
      looked++;
      const px = camera.screenX(guide.x[i]);
      const py = camera.screenY(guide.y[i]);
      if (px < -margin || py < -margin || px > camera.width + margin || py > camera.height + margin) continue;
      inView.push(i);
      if (inView.length > MAX_TITLES_IN_VIEW) return null;
    }
    return inView.sort((a, b) => guide.airings[b] - guide.airings[a] || a - b);
  };

  return {
    /** The number of rings in the last frame. */
    ringed: () => ringed,
    /** The labels of the last frame in CSS pixels. */
    names: () => names,
    /** Work of the last frame: numbers of titles examined, labels written and rectangles tested. */
    work: () => ({ looked, names: names.length, rectangles: occupied.tested() }),
    resize(width, height, ratio) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    },
    draw(next) {
      scene = next;
      occupied = createOccupancy();
      looked = 0;
      names = [];
      written = new Set();
      for (const box of scene.panels) occupied.take(box.left, box.top, box.right, box.bottom, true);
      context.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
      context.clearRect(0, 0, scene.camera.width, scene.camera.height);
      context.textBaseline = "middle";
      context.lineJoin = "round";
      const { hover, pinned, colours } = scene;
      ringed = drawNewRings();
      const followed = hover >= 0 ? hover : pinned;
      if (pinned >= 0 && pinned !== followed) drawLines(pinned, 0.35);
      if (followed >= 0) drawLines(followed, 1);
      if (pinned >= 0) {
        drawRing(pinned, 2, 2, colours.ground);
        drawRing(pinned, 4, 2.5, colours.accent);
      }
      if (hover >= 0 && hover !== pinned) drawRing(hover, 2.5, 2, colours.ink);
      if (pinned >= 0) writeTitle(pinned, { strong: true, force: true });
      if (hover >= 0 && hover !== pinned) writeTitle(hover, { strong: true, force: true });
      if (followed >= 0 && scene.camera.zoom() > 1.6) for (const { title } of guide.neighbours(followed)) writeTitle(title);
      const inView = titlesInView();
      for (const i of inView ?? []) {
        const [px, py, reach] = [scene.camera.screenX(guide.x[i]), scene.camera.screenY(guide.y[i]), 0.7 * radius(i)];
        occupied.take(px - reach, py - reach, px + reach, py + reach, true); // labels do not cover other points
      }
      drawClusterNames();
      for (const i of (inView ?? []).slice(0, MAX_LABELLED)) writeTitle(i);
      context.globalAlpha = 1;
    },
  };
}
