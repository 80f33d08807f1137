// Level of detail: selects the titles that a frame draws, without invisible and covered ones.

const MAX_POINTS = 50_000; // per frame
const MARGIN = 30; // CSS pixels: no point is larger
const SIDE = 192; // cells per side: about four pixels each on the whole map, and fewer cells than MAX_POINTS

/**
 * Titles by grid cell. Call arrange(paint) first and whenever the paint changes.
 *
 * All cells have the same maximum of titles: highlighted titles first, then coloured ones, then the most aired. The
 * remaining titles are covered by these, or become visible when the map is zoomed.
 */
function createLevels(guide) {
  const place = (value) => Math.min(SIDE - 1, Math.max(0, Math.floor(((value + 1) / 2) * SIDE)));
  const cells = new Uint16Array(guide.count);
  const offsets = new Uint32Array(SIDE * SIDE + 1);
  for (let i = 0; i < guide.count; i++) offsets[(cells[i] = place(guide.y[i]) * SIDE + place(guide.x[i])) + 1]++;
  for (let cell = 0; cell < SIDE * SIDE; cell++) offsets[cell + 1] += offsets[cell];
  const titles = new Uint32Array(guide.count); // by cell, in order of priority
  const rank = new Uint32Array(guide.count); // position of a title in drawing order
  let paint = null;
  let last = { view: "", chosen: null };

  /** Non-empty cells within `margin` pixels of the window. */
  const cellsNear = (camera, margin) => {
    const [left, right] = [place(camera.worldX(-margin)), place(camera.worldX(camera.width + margin))];
    const [bottom, top] = [place(camera.worldY(camera.height + margin)), place(camera.worldY(-margin))];
    const cellsInView = [];
    for (let row = bottom; row <= top; row++) {
      for (let cell = row * SIDE + left; cell <= row * SIDE + right; cell++) if (offsets[cell] < offsets[cell + 1]) cellsInView.push(cell);
    }
    return cellsInView;
  };

  /** The maximum of titles per cell, and the number of drawn titles. */
  const share = (visible) => {
    const drawn = (most) => visible.reduce((sum, cell) => sum + Math.min(most, offsets[cell + 1] - offsets[cell]), 0);
    let [low, high] = [1, guide.count];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (drawn(middle) <= MAX_POINTS) low = middle;
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
    /** The titles of a frame in drawing order; the same array if nothing has changed. */
    choose(camera) {
      if (guide.count <= MAX_POINTS) return paint.order;
      const view = [camera.x, camera.y, camera.scale, camera.width, camera.height].join(" ");
      if (view === last.view) return last.chosen;
      const visible = cellsNear(camera, MARGIN);
      const [most, count] = share(visible);
      const ranks = new Uint32Array(count);
      let size = 0;
      for (const cell of visible) {
        const end = Math.min(offsets[cell + 1], offsets[cell] + most);
        for (let at = offsets[cell]; at < end; at++) ranks[size++] = rank[titles[at]];
      }
      last = { view, chosen: ranks.sort().map((position) => paint.order[position]) };
      return last.chosen;
    },
    /** Highlighted titles of the cells within `margin` pixels of the window. */
    *litNear(camera, margin) {
      for (const cell of cellsNear(camera, margin)) {
        for (let at = offsets[cell]; at < offsets[cell + 1] && paint.lit[titles[at]]; at++) yield titles[at];
      }
    },
  };
}
