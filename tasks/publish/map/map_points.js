// Draws all points with one call of WebGL; without WebGL, draws sprites on a 2D canvas.

const VERTEX_SHADER = `
attribute vec2 position;
attribute float radius;
attribute vec4 colour;
uniform vec2 eye;
uniform vec2 stretch;
uniform float growth;
uniform float pixels;
varying vec4 shade;
varying float size;
void main() {
  gl_Position = vec4((position - eye) * stretch, 0.0, 1.0);
  size = 2.0 * radius * growth * pixels + 2.0;
  gl_PointSize = size;
  shade = colour;
}`;

// Draws a disc with a soft edge. Its rim is mixed with the background, which separates overlapping points.
const FRAGMENT_SHADER = `
precision mediump float;
varying vec4 shade;
varying float size;
uniform vec3 ground;
void main() {
  float away = length(gl_PointCoord - 0.5) * size;
  float edge = size * 0.5 - 1.0;
  float cover = 1.0 - smoothstep(edge - 0.6, edge + 0.6, away);
  float rim = smoothstep(edge - 1.6, edge - 0.6, away) * 0.45 * clamp((edge - 2.5) / 3.0, 0.0, 1.0);
  float alpha = shade.a * cover;
  gl_FragColor = vec4(mix(shade.rgb, ground, rim) * alpha, alpha);
}`;

/** Returns the radii of points in CSS pixels on the whole map. They grow with log airings and shrink on a crowded map. */
function pointRadii(guide, width, height) {
  const spacing = Math.sqrt((width * height) / Math.max(1, guide.count));
  const base = Math.min(4.2, Math.max(1.3, spacing * 0.2));
  const radii = new Float32Array(guide.count);
  for (let i = 0; i < guide.count; i++) radii[i] = base * (0.8 + 0.42 * Math.log10(1 + guide.airings[i]));
  return radii;
}

/** Returns the factor by which radii grow at a magnification. */
function pointGrowth(zoom) {
  return Math.min(2.6, Math.max(0.8, zoom ** 0.28));
}

/**
 * Adds a canvas for the points to a host element.
 *
 * Returns {kind, load(guide, radii, paint), draw(camera, ratio, ground, titles), drawn(), resize(width, height, ratio)}.
 * draw() draws the titles in their order, and drawn() returns their number.
 */
function createPointLayer(host, redraw) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  const gl = canvas.getContext("webgl", { alpha: true, antialias: false, premultipliedAlpha: true, failIfMajorPerformanceCaveat: false });
  const layer = gl ? createGlLayer(canvas, gl, redraw) : createPlainLayer(canvas);
  host.append(canvas);
  layer.resize = (width, height, ratio) => {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  };
  return layer;
}

function createGlLayer(canvas, gl, redraw) {
  const FLOATS = 4; // x, y, radius, four colour bytes
  let points = null;
  let sent = null; // titles in the vertex buffer
  let vertices = new Float32Array(0);
  let uniforms = null;

  const start = () => {
    const program = gl.createProgram();
    for (const [type, source] of [[gl.VERTEX_SHADER, VERTEX_SHADER], [gl.FRAGMENT_SHADER, FRAGMENT_SHADER]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    const fields = [["position", 2, gl.FLOAT, false, 0], ["radius", 1, gl.FLOAT, false, 8], ["colour", 4, gl.UNSIGNED_BYTE, true, 12]];
    for (const [name, size, type, normalised, offset] of fields) {
      const at = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, size, type, normalised, 4 * FLOATS, offset);
    }
    uniforms = Object.fromEntries(["eye", "stretch", "growth", "pixels", "ground"].map((name) => [name, gl.getUniformLocation(program, name)]));
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.clearColor(0, 0, 0, 0);
    sent = null;
  };
  start();
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => {
    start();
    redraw();
  });

  const send = (titles) => {
    const { guide, radii, pixels } = points;
    if (vertices.length < titles.length * FLOATS) vertices = new Float32Array(titles.length * FLOATS);
    const words = new Uint32Array(vertices.buffer);
    for (let row = 0; row < titles.length; row++) {
      const [title, at] = [titles[row], row * FLOATS];
      vertices[at] = guide.x[title];
      vertices[at + 1] = guide.y[title];
      vertices[at + 2] = radii[title];
      words[at + 3] = pixels[title];
    }
    gl.bufferData(gl.ARRAY_BUFFER, vertices.subarray(0, titles.length * FLOATS), gl.DYNAMIC_DRAW);
    sent = titles;
  };

  return {
    kind: "webgl",
    drawn: () => sent?.length ?? 0, // 0 after a change of colours, until the next frame
    load(guide, radii, paint) {
      points = { guide, radii, pixels: new Uint32Array(paint.rgba.buffer) };
      sent = null;
    },
    draw(camera, ratio, ground, titles) {
      if (titles !== sent) send(titles);
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform2f(uniforms.eye, camera.x, camera.y);
      gl.uniform2f(uniforms.stretch, (2 * camera.scale) / camera.width, (2 * camera.scale) / camera.height);
      gl.uniform1f(uniforms.growth, pointGrowth(camera.zoom()));
      gl.uniform1f(uniforms.pixels, ratio);
      gl.uniform3fv(uniforms.ground, hexToBytes(ground).map((value) => value / 255));
      gl.drawArrays(gl.POINTS, 0, titles.length);
    },
  };
}

function createPlainLayer(canvas) {
  const context = canvas.getContext("2d");
  const sprites = new Map(); // bitmap by colour and size; copying is several times faster than drawing an arc
  let points = null;
  let drawn = 0;

  const sprite = (rgba, radius, ratio, ground) => {
    const size = Math.max(1, Math.round(radius * ratio * 2) / 2);
    const key = rgba * 256 + size; // sizes stay below 256
    let bitmap = sprites.get(key);
    if (!bitmap) {
      if (sprites.size > 3000) sprites.clear();
      const sheet = new OffscreenCanvas(Math.ceil(2 * size) + 2, Math.ceil(2 * size) + 2);
      const pen = sheet.getContext("2d");
      const middle = sheet.width / 2;
      const bytes = [rgba >>> 24, (rgba >>> 16) & 255, (rgba >>> 8) & 255];
      pen.globalAlpha = (rgba & 255) / 255;
      const mix = 0.45 * Math.min(1, Math.max(0, (size - 2.5) / 3));
      const rim = hexToBytes(ground).map((value, i) => Math.round(value * mix + bytes[i] * (1 - mix)));
      for (const [colour, reach] of [[rim, size], [bytes, Math.max(0.5, size - 0.8)]]) {
        pen.fillStyle = `rgb(${colour.join(",")})`;
        pen.beginPath();
        pen.arc(middle, middle, reach, 0, 2 * Math.PI);
        pen.fill();
      }
      bitmap = sheet.transferToImageBitmap();
      sprites.set(key, bitmap);
    }
    return bitmap;
  };

  return {
    kind: "canvas",
    drawn: () => drawn,
    load(guide, radii, paint) {
      sprites.clear();
      points = { guide, radii, rgba: paint.rgba };
    },
    draw(camera, ratio, ground, titles) {
      context.clearRect(0, 0, canvas.width, canvas.height);
      const growth = pointGrowth(camera.zoom());
      const { guide, radii, rgba } = points;
      const colour = (i) => ((rgba[4 * i] << 24) | (rgba[4 * i + 1] << 16) | (rgba[4 * i + 2] << 8) | rgba[4 * i + 3]) >>> 0;
      drawn = 0;
      for (const title of titles) {
        const px = camera.screenX(guide.x[title]) * ratio;
        const py = camera.screenY(guide.y[title]) * ratio;
        if (px < -20 || py < -20 || px > canvas.width + 20 || py > canvas.height + 20) continue;
        const image = sprite(colour(title), radii[title] * growth, ratio, ground);
        drawn++;
        context.drawImage(image, Math.round(px - image.width / 2), Math.round(py - image.height / 2));
      }
    },
  };
}
