// Colours: the legends of categories and of clusters, and the colours of all points.

// Twenty colours for both themes. Their distances in OKLab are large for normal vision, protanopia and deuteranopia, and
// their contrast with the background is at least 2.2 (light theme) and 3 (dark theme).
const PALETTE = [
  "#6f47cb", "#fa8c09", "#bf1f08", "#50b2ab", "#c877fa", "#256e70", "#a28255", "#837eb7", "#18c060", "#ea570c",
  "#a235a0", "#3a71ee", "#b09fdd", "#2c9187", "#795c3e", "#fe7fab", "#be2e66", "#db5e87", "#559004", "#0495da",
];
const GREYS = { light: { other: "#8d96a3", none: "#b9c0ca", lit: "#1d4fd7" }, dark: { other: "#7d8796", none: "#4d5666", lit: "#8fb4ff" } };

/**
 * Makes the legend of categories and the legend of clusters.
 *
 * An entry of a legend is {id, name, members, count, rank, colour}. The rank is by size; it is -1 for the entry of the
 * titles without category or cluster. A title has the colour of the category of its cluster if the title has this
 * category. Otherwise, it has the colour of its rarest category in the palette, which is the most specific one.
 */
function makeLegends(guide) {
  const byCategory = guide.categoryNames.map(() => []);
  const byCluster = guide.clusterNames.map(() => []);
  const uncategorised = [];
  const noise = [];
  const { offsets, values } = guide.categoriesOf.all();
  for (let i = 0; i < guide.count; i++) {
    for (let index = offsets[i]; index < offsets[i + 1]; index++) byCategory[values[index]].push(i);
    if (offsets[i] === offsets[i + 1]) uncategorised.push(i);
    (guide.clusters[i] < 0 ? noise : byCluster[guide.clusters[i]]).push(i);
  }
  const legends = {
    category: makeLegend(guide.categoryNames, byCategory, "no category", uncategorised),
    cluster: makeLegend(guide.clusterNames, byCluster, "in no cluster", noise, guide.clusterColours),
  };
  for (const legend of Object.values(legends)) {
    legend.entryOf = new Array(guide.count).fill(legend.none);
    // From the most frequent to the rarest in the palette; categories outside the palette do not override them.
    const coloured = legend.entries.filter((entry) => entry.rank >= 0 && entry.rank < PALETTE.length);
    const rest = legend.entries.filter((entry) => entry.rank >= PALETTE.length);
    for (const entry of [...rest.reverse(), ...coloured]) for (const i of entry.members) legend.entryOf[i] = entry;
  }
  const entryOfCategory = new Map(legends.category.entries.map((entry) => [entry.id, entry]));
  for (let i = 0; i < guide.count; i++) {
    const entry = entryOfCategory.get(guide.clusters[i] < 0 ? -1 : guide.clusterCategories[guide.clusters[i]]);
    if (!entry || entry.rank < 0 || entry.rank >= PALETTE.length) continue;
    for (let index = offsets[i]; index < offsets[i + 1]; index++) if (values[index] === entry.id) legends.category.entryOf[i] = entry;
  }
  legends.cluster.entryOfCluster = new Map(legends.cluster.entries.map((entry) => [entry.id, entry]));
  legends.category.entryOfName = new Map(legends.category.entries.filter((entry) => entry.rank >= 0).map((entry) => [entry.name, entry]));
  return legends;
}

function makeLegend(names, members, noneName, noneMembers, colours = null) {
  const entries = names
    .map((name, id) => ({ id, name, members: members[id], count: members[id].length, rank: 0 }))
    .filter((entry) => entry.count > 0)
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
  // `colour` is an index in the palette: the rank by size, or for clusters the colour on the previous map.
  entries.forEach((entry, rank) => Object.assign(entry, { rank, colour: colours ? colours[entry.id] : rank }));
  const none = { id: -1, name: noneName, members: noneMembers, count: noneMembers.length, rank: -1 };
  if (none.count) entries.push(none);
  return { entries, none };
}

/** Returns the colour of a legend entry as #rrggbb. Beyond the palette, clusters have other hues, and categories are grey. */
function colourOf(entry, mode, theme) {
  if (entry.rank < 0) return GREYS[theme].none;
  if (entry.colour < PALETTE.length) return PALETTE[entry.colour];
  if (mode === "category") return GREYS[theme].other;
  return hueToHex((entry.colour * 137.508) % 360, 0.3, 0.58); // golden angle
}

function hueToHex(hue, saturation, lightness) {
  const channel = (n) => {
    const k = (n + hue / 30) % 12;
    const value = lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(value * 255).toString(16).padStart(2, "0");
  };
  return `#${channel(0)}${channel(8)}${channel(4)}`;
}

function hexToBytes(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

/**
 * Computes the colours of all points and the order in which they are drawn.
 *
 * Returns {rgba, order, layers, lit}: rgba has 4 bytes per title, order has the titles in drawing order, layers has the
 * offsets of the layers in order, and lit is 1 for highlighted titles. Layers of faded and of grey points are drawn
 * first. Within a layer, the most aired titles are drawn first, because their larger points would cover small ones.
 */
function paintPoints(guide, legend, mode, theme, litEntry, mask = null) {
  const pixels = new Uint32Array(guide.count); // r, g, b, alpha from the lowest byte on
  const lit = new Uint8Array(guide.count).fill(litEntry ? 0 : 1);
  if (litEntry) for (const i of litEntry.members) lit[i] = 1;
  if (mask) for (let i = 0; i < guide.count; i++) lit[i] &= mask[i];
  const pixel = (hex) => hexToBytes(hex).reduce((sum, byte, place) => sum | (byte << (8 * place)), 0);
  const pixelOf = new Map();
  const paint = (entry) => {
    if (!pixelOf.has(entry)) pixelOf.set(entry, pixel(colourOf(entry, mode, theme)));
    return pixelOf.get(entry);
  };
  // All titles of a highlighted entry have its colour, or the accent colour if it is not in the palette.
  const hasColour = litEntry && litEntry.rank >= 0 && (mode === "cluster" || litEntry.rank < PALETTE.length);
  const litPaint = litEntry && (hasColour ? paint(litEntry) : pixel(GREYS[theme].lit));
  const layer = new Uint8Array(guide.count);
  const counts = [0, 0, 0, 0];
  for (let i = 0; i < guide.count; i++) {
    const entry = legend.entryOf[i];
    const isGrey = entry.rank < 0;
    const alpha = !lit[i] ? 30 : litEntry ? 240 : isGrey ? 130 : 220;
    pixels[i] = (litEntry && lit[i] ? litPaint : paint(entry)) | (alpha << 24);
    layer[i] = (lit[i] ? 2 : 0) + (isGrey ? 0 : 1);
    counts[layer[i]]++;
  }
  const layers = [0];
  for (const count of counts) layers.push(layers.at(-1) + count);
  const next = layers.slice();
  const order = new Uint32Array(guide.count);
  for (const i of guide.byAirings()) order[next[layer[i]]++] = i;
  return { rgba: new Uint8Array(pixels.buffer), order, layers, lit };
}
