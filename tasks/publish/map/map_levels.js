// Level of detail: selects the titles that a frame draws, and omits titles out of view and titles covered by others.

const MAX_POINTS = 50_000; // maximum number of points of a frame
const MARGIN = 30; // CSS pixels; no point has a larger radius
const SIDE = 192; // cells per side of the map: a cell has about four pixels on the whole map, and cells < MAX_POINTS

/**
 * Stores the titles of each cell of a grid. Call arrange(paint) first, and whenever the paint changes.
 *
 * At most the same number of titles is drawn in every cell: highlighted titles first, then coloured titles, then the most
 * aired ones. The remaining titles are covered by these titles, or become visible when the map is zoomed.
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

  /** Returns the non-empty cells in the window plus a margin in pixels. */
  const cellsNear = (camera, margin) => {
    const [left, right] = [place(camera.worldX(-margin)), place(camera.worldX(camera.width + margin))];
    const [bottom, top] = [place(camera.worldY(camera.height + margin)), place(camera.worldY(-margin))];
    const cellsInView = [];
    for (let row = bottom; row <= top; row++) {
      for (let cell = row * SIDE + left; cell <= row * SIDE + right; cell++) if (offsets[cell] < offsets[cell + 1]) cellsInView.push(cell);
    }
    return cellsInView;
  };

  /** Returns the maximum number of titles per cell with which MAX_POINTS is observed, and the number of drawn titles. */
  const limitPerCell = (cellsInView) => {
    const drawnCount = (limit) => cellsInView.reduce((sum, cell) => sum + Math.min(limit, offsets[cell + 1] - offsets[cell]), 0);
    let [low, high] = [1, guide.count];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (drawnCount(middle) <= MAX_POINTS) low = middle;
      else high = middle - 1;
    }
    return [low, drawnCount(low)];
  };

  return {
    arrange(next) {
      paint = next;
      last = { view: "", chosen: null };
      const { order, layers } = paint;
      const free = offsets.slice(0, -1);
      for (let layer = layers.length - 2; layer >= 0; layer--) {
        for (let index = layers[layer]; index < layers[layer + 1]; index++) titles[free[cells[order[index]]]++] = order[index];
      }
      for (let index = 0; index < order.length; index++) rank[order[index]] = index;
    },
    /** Returns the titles of a frame in drawing order; the same array as before if nothing has changed. */
    choose(camera) {
      if (guide.count <= MAX_POINTS) return paint.order;
      const view = [camera.x, camera.y, camera.scale, camera.width, camera.height].join(" ");
      if (view === last.view) return last.chosen;
      const cellsInView = cellsNear(camera, MARGIN);
      const [limit, count] = limitPerCell(cellsInView);
      const ranks = new Uint32Array(count);
      let size = 0;
      for (const cell of cellsInView) {
        const end = Math.min(offsets[cell + 1], offsets[cell] + limit);
        for (let index = offsets[cell]; index < end; index++) ranks[size++] = rank[titles[index]];
      }
      last = { view, chosen: ranks.sort().map((position) => paint.order[position]) };
      return last.chosen;
    },
    /** Yields the highlighted titles of the cells in the window plus a margin in pixels. */
    *litNear(camera, margin) {
      for (const cell of cellsNear(camera, margin)) {
        for (let index = offsets[cell]; index < offsets[cell + 1] && paint.lit[titles[index]]; index++) yield titles[index];
      }
    },
  };
}
