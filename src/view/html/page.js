// The page: maps, the panel, search, and the controls above them.
class Page {
  constructor(data) {
    this.data = data;
    this.el = Object.fromEntries([...document.querySelectorAll('[id]')].map(e => [e.id, e]));
    const el = this.el;
    this.regions = document.querySelector('main').dataset.of === 'regions';
    this.compare = data.length > 1 && !this.regions;
    this.sameScale = this.compare;
    el.stage.classList.toggle('one', data.length === 1);
    el.ofbox.hidden = data.length < 2;
    data.forEach((d, k) => el.of.append(node('option', { value: k }, this.called(k))));
    el.of.addEventListener('change', () => this.tables());
    el.title.textContent = data.map(d => d.title).join(' and ');
    data.forEach(d => d.warnings.forEach(w => el.warnings.append(node('p', {}, 'Note: ' + w))));
    const first = data[0];
    if (first.entries.length > 1) {
      el.entrybox.hidden = false;
      first.entries.forEach((e, i) => el.entry.append(node('option', { value: i }, e.title)));
      el.entry.value = first.largest;
      el.entry.addEventListener('change', () => this.load(Number(el.entry.value)));
    }
    el.colour.addEventListener('change', () => this.paint());
    el.search.addEventListener('input', () => this.search());
    el.search.addEventListener('keydown', e => { if (e.key === 'Enter') { e.preventDefault(); this.nextHit(); } });
    el.next.addEventListener('click', () => this.nextHit());
    el.sub.addEventListener('change', () => { this.maps.forEach(m => { m.subgraph = Number(el.sub.value); m.later(); }); });
    const each = f => () => this.maps.forEach(m => { f(m); m.later(); });
    el.zin.addEventListener('click', each(m => m.zoom(.7, m.w / 2, m.h / 2)));
    el.zout.addEventListener('click', each(m => m.zoom(1 / .7, m.w / 2, m.h / 2)));
    el.fit.addEventListener('click', each(m => m.fit()));
    el.topeak.addEventListener('click', each(m => m.peak()));
    const dark = on => { document.documentElement.dataset.theme = on ? 'dark' : 'light'; el.theme.setAttribute('aria-pressed', on); if (this.maps) this.maps.forEach(m => m.later()); };
    const media = window.matchMedia('(prefers-color-scheme: dark)');
    dark(media.matches);
    media.addEventListener('change', () => dark(media.matches));
    el.theme.addEventListener('click', () => dark(document.documentElement.dataset.theme !== 'dark'));
    let theme = '';
    // Paper is white: the pictures are drawn anew in the light colours.
    window.addEventListener('beforeprint', () => { theme = document.documentElement.dataset.theme; dark(false); this.paged(200); this.maps.forEach(m => m.draw()); });
    window.addEventListener('afterprint', () => { this.paged(25); dark(theme === 'dark'); this.maps.forEach(m => m.draw()); });
    this.load(first.largest);
  }
  // What plan k is called where there are several.
  called(k) { return this.compare ? 'AB'[k] : this.data[k].title; }
  load(entry) {
    const { el, data } = this;
    this.plans = data.map((d, k) => new Plan(d.entries[k === 0 ? entry : Math.min(entry, d.entries.length - 1)] || d.entries[0], d.capacity));
    // Memories in use at the same time have one time axis.
    if (this.regions) for (const p of this.plans) { p.first = Math.min(...this.plans.map(q => q.first)); p.last = Math.max(...this.plans.map(q => q.last)); }
    this.top = Math.max(...this.plans.map(p => Math.max(p.arena, p.bound, p.limit())));
    this.maps = this.plans.map((p, k) => new MemoryMap(p, k, this.compare ? 'AB'[k] + ': ' + data[k].title + (data[k].entries.length > 1 ? ', ' + p.title : '') : p.title, this));
    el.maps.replaceChildren(...this.maps.map(m => m.box));
    const d = data[0], p = this.plans[0];
    const proof = !d.optimal ? 'a smaller arena is not ruled out' : d.arena <= d.bound ? 'proven: no smaller arena exists' : 'proven: none smaller once rounded to ' + d.proofAlign;
    el.lead.textContent = this.regions
      ? data.map(d => d.title + ': ' + group(d.arena) + ' B' + (d.capacity === null ? '' : ' of ' + group(d.capacity)) + ', ' + d.entries[0].buffers + ' blocks').join('; ') + '.'
      : this.compare
      ? 'A needs ' + group(d.arena) + ' B, B needs ' + group(data[1].arena) + ' B: ' + (data[1].arena === d.arena ? 'the same' : (data[1].arena < d.arena ? 'B saves ' : 'B costs ') + group(Math.abs(data[1].arena - d.arena)) + ' B')
      : 'Arena ' + group(d.arena) + ' B (' + human(d.arena) + ') for ' + group(p.total) + ' B of tensors; lower bound ' + group(d.bound) + ' B, ' + proof + (d.model ? '; persistent ' + group(d.persistent) + ' B, constants ' + group(d.constants) + ' B' : '') + '.';
    const subs = [...new Set(p.sub || [])];
    el.subbox.hidden = subs.length < 2;
    el.sub.replaceChildren(node('option', { value: -1 }, 'all'), ...subs.map(s => node('option', { value: s }, String(s))));
    this.paint();
    this.maps.forEach(m => m.draw());
    document.documentElement.dataset.drawn = Math.round(performance.now());
    // Tables come after the first picture.
    setTimeout(() => this.fill(), 0);
  }
  fill() {
    const { el, plans, maps } = this;
    el.peak.replaceChildren(...plans.map((p, k) => {
      const list = node('ul', {}, ...p.peakRows.slice(0, 40).map(i => node('li', {}, node('button', { type: 'button', onclick: () => this.choose(maps[k], i, true) }, p.full(i)), ' ' + group(p.size[i]) + ' B' + (p.root[i] !== null ? ', in place' : ''))));
      if (p.peakRows.length > 40) list.append(node('li', {}, 'and ' + (p.peakRows.length - 40) + ' more'));
      return node('div', {}, node('p', {}, (plans.length > 1 ? this.called(k) + ': ' : '') + group(p.peak[1]) + ' B at step ' + p.moment(p.peak[0])), list);
    }));
    this.tables();
    if (this.compare) {
      el.changes.hidden = false;
      const [a, b] = plans, differs = differences(a, b), show = (p, i, f) => i < 0 ? '\u2013' : f(p, i), off = (p, i) => p.offset[i] === null ? '\u2013' : group(p.offset[i]);
      if (!differs.length) el.difftable.replaceChildren(node('p', {}, 'No tensor of the arena differs.'));
      else new Table(el.difftable, !differs.some(r => r.a >= 0 && r.b >= 0) ? 'Tensors of the arena, none of them in both' : 'Tensors of the arena that differ', [['tensor', r => r.a >= 0 ? a.full(r.a) : b.full(r.b)],
        ['bytes A', r => r.a < 0 ? -1 : a.size[r.a], true, r => show(a, r.a, (p, i) => group(p.size[i]))], ['bytes B', r => r.b < 0 ? -1 : b.size[r.b], true, r => show(b, r.b, (p, i) => group(p.size[i]))],
        ['offset A', r => r.a < 0 ? -1 : a.offset[r.a], true, r => show(a, r.a, off)], ['offset B', r => r.b < 0 ? -1 : b.offset[r.b], true, r => show(b, r.b, off)],
        ['steps A', r => r.a < 0 ? -1 : a.from[r.a], true, r => show(a, r.a, (p, i) => p.from[i] + '..' + p.to[i])], ['steps B', r => r.b < 0 ? -1 : b.from[r.b], true, r => show(b, r.b, (p, i) => p.from[i] + '..' + p.to[i])]],
        differs, r => r.a >= 0 ? this.choose(maps[0], r.a, true) : this.choose(maps[1], r.b, true));
    }
    this.search();
    document.documentElement.dataset.ready = 'yes';
  }
  // Paper has no button for the next page: more rows at a time, and the caption says which.
  paged(rows) { Table.PAGE = rows; if (this.table) this.tables(); }
  // The tables of one plan, which one the reader says.
  tables() {
    const { el, plans, maps } = this, k = Number(el.of.value) || 0, of = plans.length > 1 ? ' of ' + this.called(k) : '';
    this.table = tensorTable(el.table, plans[k], 'Tensors' + of, i => this.choose(maps[k], i, true));
    this.tableOf = k;
    operatorTable(el.ops, plans[k], 'Steps' + of);
  }
  paint() {
    const by = this.el.colour.value, seen = new Map();
    this.maps.forEach(m => { m.colours = colouring(m.plan, by); m.colours.legend.forEach(([c, t]) => seen.set(c + t, [c, t])); m.later(); });
    const line = (style, text) => node('span', {}, node('i', { class: 'line ' + style[0], style: 'border-color:var(--' + style[1] + ')' }), text);
    this.el.legend.replaceChildren(...[...seen.values()].map(([c, t]) => node('span', {}, node('i', { style: 'background:' + c }), t)),
      line(['', 'live'], 'bytes alive'), line(['dash', 'bound'], 'lower bound'), line(['', 'peak'], 'peak step'), ...(this.plans.some(p => p.capacity !== null) ? [line(['dash', 'limit'], 'capacity')] : []));
    this.el.legend.setAttribute('aria-label', 'Legend: ' + this.el.legend.textContent);
  }
  point(map, i, e) {
    const tip = this.el.tip;
    if (map.hover !== i) { map.hover = i; map.later(); this.mirror(map, i, 'hover'); }
    tip.hidden = i < 0;
    if (i < 0) return;
    tip.textContent = map.plan.brief(i);
    const w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - w - 8)) + 'px';
    tip.style.top = (e.clientY + h + 22 > innerHeight ? Math.max(4, e.clientY - h - 10) : e.clientY + 16) + 'px';
    if (map.chosen < 0) this.detail(map, i);
  }
  // The same tensor in the other plan is marked too.
  mirror(map, i, what) {
    if (this.regions && what === 'chosen') this.maps.forEach(m => { if (m !== map) { m.chosen = -1; m.later(); } });
    if (!this.compare) return;
    for (const m of this.maps) {
      if (m === map) continue;
      const p = map.plan;
      m[what] = i < 0 ? -1 : m.plan.placed.find(j => m.plan.subgraph(j) === p.subgraph(i) && (p.name[i] ? m.plan.name[j] === p.name[i] : m.plan.id[j] === p.id[i])) ?? -1;
      m.later();
    }
  }
  choose(map, i, speak) {
    if (i >= 0 && map.plan.offset[i] === null) { this.detail(map, i); this.say(map, i); return; }
    map.chosen = i;
    this.mirror(map, i, 'chosen');
    if (i >= 0) { map.reveal(i); this.detail(map, i); if (speak) this.say(map, i); if (this.table && map.index === this.tableOf) this.table.mark(i); }
    else if (speak) this.el.say.textContent = 'No tensor selected';
    map.later();
  }
  say(map, i) { this.el.say.textContent = map.plan.facts(i).map(f => f.join(' ')).join(', '); }
  detail(map, i) {
    const p = map.plan, list = (title, rows) => rows.length ? [node('h3', {}, title), node('ul', {}, ...rows.slice(0, 12).map(r => node('li', {}, node('button', { type: 'button', onclick: () => this.choose(map, r.row, true) }, 'go to'), ' ' + r.text)),
      ...(rows.length > 12 ? [node('li', {}, 'and ' + (rows.length - 12) + ' more')] : []))] : [];
    const none = p.offset[i] !== null && !p.before(i).length && !p.next(i).length ? [node('p', {}, 'Nobody else uses its bytes.')] : [];
    this.el.detail.replaceChildren(node('dl', {}, ...p.facts(i).flatMap(([k, v]) => [node('dt', {}, k), node('dd', {}, v)])),
      ...list('Who had these bytes before, and why that is safe', p.before(i)), ...list('Who has them next', p.next(i)), ...none);
  }
  search() {
    const text = this.el.search.value;
    // In a comparison the other plan's hits are marked; regions have tensors of their own.
    this.hitList = [];
    for (const m of this.maps) {
      const found = m.plan.matches(text);
      m.hits = new Set(found);
      if (m.index === 0 || this.regions) found.forEach(i => this.hitList.push([m, i]));
      m.later();
    }
    this.hit = -1;
    this.el.found.textContent = text.trim() ? this.hitList.length + ' found' : '';
    if (this.table) { const p = this.plans[this.tableOf], want = text.trim().toLowerCase(); this.table.filter(want ? i => p.name[i].toLowerCase().includes(want) || p.label(i) === want || p.form(i).includes(want) || p.writer(i).toLowerCase() === want : null); }
  }
  nextHit() {
    if (!this.hitList || !this.hitList.length) return;
    this.hit = (this.hit + 1) % this.hitList.length;
    this.el.found.textContent = (this.hit + 1) + ' of ' + this.hitList.length;
    this.choose(...this.hitList[this.hit], true);
  }
}
window.arenite = new Page(JSON.parse(document.getElementById('data').textContent));
