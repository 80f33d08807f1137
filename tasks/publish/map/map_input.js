// Input: drag, wheel, pinch, hover, click and keys.

/**
 * Returns the title at the pixel (px, py), or -1: the title with the nearest disc, at most `slack` pixels away. A faded
 * title is returned only if there is no highlighted one.
 */
function pickTitle(scene, guide, px, py, slack) {
  const { camera, radii, paint } = scene;
  const growth = pointGrowth(camera.zoom());
  const best = [-1, -1]; // nearest highlighted title, nearest faded title
  const least = [slack, slack];
  for (let i = 0; i < guide.count; i++) {
    const dx = camera.screenX(guide.x[i]) - px;
    if (dx > 40 || dx < -40) continue;
    const away = Math.hypot(dx, camera.screenY(guide.y[i]) - py) - radii[i] * growth;
    const layer = paint.lit[i] ? 0 : 1;
    // If (px, py) is inside several discs, the disc whose centre is nearest relative to its radius is selected.
    const distance = away < 0 ? away / (radii[i] * growth) : away;
    if (distance < least[layer]) {
      least[layer] = distance;
      best[layer] = i;
    }
  }
  return best[0] >= 0 ? best[0] : best[1];
}

/** Handles the pointer events of the surface. app is {camera, scene(), guide, hover(i, px, py), select(i), redraw()}. */
function wirePointers(surface, app) {
  const pointers = new Map();
  let moved = 0;
  let pinch = null;
  const place = (event) => {
    const box = surface.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const spread = () => {
    const [a, b] = [...pointers.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.max(1, Math.hypot(a.x - b.x, a.y - b.y)) };
  };

  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    surface.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    if (pointers.size === 1) moved = 0;
    pinch = pointers.size === 2 ? spread() : null;
  });

  surface.addEventListener("pointermove", (event) => {
    const at = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") app.hover(pickTitle(app.scene(), app.guide, at.x, at.y, 7), event.clientX, event.clientY);
      return;
    }
    pointers.set(event.pointerId, at);
    moved += Math.hypot(at.x - before.x, at.y - before.y);
    if (pointers.size === 2 && pinch) {
      const next = spread();
      app.camera.panBy(next.x - pinch.x, next.y - pinch.y);
      app.camera.zoomAt(next.x, next.y, next.apart / pinch.apart);
      pinch = next;
      moved = Infinity;
    } else if (pointers.size === 1 && moved > 3) {
      app.hover(-1);
      surface.classList.add("dragging");
      app.camera.panBy(at.x - before.x, at.y - before.y);
    }
    app.redraw();
  });

  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    pinch = null;
    surface.classList.remove("dragging");
    if (event.type === "pointerup" && pointers.size === 0 && moved < (event.pointerType === "touch" ? 12 : 4)) {
      const at = place(event);
      app.hover(-1);
      app.select(pickTitle(app.scene(), app.guide, at.x, at.y, event.pointerType === "touch" ? 16 : 7));
    }
  };
  surface.addEventListener("pointerup", release);
  surface.addEventListener("pointercancel", release);
  surface.addEventListener("pointerleave", () => app.hover(-1));

  surface.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
      const turn = Math.max(-160, Math.min(160, event.deltaY * lines));
      const at = place(event);
      app.camera.zoomAt(at.x, at.y, Math.exp(-turn * (event.ctrlKey ? 0.012 : 0.0022))); // ctrl: a pinch on a touch pad
      app.hover(-1);
      app.redraw();
    },
    { passive: false },
  );
}

/** Handles keys, except in text fields. */
function wireKeys(app) {
  const step = 90;
  const zoom = (factor) => app.zoomMiddle(factor);
  const keys = {
    "+": () => zoom(1.5),
    "=": () => zoom(1.5),
    "-": () => zoom(1 / 1.5),
    "_": () => zoom(1 / 1.5),
    0: () => app.showAll(),
    ArrowLeft: () => app.camera.panBy(step, 0),
    ArrowRight: () => app.camera.panBy(-step, 0),
    ArrowUp: () => app.camera.panBy(0, step),
    ArrowDown: () => app.camera.panBy(0, -step),
    "/": () => app.focusSearch(),
    "?": () => app.help(),
    Escape: () => app.clear(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const target = event.target;
    if (target instanceof HTMLSelectElement) return;
    if (target instanceof HTMLInputElement && (target.type !== "radio" || event.key.startsWith("Arrow"))) return;
    if (event.key.startsWith("Arrow") && target.closest?.(".scrolls")) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    app.redraw();
  });
}
