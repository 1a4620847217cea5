'use strict';
// The data: columns of one number an event, sorted by row and start. Times are nanoseconds.
const D = JSON.parse(document.getElementById('data').textContent), T = D.texts, N = D.n.length;
const S = new Float64Array(N), E = new Float64Array(N), R = new Int32Array(N);
const $ = id => document.getElementById(id);
const make = (tag, text, into, cls) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  if (into) into.append(e);
  return e;
};
const DEEP = 8; // nested deeper than this, events are not drawn
const rows = D.rows.map(r => ({device: T[r[0]], name: T[r[1]], kind: r[2], first: r[4], count: r[5], marks: [],
  lanes: [], depths: Math.min(r[3], DEEP)}));
rows.forEach((row, r) => {
  const ids = Array.from({length: row.depths}, () => []);
  let at = 0;
  for (let i = row.first; i < row.first + row.count; i++) {
    at += D.s[i];
    S[i] = at;
    E[i] = at + D.d[i];
    R[i] = r;
    if (D.h[i] < DEEP) ids[D.h[i]].push(i);
  }
  // sum: time covered up to an event, hit: matches up to it; so a pixel knows at once what lies in it
  row.lanes = ids.map(l => {
    const id = Int32Array.from(l), sum = new Float64Array(id.length + 1);
    for (let i = 0; i < id.length; i++) sum[i + 1] = sum[i] + E[id[i]] - S[id[i]];
    return {id, sum, hit: new Int32Array(id.length + 1)};
  });
});
for (let i = 0; i < D.marks.length; i += 3) rows[D.marks[i]].marks.push([D.marks[i + 1], T[D.marks[i + 2]]]);
const arrows = [], touching = new Map();
for (let i = 0; i < D.arrows.length; i += 2) {
  const a = [D.arrows[i], D.arrows[i + 1]];
  arrows.push(a);
  for (const e of a) touching.has(e) ? touching.get(e).push(a) : touching.set(e, [a]);
}
const wall = Math.max(D.wall, 1);
const num = (v, d) => v.toLocaleString('en', {maximumFractionDigits: d});
const three = v => num(v, v < 9.995 ? 2 : v < 99.95 ? 1 : 0);
const time = ns => ns < 999.5 ? three(ns) + ' ns' : ns < 999.5e3 ? three(ns / 1e3) + ' us' :
  ns < 999.5e6 ? three(ns / 1e6) + ' ms' : three(ns / 1e9) + ' s';
// A point in time, with the digits that tell it from one `step` later.
const at = (ns, step) => {
  const k = Math.abs(ns) < 999.5 ? 0 : Math.abs(ns) < 999.5e3 ? 1 : Math.abs(ns) < 999.5e6 ? 2 : 3;
  const digits = Math.min(Math.max(3 * k - Math.floor(Math.log10(step) + 1e-9), 0), 9);
  return ns ? num(ns / 1e3 ** k, digits) + ' ' + ['ns', 'us', 'ms', 's'][k] : '0';
};
const size = b => b < 1e3 ? b + ' bytes' : b < 1e6 ? three(b / 1e3) + ' kB' : b < 1e9 ? three(b / 1e6) + ' MB' :
  three(b / 1e9) + ' GB';
// What is known of an event, as pairs.
function known(e) {
  const d = D.d[e], list = [['took', time(d)]];
  if (D.b[e] > 0) list.push(['copied', size(D.b[e]) + (d ? ' at ' + three(D.b[e] / d) + ' GB/s' : '')]);
  if (D.q[e] >= 0) list.push(['waited in its queue', time(D.q[e])]);
  if (D.t[e]) list.push(['called at', T[D.t[e]]]);
  if (D.o[e]) list.push(['remark', T[D.o[e]]]);
  return list;
}
