// A plan's entry as the rest of the page reads it: rows of columns, texts, who follows whom.
const group = n => n === null || n === undefined ? '?' : String(n).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
function human(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let u = 0;
  while (n >= 1023.5 && u + 1 < units.length) { n /= 1024; u++; }
  return (u === 0 ? String(Math.round(n)) : n < 9.995 ? n.toFixed(2) : n < 99.95 ? n.toFixed(1) : n.toFixed(0)) + ' ' + units[u];
}
function node(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v); else if (v !== false && v !== null) e.setAttribute(k, v === true ? '' : v);
  }
  e.append(...children);
  return e;
}
class Plan {
  constructor(entry, capacity) {
    Object.assign(this, entry, { capacity });
    const n = this.id.length;
    this.placed = [];
    this.from = new Float64Array(n);
    this.to = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const s = this.spans[i];
      this.from[i] = s.length ? s[0] : 0;
      this.to[i] = s.length ? s[s.length - 1] : -1;
      if (this.offset[i] !== null && s.length) this.placed.push(i);
    }
    // Long ones first: a short block in shared bytes is drawn over them and stays in reach of the pointer.
    this.drawn = this.placed.slice().sort((a, b) => (this.to[b] - this.from[b]) - (this.to[a] - this.from[a]) || a - b);
    // The way of the arrow keys: in order of time, then of bytes.
    this.path = this.placed.slice().sort((a, b) => this.from[a] - this.from[b] || this.offset[a] - this.offset[b] || a - b);
    this.place = new Map(this.path.map((row, k) => [row, k]));
    this.after = null;
  }
  op(t) { return this.stepOp.length ? this.ops[this.stepOp[t]] || '' : ''; }
  moment(t) {
    const sub = this.stepSub && this.stepSub[t] !== this.stepSub[0] ? ' in subgraph ' + this.stepSub[t] : '';
    return (t + ' ' + this.op(t)).trim() + sub;
  }
  // A capacity far above the arena would leave the picture empty.
  limit() { return this.capacity !== null && this.capacity <= 2 * Math.max(this.arena, this.bound) ? this.capacity : 0; }
  subgraph(i) { return this.sub ? this.sub[i] : 0; }
  label(i) { return (this.subgraph(i) > 0 ? this.subgraph(i) + ':' : '') + this.id[i]; }
  full(i) { return this.name[i] && this.name[i] !== this.id[i] ? this.label(i) + ' ' + this.name[i] : this.label(i); }
  kindOf(i) { return this.words[this.kind[i]]; }
  form(i) { return [this.words[this.shape[i]], this.words[this.type[i]]].filter(Boolean).join(' '); }
  writer(i) { const k = this.kindOf(i); return k === 'input' || k === 'input+output' ? '(input)' : this.op(this.from[i]) || k; }
  before(i) {
    return this.uses[i].map(([w, begins, ended, a, b]) => ({ row: w, text: ended < 0
      ? 'in place: the same bytes as ' + this.full(w)
      : this.full(w) + ', whose bytes ' + group(a) + '..' + group(b) + ' it takes over: ' + this.label(w) + ' ends at ' + this.moment(ended) + ', this begins at ' + this.moment(begins) }));
  }
  next(i) {
    if (!this.after) {
      this.after = this.id.map(() => []);
      this.uses.forEach((list, row) => list.forEach(([w, begins, ended, a, b]) => this.after[w].push([row, begins, ended, a, b])));
    }
    return this.after[i].map(([row, begins, ended, a, b]) => ({ row, text: ended < 0
      ? 'in place: ' + this.full(row) + ' is the same bytes'
      : this.full(row) + ', which takes bytes ' + group(a) + '..' + group(b) + ' over at ' + this.moment(begins) + ' since this ended at ' + this.moment(ended) }));
  }
  facts(i) {
    const where = this.offset[i] !== null ? group(this.offset[i]) : this.persist[i] !== null ? group(this.persist[i]) + ' in the persistent arena' : 'none: no arena bytes';
    const life = this.spans[i].length ? this.moment(this.from[i]) + ' to ' + this.moment(this.to[i]) + (this.kept[i] ? ' and beyond' : '') : 'never alive';
    const pieces = this.spans[i].length > 2 ? ', in ' + this.spans[i].length / 2 + ' pieces' : '';
    const list = [['name', this.name[i] || '(none)'], ['id', this.label(i)], ['kind', this.kindOf(i)], ['shape, type', this.form(i) || 'unknown'],
      ['bytes', group(this.size[i]) + (this.size[i] !== null ? ' (' + human(this.size[i]) + ')' : '')], ['offset', where], ['alive', life + pieces]];
    if (this.offset[i] !== null) list.push(['idle bytes above', group(this.idle[i])]);
    return list;
  }
  brief(i) {
    const f = this.facts(i);
    const some = (what, rows) => rows.slice(0, 2).map(r => '\n' + what + ': ' + r.text).join('') + (rows.length > 2 ? '\n' + what + ': ' + (rows.length - 2) + ' more' : '');
    return f[0][1] + '\n' + f[3][1] + ', ' + f[2][1] + '\n' + f[4][1] + ' at offset ' + f[5][1] + '\nalive ' + f[6][1] +
      some('bytes before', this.before(i)) + some('bytes after', this.next(i));
  }
  alive(i, t) { const s = this.spans[i]; for (let k = 0; k < s.length; k += 2) if (s[k] <= t && t <= s[k + 1]) return true; return false; }
  matches(text) {
    const want = text.trim().toLowerCase();
    return want ? this.path.filter(i => this.name[i].toLowerCase().includes(want) || this.label(i) === want || this.form(i).includes(want) || this.writer(i).toLowerCase() === want) : [];
  }
}
