// The camera: maps world coordinates (y up, about -1 to 1) to CSS pixels, zooms about a point, and animates.

/**
 * Creates the camera, which shows a part of the map in the window.
 *
 * (x, y) is the world point in the centre of the window, and scale is in CSS pixels per world unit. `home` is the scale
 * at which the map fills the window. `free` is the part of the window that no panel covers; movements centre on it.
 */
function createCamera(guide) {
  const camera = { x: 0, y: 0, scale: 300, width: 1, height: 1, home: 300, free: { left: 0, top: 0, right: 1, bottom: 1 } };
  let flight = null;

  // The bounds omit the outermost half per cent of the titles on each side, so that a few outliers do not shrink the map.
  const span = (values) => {
    const step = Math.ceil(values.length / 100_000); // a sample is sufficient
    const sorted = (step > 1 ? values.filter((_, i) => i % step === 0) : values.slice()).sort();
    const omitted = Math.floor(sorted.length / 200);
    return sorted.length ? [sorted[omitted], sorted[sorted.length - 1 - omitted]] : [-1, 1];
  };
  const [left, right] = span(guide.x);
  const [bottom, top] = span(guide.y);
  const bounds = { left, right, bottom, top };

  const freeWidth = () => Math.max(80, camera.free.right - camera.free.left);
  const freeHeight = () => Math.max(80, camera.free.bottom - camera.free.top);
  const clampScale = (scale) => Math.min(camera.home * Math.max(24, 2 * Math.sqrt(guide.count)), Math.max(camera.home * 0.6, scale));
  /** Returns the camera position with the world point (x, y) in the centre of the free area. */
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

  /** Sets the size of the window and the free area, without changing the magnification relative to the whole map. */
  camera.resize = (width, height, free) => {
    const zoom = camera.zoom();
    Object.assign(camera, { width, height, free });
    const spanX = Math.max(0.05, bounds.right - bounds.left);
    const spanY = Math.max(0.05, bounds.top - bounds.bottom);
    camera.home = Math.min((freeWidth() - 72) / spanX, (freeHeight() - 72) / spanY);
    camera.scale = clampScale(camera.home * zoom);
  };

  /** Centres (x, y), limited to the bounds plus a margin, so that outliers can be reached and the map stays in view. */
  const lookAt = (x, y) => {
    flight = null;
    const margin = Math.max(0.2, (0.25 * Math.max(camera.width, camera.height)) / camera.scale);
    camera.x = Math.min(bounds.right + margin, Math.max(bounds.left - margin, x));
    camera.y = Math.min(bounds.top + margin, Math.max(bounds.bottom - margin, y));
  };

  camera.panBy = (dx, dy) => lookAt(camera.x - dx / camera.scale, camera.y + dy / camera.scale);

  /** Shows a centre and a magnification from a link, which may be any numbers. */
  camera.show = (x, y, zoom) => {
    camera.scale = clampScale(camera.home * zoom);
    lookAt(x, y);
  };

  /** Zooms by a factor; the world point at the pixel (px, py) does not move. */
  camera.zoomAt = (px, py, factor) => {
    flight = null;
    const x = camera.worldX(px);
    const y = camera.worldY(py);
    camera.scale = clampScale(camera.scale * factor);
    camera.x = x - (px - camera.width / 2) / camera.scale;
    camera.y = y + (py - camera.height / 2) / camera.scale;
  };

  /** Returns the camera position that shows the whole map. */
  camera.whole = () => aim((bounds.left + bounds.right) / 2, (bounds.bottom + bounds.top) / 2, camera.home);

  /** Returns the scale at which about forty points around (x, y) fill the free area. */
  camera.closeScale = (x, y) => {
    const squares = guide.x.map((other, i) => (other - x) ** 2 + (guide.y[i] - y) ** 2).sort();
    const radius = Math.sqrt(squares[Math.min(40, guide.count - 1)] || 0.01);
    return clampScale(Math.max(camera.home * 2.5, Math.min(freeWidth(), freeHeight()) / 2.6 / radius));
  };

  camera.flyTo = (x, y, scale, milliseconds) => camera.move(aim(x, y, clampScale(scale)), milliseconds);

  /**
   * Moves the camera to a goal with constant perceived speed. On the way to a distant goal, it zooms out.
   * Reference: J. van Wijk and W. Nuij, "Smooth and efficient zooming and panning", 2003, section 4.
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

  /** Advances the animation to the time of the frame, and returns whether the animation continues. */
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
