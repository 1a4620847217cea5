// What the reader does: moving, finding, choosing.
function look_at(a, length) {
  span = Math.min(Math.max(length, 20), wall * 1.1);
  from = Math.min(Math.max(a, -span * 0.05), wall - span * 0.95);
  if (span >= wall) from = (wall - span) / 2;
  again();
}
const zoom = (by, x = (left + width) / 2) => {
  const t = timeAt(x), length = Math.min(Math.max(span * by, 20), wall * 1.1);
  look_at(t - (t - from) / span * length, length);
};
const pan = share => look_at(from + share * span, span);
const scroll_ = by => {
  top_ = Math.min(Math.max(top_ + by, 0), Math.max(0, total + SCALE - height));
  again();
};
// The same piece of work in its stream's row and in its engine's.
function twins(e) {
  if (D.k[e] < 0 || !rows[R[e]].kind) return [e];
  const list = [];
  rows.forEach(row => {
    if (!row.kind || row.device !== rows[R[e]].device) return;
    for (const lane of row.lanes)
      for (let i = search(lane, k => S[k] < S[e] - 2); i < lane.id.length && S[lane.id[i]] <= S[e] + 2; i++)
        if (D.k[lane.id[i]] === D.k[e] && D.m[lane.id[i]] === D.m[e]) list.push(lane.id[i]);
  });
  return list.length ? list : [e];
}
function choose(e) {
  chosen = e;
  const card = $('detail');
  card.replaceChildren();
  card.hidden = e < 0;
  again();
  if (e < 0) return;
  make('h2', T[D.n[e]], card);
  const list = make('dl', undefined, card);
  const say = (k, v) => (make('dt', k, list), make('dd', v, list));
  say('on', rows[R[e]].device + ', ' + rows[R[e]].name);
  say('began', at(S[e], 1));
  for (const [k, v] of known(e)) say(k, v);
  for (const side of [1, 0]) {
    const ends = (touching.get(e) || []).filter(a => a[side] === e).map(a => a[1 - side]);
    if (!ends.length) continue;
    const dd = say(side ? 'waited for' : 'was waited for by', '');
    for (const o of ends.slice(0, 20)) make('button', T[D.n[o]] + ' (' + rows[R[o]].name + ')', dd).onclick = () => go(o);
  }
}
function go(e) { // bring it into view, wide enough to see
  const wide = Math.max(E[e] - S[e], 1), length = wide / span < 0.02 ? wide * 25 : Math.min(span, wall);
  if (S[e] < from || E[e] > from + span || wide / span < 0.02) look_at(S[e] + wide / 2 - length / 2, length);
  const y = rows[R[e]].y;
  if (y < top_ || y > top_ + height - SCALE - LANE) scroll_(y - top_ - height / 3);
  choose(e);
}
let found = [];
function find(text) {
  query = text.trim().toLowerCase();
  const ok = query ? T.map(t => t.toLowerCase().includes(query)) : null;
  good = ok && new Uint8Array(N);
  found = [];
  if (ok)
    for (let e = 0; e < N; e++)
      if (ok[D.n[e]] || (D.t[e] && ok[D.t[e]]) || (D.o[e] && ok[D.o[e]])) good[e] = found.push(e) > 0;
  found.sort((a, b) => S[a] - S[b] || a - b);
  if (good)
    for (const row of rows)
      for (const {id, hit} of row.lanes) for (let i = 0; i < id.length; i++) hit[i + 1] = hit[i] + good[id[i]];
  $('count').textContent = query ? num(found.length) + (found.length === 1 ? ' match' : ' matches') : '';
  document.body.dataset.matches = found.length;
  again();
}
function jump(by) {
  if (!found.length) return;
  const i = found.indexOf(chosen), n = found.length;
  go(found[i < 0 ? (by > 0 ? 0 : n - 1) : (i + by + n) % n]);
}
function hit(x, y) {
  if (x < left || y < SCALE) return -1;
  for (const row of rows) {
    if (y < laneY(row, 0) || y >= laneY(row, 0) + row.h) continue;
    for (let depth = row.lanes.length - 1; depth >= 0; depth--) {
      const dy = y - laneY(row, depth), lane = row.lanes[depth];
      if (dy < 0 || dy > laneH(depth) + 2) continue;
      const t = timeAt(x), near = 2.5 * span / (width - left), i = search(lane, e => E[e] < t - near);
      let best = -1, far = Infinity;
      for (let k = i; k < lane.id.length && k < i + 400 && S[lane.id[k]] <= t + near; k++) {
        const e = lane.id[k], d = Math.max(S[e] - t, t - E[e], 0);
        if (d < far) far = d, best = e;
      }
      return best;
    }
  }
  return -1;
}
function tip(e, x, y) {
  const box_ = $('tip');
  box_.hidden = e < 0;
  if (e < 0) return;
  box_.replaceChildren();
  make('b', T[D.n[e]], box_);
  box_.append(known(e).map(([k, v]) => k + ' ' + v).join('\n'));
  const r = box_.getBoundingClientRect();
  box_.style.left = Math.max(4, x + 16 + r.width > innerWidth ? x - r.width - 12 : x + 16) + 'px';
  box_.style.top = Math.max(4, y + 18 + r.height > innerHeight ? y - r.height - 12 : y + 18) + 'px';
}
let held = null;
view.onpointerdown = e => {
  if (e.button) return;
  const x = e.offsetX;
  held = {x, y: e.offsetY, from, top: top_, moved: false, range: (e.shiftKey || e.offsetY < SCALE) && x > left};
  view.setPointerCapture(e.pointerId);
};
view.onpointermove = e => {
  if (!held) {
    const was = under;
    under = hit(e.offsetX, e.offsetY);
    tip(under, e.clientX, e.clientY);
    if (under !== was) again();
    return;
  }
  const dx = e.offsetX - held.x, dy = e.offsetY - held.y;
  held.moved = held.moved || Math.abs(dx) + Math.abs(dy) > 3;
  if (!held.moved) return;
  tip(-1);
  if (held.range) {
    box = [Math.max(held.x, left), Math.min(Math.max(e.offsetX, left), width)];
    return again();
  }
  view.classList.add('held');
  top_ = held.top;
  scroll_(-dy);
  look_at(held.from - dx / (width - left) * span, span);
};
view.onpointerup = view.onpointercancel = e => {
  if (held && !held.moved && e.type === 'pointerup') choose(hit(e.offsetX, e.offsetY));
  if (box && Math.abs(box[1] - box[0]) > 3) {
    const a = timeAt(Math.min(...box)), b = timeAt(Math.max(...box));
    look_at(a, b - a);
  }
  held = box = null;
  view.classList.remove('held');
  again();
};
view.onpointerleave = () => {
  under = -1;
  tip(-1);
  again();
};
view.addEventListener('wheel', e => {
  e.preventDefault();
  const unit = e.deltaMode ? 16 : 1;
  tip(-1);
  if (e.offsetX < left) scroll_(e.deltaY * unit);
  else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan((e.deltaX || e.deltaY) * unit / 800);
  else zoom(Math.exp(Math.min(Math.max(e.deltaY * unit, -300), 300) * 0.0022), e.offsetX);
}, {passive: false});
const keys = {w: () => zoom(0.7), s: () => zoom(1.43), '+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1.43),
  a: () => pan(-0.15), d: () => pan(0.15), ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15),
  ArrowUp: () => scroll_(-40), ArrowDown: () => scroll_(40), 0: () => look_at(0, wall), '/': () => $('find').focus(),
  n: () => jump(1), N: () => jump(-1), Escape: () => choose(-1)};
addEventListener('keydown', e => {
  const act = keys[e.key], inCanvas = document.activeElement === view || document.activeElement === document.body;
  if (!act || !inCanvas || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key.startsWith('Arrow') && e.key.length < 10 && document.activeElement !== view) return;
  e.preventDefault();
  act();
});
$('find').oninput = () => find($('find').value);
$('find').onkeydown = e => {
  if (e.key === 'Enter') jump(e.shiftKey ? -1 : 1);
  if (e.key === 'Escape') ($('find').value = '', find(''), view.focus());
};
$('next').onclick = () => jump(1);
$('back').onclick = () => jump(-1);
$('in').onclick = () => zoom(0.6);
$('out').onclick = () => zoom(1.67);
$('all').onclick = () => look_at(0, wall);
