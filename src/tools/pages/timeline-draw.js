// The picture: only what is in view, found by halving; what is narrower than a pixel shares one.
const view = $('view'), pen = view.getContext('2d');
const SCALE = 26, HEAD = 24, LANE = 20, DEEPER = 15, GAP = 4;
let from = 0, span = wall, top_ = 0, width = 0, height = 0, left = 150, theme = {}, query = '', good = null;
let chosen = -1, under = -1, box = null, drawn = 0, asked = false, total = 0;
let y0 = 0;
rows.forEach((row, r) => {
  row.heads = !r || rows[r - 1].device !== row.device;
  if (row.heads) y0 += HEAD;
  row.y = y0;
  row.h = LANE + (row.depths - 1) * DEEPER + GAP;
  y0 += row.h;
});
total = y0 + 6;
function look() {
  const css = getComputedStyle(document.documentElement);
  for (const k of ['card', 'ink', 'soft', 'edge', 'grid', 'band', 'accent', 'bad', 'warn', 'sat', 'lum', 'onbox'])
    theme[k] = css.getPropertyValue('--' + k).trim();
  colours.clear();
}
const colours = new Map();
// An op has the same colour in every page: it comes from its name.
function colour(e) {
  const key = D.c[e] * 65536 + D.n[e];
  if (colours.has(key)) return colours.get(key);
  const cat = T[D.c[e]], name = T[D.n[e]];
  let h = 7, c;
  for (const letter of name) h = (h * 31 + letter.codePointAt(0)) >>> 0;
  if (cat === 'wait') c = theme.bad;
  else if (cat === 'loader' || cat === 'waiting') c = theme.warn;
  else if (cat === 'step' || cat === 'range') c = theme.edge;
  else c = `hsl(${(Math.imul(h ^ h >>> 15, 0x9e3779b1) >>> 24) * 360 / 256} ${theme.sat} ${theme.lum})`;
  colours.set(key, c);
  return c;
}
const X = t => left + (t - from) / span * (width - left);
const timeAt = x => from + (x - left) / (width - left) * span;
function search(lane, before, low = 0) { // the first event of the lane for which `before` is false
  let high = lane.id.length;
  while (low < high) {
    const m = (low + high) >> 1;
    if (before(lane.id[m])) low = m + 1;
    else high = m;
  }
  return low;
}
const laneY = (row, depth) => SCALE - top_ + row.y + (depth ? LANE + (depth - 1) * DEEPER : 0);
const laneH = depth => (depth ? DEEPER : LANE) - 2;
const widths = new Map(); // of texts in the font that they are drawn in
function words(text, x, y, room) {
  const key = pen.font[0] + text;
  if (!widths.has(key)) widths.set(key, pen.measureText(text).width);
  const wide = widths.get(key), n = Math.floor(text.length * (room - 11) / wide);
  if (wide <= room) pen.fillText(text, x, y);
  else if (n > 1) pen.fillText(text.slice(0, n) + '\u2026', x, y);
}
function drawLane(lane, y, h) {
  const pixel = span / (width - left), until = from + span;
  for (let i = search(lane, e => E[e] <= from); i < lane.id.length;) {
    const e = lane.id[i];
    if (S[e] > until) break;
    const a = Math.max(X(S[e]), left), b = Math.min(X(E[e]), width);
    drawn++;
    pen.fillStyle = colour(e);
    if (b - a < 1.5) {
      const next = timeAt(Math.floor(a) + 1);
      let j = Math.max(i + 1, search(lane, k => S[k] < next, i));
      if (j > i + 1 && X(E[lane.id[j - 1]]) - X(S[lane.id[j - 1]]) >= 1.5) j--; // the last may reach far beyond
      const hit = !good || lane.hit[j] > lane.hit[i];
      pen.globalAlpha = hit ? Math.min(1, 0.35 + (lane.sum[j] - lane.sum[i]) / pixel) : 0.12;
      if (good && hit) pen.fillStyle = theme.accent;
      pen.fillRect(Math.floor(a), y, 1.5, h);
      i = j;
      continue;
    }
    pen.globalAlpha = good && !good[e] ? 0.15 : 1;
    pen.fillRect(a, y, Math.max(b - a - (b - a > 4 ? 0.8 : 0), 1), h);
    if (b - a > 26) {
      pen.fillStyle = T[D.c[e]] === 'step' || T[D.c[e]] === 'range' ? theme.ink : theme.onbox;
      words(T[D.n[e]], a + 4, y + h / 2 + 0.5, b - a - 7);
    }
    i++;
  }
  pen.globalAlpha = 1;
}
function outline(e, how, wide) {
  const row = rows[R[e]], depth = Math.min(D.h[e], DEEP - 1), a = Math.max(X(S[e]), left), b = Math.min(X(E[e]), width);
  if (b < left || a > width) return;
  pen.strokeStyle = how;
  pen.lineWidth = wide;
  pen.strokeRect(a - 0.5, laneY(row, depth) - 0.5, Math.max(b - a, 2) + 0.5, laneH(depth) + 1);
}
function drawArrow([a, b], alpha, wide) {
  const middle = e => laneY(rows[R[e]], Math.min(D.h[e], DEEP - 1)) + laneH(D.h[e]) / 2;
  const x = X(E[a]), y = middle(a), u = X(Math.max(S[b], E[a])), v = middle(b), bend = Math.max(14, Math.abs(u - x) / 3);
  if (Math.max(x, u) < left || Math.min(x, u) > width) return 0;
  pen.globalAlpha = alpha;
  pen.strokeStyle = pen.fillStyle = theme.accent;
  pen.lineWidth = wide;
  pen.beginPath();
  pen.moveTo(x, y);
  pen.bezierCurveTo(x + bend, y, u - bend, v, u - 5, v);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(u, v);
  pen.lineTo(u - 7, v - 3.5);
  pen.lineTo(u - 7, v + 3.5);
  pen.fill();
  pen.globalAlpha = 1;
  return 1;
}
function drawScale() {
  let step = 10 ** Math.floor(Math.log10(span / (width - left) * 90));
  while (step / span * (width - left) < 90) step *= String(step)[0] === '2' ? 2.5 : 2;
  pen.fillStyle = theme.card;
  pen.fillRect(0, 0, width, SCALE);
  pen.fillStyle = theme.soft;
  for (let t = Math.ceil(from / step) * step; t <= from + span; t += step) {
    const x = X(t);
    if (x > left - 1 && x < width - 56) pen.fillText(at(t, step), x + 4, SCALE / 2);
    pen.fillRect(x, SCALE - 7, 1, 7);
  }
  pen.fillStyle = theme.edge;
  pen.fillRect(0, SCALE - 1, width, 1);
  return step;
}
function drawRow(row) {
  const y = SCALE - top_ + row.y;
  if (row.heads && y > 0 && y - HEAD < height) {
    pen.fillStyle = theme.band;
    pen.fillRect(0, y - HEAD, width, HEAD - 2);
    pen.fillStyle = theme.ink;
    pen.font = '600 13px system-ui,sans-serif';
    words(row.device, 10, y - HEAD / 2 - 1, width - 20);
    pen.font = '12px system-ui,sans-serif';
  }
  if (y + row.h < SCALE || y > height) return;
  row.lanes.forEach((lane, depth) => drawLane(lane, laneY(row, depth), laneH(depth)));
  pen.fillStyle = theme.accent;
  for (const [t] of row.marks) {
    const x = X(t);
    if (x < left || x > width) continue;
    pen.beginPath();
    pen.moveTo(x, y + 7);
    pen.lineTo(x - 4, y);
    pen.lineTo(x + 4, y);
    pen.fill();
  }
  pen.fillStyle = theme.card;
  pen.fillRect(0, y - 1, left - 1, row.h);
  pen.fillStyle = theme.soft;
  words(row.name, 16, y + LANE / 2, left - 20);
}
function drawArrows() {
  const own = touching.get(chosen) || [];
  const inView = arrows.length > 4000 ? [] : arrows.filter(([a, b]) => E[a] <= from + span && S[b] >= from);
  let n = 0;
  if (inView.length <= 60) for (const a of inView) n += drawArrow(a, own.includes(a) ? 1 : 0.3, 1);
  for (const a of own) n += drawArrow(a, 1, 2);
  return n;
}
function draw() {
  asked = false;
  const ratio = window.devicePixelRatio || 1;
  width = view.clientWidth;
  height = view.clientHeight;
  left = width < 1000 ? 132 : 172;
  if (view.width !== Math.round(width * ratio) || view.height !== Math.round(height * ratio)) {
    view.width = Math.round(width * ratio);
    view.height = Math.round(height * ratio);
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = theme.card;
  pen.fillRect(0, 0, width, height);
  pen.font = '12px system-ui,sans-serif';
  pen.textBaseline = 'middle';
  drawn = 0;
  const step = drawScale();
  pen.fillStyle = theme.grid;
  for (let t = Math.ceil(from / step) * step; t <= from + span; t += step) pen.fillRect(X(t), SCALE, 1, height);
  rows.forEach(drawRow);
  pen.save();
  pen.beginPath();
  pen.rect(left, SCALE, width - left, height);
  pen.clip();
  const shown = drawArrows();
  if (under >= 0) outline(under, theme.ink, 1);
  if (chosen >= 0) for (const e of twins(chosen)) outline(e, theme.accent, 2);
  pen.restore();
  drawScale();
  pen.fillStyle = theme.edge;
  pen.fillRect(left - 1, 0, 1, height);
  if (box) {
    pen.fillStyle = theme.accent;
    pen.globalAlpha = 0.2;
    pen.fillRect(Math.min(...box), 0, Math.abs(box[1] - box[0]), height);
    pen.globalAlpha = 1;
  }
  $('seen').textContent = at(from, span / 100) + ' \u2013 ' + at(from + span, span / 100);
  Object.assign(document.body.dataset, {drawn, arrows: shown, from: Math.round(from), span: Math.round(span)});
}
function again() {
  if (!asked) requestAnimationFrame(draw);
  asked = true;
}
