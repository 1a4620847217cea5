// Words, bars and tables around the picture; then the first drawing.
document.title = D.file + ' - timeline';
$('name').textContent = D.file;
for (const f of D.facts) make('li', f, $('facts'));
$('bound').textContent = D.bound;
$('said').textContent = D.said;
$('ranks').textContent = D.ranks;
$('ranks').hidden = !D.ranks;
const paint = {computing: 'var(--good)', copying: 'var(--cool)', 'waiting for the loader': 'var(--warn)',
  synchronising: 'var(--bad)', launching: '#8d6cc9', 'host code': 'var(--soft)'};
$('why').hidden = !D.why.length;
for (const [name, share] of D.why) {
  if (!share) continue;
  const bar = make('i', undefined, $('why')), li = make('li', undefined, $('legend'));
  bar.style.width = share / 10 + '%';
  bar.title = name;
  bar.style.background = make('i', undefined, li).style.background = paint[name];
  li.append(name + ' ' + num(share / 10, 1) + ' %');
}
for (const [engine, share, busy] of D.busy) {
  make('b', engine, $('busy'));
  const bar = make('i', undefined, make('span', undefined, $('busy'), engine.includes('copy') ? 'copy' : ''));
  bar.style.width = share / 10 + '%';
  make('em', num(share / 10, 1) + ' %, ' + busy, $('busy'));
}
if (!D.busy.length) make('b', 'no device worked', $('busy'));
for (const t of D.tables) {
  if (!t.rows.length) continue;
  const card = make('section', undefined, $('tables'), 'card');
  make('h2', t.title, card);
  const table = make('table', undefined, make('div', undefined, card, 'scroll'), t.words ? 'words' : '');
  const line = (cells, tag) => {
    const tr = make('tr', undefined, table);
    cells.forEach((c, i) => make(tag, c, tr, t.words && i >= t.words ? 'n' : ''));
  };
  line(t.head, 'th');
  t.rows.forEach(cells => line(cells, 'td'));
}
view.style.height = Math.min(total + SCALE, Math.max(320, Math.round(innerHeight * 0.72))) + 'px';
const dark = matchMedia('(prefers-color-scheme: dark)');
dark.addEventListener('change', () => (look(), again()));
addEventListener('resize', again);
look();
// A link can carry a place: #find=relu&from=1000&span=500&event=7 (nanoseconds)
const link = new URLSearchParams(location.hash.slice(1));
look_at(0, wall);
if (link.has('find')) find($('find').value = link.get('find'));
draw();
if (link.has('span')) look_at(+link.get('from'), +link.get('span'));
if (link.has('event')) go(+link.get('event'));
if (link.has('next')) jump(1);
draw();
Object.assign(document.body.dataset, {rows: rows.length, events: N, ready: 1});
