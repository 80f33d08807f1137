// The camera: maps world coordinates (y up, about -1 to 1) to CSS pixels, zooms about a point, and animates.

/**
 * A camera over the points.
 *
 * (x, y) is the world point in the centre of the window, scale is in CSS pixels per world unit. `free` is the part of
 * the window that is not covered by panels; movements are relative to its centre.
 */
function createCamera(guide) {
  const camera = { x: 0, y: 0, scale: 300, width: 1, height: 1, home: 300, free: { left: 0, top: 0, right: 1, bottom: 1 } };
  let flight = null;

  // The whole view omits the outermost half per cent on each side, so that a few outliers do not shrink the rest.
  const span = (values) => {
    const step = Math.ceil(values.length / 100_000); // a sample is sufficient
    const sorted = (step > 1 ? values.filter((_, i) => i % step === 0) : values.slice()).sort();
    const cut = Math.floor(sorted.length / 200);
    return sorted.length ? [sorted[cut], sorted[sorted.length - 1 - cut]] : [-1, 1];
  };
  const [left, right] = span(guide.x);
  const [bottom, top] = span(guide.y);
  const bounds = { left, right, bottom, top };

  const freeWidth = () => Math.max(80, camera.free.right - camera.free.left);
  const freeHeight = () => Math.max(80, camera.free.bottom - camera.free.top);
  const clampScale = (scale) => Math.min(camera.home * Math.max(24, 2 * Math.sqrt(guide.count)), Math.max(camera.home * 0.6, scale));
  /** The camera with world (x, y) in the centre of the free area. */
  const aim = (x, y, scale) => ({
    x: x - ((camera.free.left + camera.free.right) / 2 - camera.width / 2) / scale,
    y: y + ((camera.free.top + camera.free.bottom) / 2 - camera.height / 2) / scale,
    scale,
  });

  camera.screenX = (x) => (x - camera.x) * camera.scale + camera.width / 2;
  camera.screenY = (y) => (camera.y - y) * camera.scale + camera.height / 2;
  camera.worldX = (px) => (px - camera.width / 2) / camera.scale + camera.x;
  camera.worldY = (py) => camera.y - (py - camera.height / 2) / camera.scale;
  camera.zoom = () => camera.scale / camera.home;
  camera.flying = () => flight !== null;

  /** Updates the sizes of window and panels; keeps the magnification relative to the whole map. */
  camera.resize = (width, height, free) => {
    const zoom = camera.zoom();
    Object.assign(camera, { width, height, free });
    const spanX = Math.max(0.05, bounds.right - bounds.left);
    const spanY = Math.max(0.05, bounds.top - bounds.bottom);
    camera.home = Math.min((freeWidth() - 72) / spanX, (freeHeight() - 72) / spanY);
    camera.scale = clampScale(camera.home * zoom);
  };

  /** Centres (x, y), limited to the map plus a margin, so that outliers stay accessible and the map cannot be lost. */
  const lookAt = (x, y) => {
    flight = null;
    const slack = Math.max(0.2, (0.25 * Math.max(camera.width, camera.height)) / camera.scale);
    camera.x = Math.min(bounds.right + slack, Math.max(bounds.left - slack, x));
    camera.y = Math.min(bounds.top + slack, Math.max(bounds.bottom - slack, y));
  };

  camera.panBy = (dx, dy) => lookAt(camera.x - dx / camera.scale, camera.y + dy / camera.scale);

  /** Shows the centre and magnification of a link, which may be any numbers. */
  camera.show = (x, y, zoom) => {
    camera.scale = clampScale(camera.home * zoom);
    lookAt(x, y);
  };

  camera.zoomAt = (px, py, factor) => {
    flight = null;
    const x = camera.worldX(px);
    const y = camera.worldY(py);
    camera.scale = clampScale(camera.scale * factor);
    camera.x = x - (px - camera.width / 2) / camera.scale;
    camera.y = y + (py - camera.height / 2) / camera.scale;
  };

  camera.whole = () => aim((bounds.left + bounds.right) / 2, (bounds.bottom + bounds.top) / 2, camera.home);

  /** A magnification at which about forty points around (x, y) fill the view. */
  camera.closeScale = (x, y) => {
    const squares = guide.x.map((other, i) => (other - x) ** 2 + (guide.y[i] - y) ** 2).sort();
    const radius = Math.sqrt(squares[Math.min(40, guide.count - 1)] || 0.01);
    return clampScale(Math.max(camera.home * 2.5, Math.min(freeWidth(), freeHeight()) / 2.6 / radius));
  };

  camera.flyTo = (x, y, scale, milliseconds) => camera.move(aim(x, y, clampScale(scale)), milliseconds);

  /**
   * Moves with constant perceived speed; zooms out on the way to a distant goal.
   * After J. van Wijk and W. Nuij, "Smooth and efficient zooming and panning", 2003, section 4.
   */
  camera.move = (goal, milliseconds) => {
    if (!milliseconds) {
      flight = null;
      Object.assign(camera, goal);
      return;
    }
    const rho = 1.25;
    const w0 = camera.width / camera.scale;
    const w1 = camera.width / goal.scale;
    const from = { x: camera.x, y: camera.y };
    const dx = goal.x - from.x;
    const dy = goal.y - from.y;
    const distance = Math.hypot(dx, dy);
    let path;
    if (distance < 1e-6 * w0) {
      path = (t) => ({ u: t, w: w0 * (w1 / w0) ** t });
    } else {
      const b = (w, sign) => (w1 * w1 - w0 * w0 + sign * rho ** 4 * distance * distance) / (2 * w * rho * rho * distance);
      const r0 = Math.asinh(-b(w0, 1));
      const r1 = Math.asinh(-b(w1, -1));
      const length = (r1 - r0) / rho;
      path = (t) => {
        const r = rho * t * length + r0;
        return {
          u: ((w0 / (rho * rho)) * (Math.cosh(r0) * Math.tanh(r) - Math.sinh(r0))) / distance,
          w: (w0 * Math.cosh(r0)) / Math.cosh(r),
        };
      };
    }
    flight = { started: null, milliseconds, goal, at: (t) => {
      const { u, w } = path(t);
      return { x: from.x + u * dx, y: from.y + u * dy, scale: camera.width / w };
    } };
  };

  /** Advances the animation to the time of this frame; true while it continues. */
  camera.step = (now) => {
    if (!flight) return false;
    flight.started ??= now;
    const t = Math.min(1, (now - flight.started) / flight.milliseconds);
    const eased = t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2;
    Object.assign(camera, t < 1 ? flight.at(eased) : flight.goal);
    if (t >= 1) flight = null;
    return flight !== null;
  };

  return camera;
}
