// Levels of detail: which titles a frame draws. What is out of view is not, nor what a crowd would cover.

const MOST_POINTS = 50_000; // of a frame
const MARGIN = 30; // CSS pixels: no point is larger
const SIDE = 192; // cells along the map's side: some four pixels each in the whole view, and fewer cells than MOST_POINTS

/**
 * Titles by their cells. arrange(paint) comes before the others and whenever the paint changes.
 *
 * A crowded cell draws as many titles as every other one may, lit ones first, then those with a colour, then the most
 * aired; what is left out would lie below these, or come into sight from nearer.
 */
function createLevels(guide) {
  const place = (value) => Math.min(SIDE - 1, Math.max(0, Math.floor(((value + 1) / 2) * SIDE)));
  const cells = new Uint16Array(guide.count);
  const offsets = new Uint32Array(SIDE * SIDE + 1);
  for (let i = 0; i < guide.count; i++) offsets[(cells[i] = place(guide.y[i]) * SIDE + place(guide.x[i])) + 1]++;
  for (let cell = 0; cell < SIDE * SIDE; cell++) offsets[cell + 1] += offsets[cell];
  const titles = new Uint32Array(guide.count); // those of a cell from its offset on, what it draws first before the rest
  const rank = new Uint32Array(guide.count); // of a title in drawing order
  let paint = null;
  let last = { view: "", chosen: null };

  /** Cells that hold titles within so many pixels of the window. */
  const cellsNear = (camera, margin) => {
    const [left, right] = [place(camera.worldX(-margin)), place(camera.worldX(camera.width + margin))];
    const [bottom, top] = [place(camera.worldY(camera.height + margin)), place(camera.worldY(-margin))];
    const found = [];
    for (let row = bottom; row <= top; row++) {
      for (let cell = row * SIDE + left; cell <= row * SIDE + right; cell++) if (offsets[cell] < offsets[cell + 1]) found.push(cell);
    }
    return found;
  };

  /** The most titles that each of some cells may draw. */
  const share = (found) => {
    const drawn = (most) => found.reduce((sum, cell) => sum + Math.min(most, offsets[cell + 1] - offsets[cell]), 0);
    let [low, high] = [1, guide.count];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (drawn(middle) <= MOST_POINTS) low = middle;
      else high = middle - 1;
    }
    return [low, drawn(low)];
  };

  return {
    arrange(next) {
      paint = next;
      last = { view: "", chosen: null };
      const { order, layers } = paint;
      const free = offsets.slice(0, -1);
      for (let layer = layers.length - 2; layer >= 0; layer--) {
        for (let at = layers[layer]; at < layers[layer + 1]; at++) titles[free[cells[order[at]]]++] = order[at];
      }
      for (let at = 0; at < order.length; at++) rank[order[at]] = at;
    },
    /** The titles that a frame draws, in drawing order; the same array as before where nothing changed. */
    choose(camera) {
      if (guide.count <= MOST_POINTS) return paint.order;
      const view = [camera.x, camera.y, camera.scale, camera.width, camera.height].join(" ");
      if (view === last.view) return last.chosen;
      const found = cellsNear(camera, MARGIN);
      const [most, count] = share(found);
      const ranks = new Uint32Array(count);
      let size = 0;
      for (const cell of found) {
        const end = Math.min(offsets[cell + 1], offsets[cell] + most);
        for (let at = offsets[cell]; at < end; at++) ranks[size++] = rank[titles[at]];
      }
      last = { view, chosen: ranks.sort().map((own) => paint.order[own]) };
      return last.chosen;
    },
    /** Lit titles of the cells within so many pixels of the window. */
    *litNear(camera, margin) {
      for (const cell of cellsNear(camera, margin)) {
        for (let at = offsets[cell]; at < offsets[cell + 1] && paint.lit[titles[at]]; at++) yield titles[at];
      }
    },
  };
}
