"use strict";
// Comparing: a range input over two pictures moves the border between them.
for (const box of document.querySelectorAll(".compare")) {
  const input = box.querySelector("input");
  const move = () => box.style.setProperty("--at", `${input.value}%`);
  input.addEventListener("input", move);
  move();
}

const bytes = (id) => Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (c) => c.charCodeAt(0));
const hero = document.querySelector(".hero");
if (hero) {
  const { width, height, fx, fy, cx, cy } = JSON.parse(document.getElementById("hero-camera").textContent);
  const depth = new Uint16Array(bytes("hero-depth").buffer); // millimetres, 0: unknown
  const sigma = new Uint16Array(bytes("hero-sigma").buffer);
  const colour = bytes("hero-colour");
  layers(width, height, depth, sigma);
  if (!cloud(width, height, fx, fy, cx, cy, depth, sigma, colour)) {
    document.querySelector("#cloud").replaceWith("This browser shows no WebGL, so no 3D view.");
  }
}

function layers(width, height, depth, sigma) {
  const over = document.querySelector("#hero-over");
  const buttons = [...document.querySelectorAll("[data-layer]")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      over.src = document.getElementById(button.dataset.layer).src;
      over.alt = button.textContent;
      for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
      for (const scale of document.querySelectorAll("[data-scale]")) scale.hidden = scale.dataset.scale !== button.dataset.layer;
    });
  }
  const box = document.querySelector("#hero-compare"), said = document.querySelector("#hero-said");
  box.addEventListener("pointermove", (event) => {
    const place = box.getBoundingClientRect();
    const x = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - place.left) / place.width) * width)));
    const y = Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - place.top) / place.height) * height)));
    const d = depth[y * width + x] / 1000, s = sigma[y * width + x] / 1000;
    said.textContent = d ? `${d.toFixed(2)}${s ? ` ± ${s.toFixed(2)}` : ""} m` : "nothing known";
  });
}

function cloud(width, height, fx, fy, cx, cy, depth, sigma, colour) {
  const canvas = document.querySelector("#cloud");
  const gl = canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
  if (!gl) return false;
  const near = [...depth].filter((d) => d).sort((a, b) => a - b);
  const middle = near[near.length >> 1] / 1000 || 1;
  const count = depth.length, places = new Float32Array(count * 3), paint = new Uint8Array(count * 4), doubt = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    const z = depth[i] / 1000, x = i % width, y = (i / width) | 0;
    places.set([((x - cx) / fx) * z, ((y - cy) / fy) * z, z - middle], 3 * i);
    paint.set([colour[3 * i], colour[3 * i + 1], colour[3 * i + 2], z ? 255 : 0], 4 * i);
    doubt[i] = z ? sigma[i] / 1000 : 1e9;
  }
  const shader = (kind, text) => {
    const made = gl.createShader(kind);
    gl.shaderSource(made, text);
    gl.compileShader(made);
    return made;
  };
  const program = gl.createProgram();
  gl.attachShader(program, shader(gl.VERTEX_SHADER, `
    attribute vec3 place; attribute vec4 paint; attribute float doubt;
    uniform vec4 turn; uniform vec2 view; uniform float size, most; varying vec4 seen;
    void main() {
      float a = turn.x, b = turn.y;
      vec3 p = vec3(place.x * cos(a) + place.z * sin(a), place.y, place.z * cos(a) - place.x * sin(a));
      p = vec3(p.x, p.y * cos(b) - p.z * sin(b), p.y * sin(b) + p.z * cos(b));
      float z = p.z + turn.z;
      gl_Position = vec4(p.x * view.x, -p.y * view.y, z - 0.1, z);
      if (doubt > most || paint.a == 0.0) gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
      gl_PointSize = max(1.0, size / max(z, 0.05));
      seen = vec4(paint.rgb, 1.0);
    }`));
  gl.attachShader(program, shader(gl.FRAGMENT_SHADER, "precision mediump float; varying vec4 seen; void main() { gl_FragColor = seen; }"));
  gl.linkProgram(program);
  gl.useProgram(program);
  const feed = (name, data, size, kind, normal) => {
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    const at = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, kind, normal, 0, 0);
  };
  feed("place", places, 3, gl.FLOAT, false);
  feed("paint", paint, 4, gl.UNSIGNED_BYTE, true);
  feed("doubt", doubt, 1, gl.FLOAT, false);
  gl.enable(gl.DEPTH_TEST);
  gl.clearColor(0.05, 0.063, 0.075, 1);
  const uniform = (name) => gl.getUniformLocation(program, name);
  const cut = document.querySelector("#cut"), told = document.querySelector("#cut-said");
  let turnX = 0.3, turnY = 0.08, away = middle * 1.02, waiting = false, idle = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  const draw = (time) => {
    waiting = false;
    const wide = Math.round(canvas.clientWidth * devicePixelRatio), high = Math.round(canvas.clientHeight * devicePixelRatio);
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    gl.viewport(0, 0, wide, high);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    if (idle) [turnX, turnY] = [0.3 * Math.cos(time / 2600), 0.08 + 0.05 * Math.sin(time / 4100)];
    const zoom = Math.min(2 * fx / width, (2 * fy / height) * 1.0);
    gl.uniform4f(uniform("turn"), turnX, turnY, away, 0);
    gl.uniform2f(uniform("view"), zoom, zoom * (wide / high));
    gl.uniform1f(uniform("size"), (1.6 * wide * middle) / width);
    gl.uniform1f(uniform("most"), cut.value >= 100 ? 1e6 : 0.01 * Math.pow(300, cut.value / 100));
    told.textContent = cut.value >= 100 ? "everything" : `surer than ± ${(0.01 * Math.pow(300, cut.value / 100)).toFixed(2)} m`;
    gl.drawArrays(gl.POINTS, 0, count);
    if (idle) again();
  };
  const again = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  canvas.addEventListener("pointerdown", (event) => { idle = false; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    turnX += event.movementX / 250;
    turnY = Math.max(-1.5, Math.min(1.5, turnY - event.movementY / 250));
    again();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    idle = false;
    away = Math.max(0.1 * middle, Math.min(6 * middle, away * Math.exp(event.deltaY / 600)));
    again();
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!step) return;
    event.preventDefault();
    idle = false;
    [turnX, turnY] = [turnX + step[0], turnY + step[1]];
    again();
  });
  cut.addEventListener("input", again);
  addEventListener("resize", again);
  again();
  return true;
}
