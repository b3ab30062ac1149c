// One map on a canvas: what is in view is drawn, what is not is skipped.
const LEFT = 74, RIGHT = 10, TOP = 30, BOTTOM = 26;
class MemoryMap {
  constructor(plan, index, heading, page) {
    Object.assign(this, { plan, index, page, hits: new Set(), chosen: -1, hover: -1, subgraph: -1 });
    this.canvas = node('canvas', { tabindex: 0, role: 'application', 'aria-roledescription': 'memory map',
      'aria-describedby': 'help', 'data-map': index });
    this.canvas.append('The table of tensors below holds everything this picture shows.');
    this.canvas.setAttribute('aria-label', 'Memory map of ' + heading + ': ' + plan.placed.length + ' blocks over ' + (plan.last - plan.first + 1) +
      ' steps, arena ' + human(plan.arena) + ', peak ' + human(plan.peak[1]) + ' at step ' + plan.moment(plan.peak[0]));
    this.box = node('div', { class: 'map' }, node('h2', {}, heading), node('p', { class: 'facts' }), this.canvas);
    const gap = plan.arena - plan.peak[1];
    this.box.querySelector('.facts').textContent = 'arena ' + group(plan.arena) + ' B (' + human(plan.arena) + '), bound ' + group(plan.bound) + ' B, ' +
      plan.buffers + ' blocks, ' + plan.strategy + (plan.capacity === null ? '' : ', capacity ' + group(plan.capacity) + ' B') + (gap > 0 ? '; ' + group(gap) + ' B more than is alive at the peak: alignment ' + group(plan.cost[1]) + ', holes ' + group(plan.cost[2]) + ', above ' + group(plan.cost[3]) : '');
    this.fit();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }
  fit() { this.view = { x0: this.plan.first, x1: this.plan.last + 1, y0: 0, y1: Math.max(1, this.top() * 1.04) }; }
  top() { return this.page.sameScale ? this.page.top : Math.max(this.plan.arena, this.plan.bound, this.plan.limit()); }
  x(t) { return LEFT + (t - this.view.x0) / (this.view.x1 - this.view.x0) * (this.w - LEFT - RIGHT); }
  y(b) { return this.h - BOTTOM - (b - this.view.y0) / (this.view.y1 - this.view.y0) * (this.h - TOP - BOTTOM); }
  time(px) { return this.view.x0 + (px - LEFT) / (this.w - LEFT - RIGHT) * (this.view.x1 - this.view.x0); }
  bytes(py) { return this.view.y0 + (this.h - BOTTOM - py) / (this.h - TOP - BOTTOM) * (this.view.y1 - this.view.y0); }
  zoom(f, px, py) {
    const t = this.time(px), b = this.bytes(py), v = this.view;
    this.show(t - (t - v.x0) * f, t + (v.x1 - t) * f, b - (b - v.y0) * f, b + (v.y1 - b) * f);
  }
  // The part to show, kept inside the picture.
  show(x0, x1, y0, y1) {
    const p = this.plan, top = Math.max(1, this.top() * 1.04), all = p.last + 1 - p.first;
    const w = Math.min(all, Math.max(Math.min(1, all), x1 - x0)), h = Math.min(top, Math.max(Math.min(16, top), y1 - y0));
    x0 = Math.min(Math.max(p.first, x0), p.last + 1 - w);
    y0 = Math.min(Math.max(0, y0), top - h);
    this.view = { x0, x1: x0 + w, y0, y1: y0 + h };
    this.later();
  }
  pan(dx, dy) { const v = this.view, w = v.x1 - v.x0, h = v.y1 - v.y0; this.show(v.x0 + dx * w, v.x1 + dx * w, v.y0 + dy * h, v.y1 + dy * h); }
  reveal(i) {
    const v = this.view, p = this.plan, a = p.from[i], b = p.to[i] + 1, lo = p.offset[i], hi = lo + p.size[i];
    let { x0, x1, y0, y1 } = v;
    if (b <= x0 || a >= x1) { const w = x1 - x0; x0 = a - w / 3; x1 = x0 + w; }
    if (hi <= y0 || lo >= y1) { const h = y1 - y0; y0 = lo - h / 3; y1 = y0 + h; }
    this.show(x0, x1, y0, y1);
  }
  visible(i) { return this.subgraph < 0 || this.plan.subgraph(i) === this.subgraph; }
  at(px, py) {
    if (px < LEFT || py < TOP || py > this.h - BOTTOM) return -1;
    const t = this.time(px), b = this.bytes(py), p = this.plan, step = Math.floor(t);
    // A thin block is easier to meet: half a pixel in bytes to both sides.
    const slack = (this.view.y1 - this.view.y0) / (this.h - TOP - BOTTOM) * .5;
    for (let k = p.drawn.length - 1; k >= 0; k--) {
      const i = p.drawn[k];
      if (p.from[i] <= t && t < p.to[i] + 1 && p.offset[i] - slack <= b && b < p.offset[i] + p.size[i] + slack && this.visible(i) && p.alive(i, step)) return i;
    }
    return -1;
  }
  later() { if (!this.waiting) { this.waiting = true; requestAnimationFrame(() => { this.waiting = false; this.draw(); }); } }
  draw() {
    const c = this.canvas, dpr = window.devicePixelRatio || 1, r = c.getBoundingClientRect();
    this.w = Math.max(120, r.width); this.h = Math.max(120, r.height);
    const W = Math.round(this.w * dpr), H = Math.round(this.h * dpr);
    if (c.width !== W || c.height !== H) { c.width = W; c.height = H; }
    const g = c.getContext('2d'), css = getComputedStyle(document.documentElement), col = n => css.getPropertyValue('--' + n).trim();
    g.setTransform(dpr, 0, 0, dpr, 0, 0);
    g.fillStyle = col('bg'); g.fillRect(0, 0, this.w, this.h);
    g.font = '11px system-ui,sans-serif';
    this.axes(g, col);
    g.save();
    g.beginPath(); g.rect(LEFT, TOP, this.w - LEFT - RIGHT, this.h - TOP - BOTTOM); g.clip();
    this.blocks(g, col);
    this.overlay(g, col);
    g.restore();
    this.bands(g, col);
  }
  axes(g, col) {
    const v = this.view;
    g.textAlign = 'right'; g.textBaseline = 'middle';
    const raw = (v.y1 - v.y0) / 7, step = Math.max(1, 2 ** Math.round(Math.log2(raw)));
    for (let b = Math.ceil(v.y0 / step) * step; b <= v.y1; b += step) {
      const y = this.y(b);
      g.fillStyle = col('line'); g.fillRect(LEFT, y, this.w - LEFT - RIGHT, 1);
      g.fillStyle = col('soft'); g.fillText(human(b), LEFT - 6, y);
    }
    g.textAlign = 'center'; g.textBaseline = 'top';
    const n = Math.max(1, Math.ceil((v.x1 - v.x0) / Math.max(2, Math.floor((this.w - LEFT) / 90)))), mag = 10 ** Math.floor(Math.log10(n));
    const each = [1, 2, 5, 10].map(k => k * mag).find(k => k >= n);
    for (let t = Math.ceil(v.x0 / each) * each; t < v.x1; t += each) g.fillText(String(t), this.x(t + .5), this.h - BOTTOM + 5);
    g.textAlign = 'left'; g.fillText('step', LEFT - 40, this.h - BOTTOM + 5);
  }
  blocks(g, col) {
    const p = this.plan, v = this.view, of = this.colours.of, edge = col('edge'), dim = this.hits.size > 0;
    for (const i of p.drawn) {
      if (p.to[i] + 1 <= v.x0 || p.from[i] >= v.x1 || p.offset[i] >= v.y1 || p.offset[i] + p.size[i] <= v.y0 || !this.visible(i)) continue;
      const y0 = this.y(p.offset[i] + p.size[i]), hh = Math.max(.6, this.y(p.offset[i]) - y0), s = p.spans[i];
      g.globalAlpha = dim && !this.hits.has(i) ? .25 : 1;
      for (let k = 0; k < s.length; k += 2) {
        const x0 = this.x(s[k]), ww = Math.max(.6, this.x(s[k + 1] + 1) - x0);
        if (x0 > this.w || x0 + ww < LEFT) continue;
        g.fillStyle = of[i]; g.fillRect(x0, y0, ww, hh);
        if (ww > 4 && hh > 4) { g.strokeStyle = edge; g.lineWidth = 1; g.strokeRect(x0 + .5, y0 + .5, ww - 1, hh - 1); }
        // The part of a block that is in view carries its name.
        const a = Math.max(x0, LEFT), room = Math.min(x0 + ww, this.w - RIGHT) - a - 6;
        if (hh >= 13 && room > 16) {
          const fits = Math.floor(room / 6), name = p.name[i] || p.label(i);
          const half = Math.floor(fits / 2) - 1, id = p.label(i);
          // An id cut short would be another one's.
          const text = name.length <= fits ? name : fits >= 10 ? name.slice(0, half) + '\u2026' + name.slice(-half) : id.length <= fits ? id : '';
          g.fillStyle = ink(of[i]); g.textAlign = 'left'; g.textBaseline = 'middle'; g.fillText(text, a + 3, y0 + hh / 2, room);
        }
      }
    }
    g.globalAlpha = 1;
  }
  overlay(g, col) {
    const p = this.plan, [pt] = p.peak, px = this.x(pt), pw = Math.max(2, this.x(pt + 1) - px);
    g.strokeStyle = col('peak'); g.lineWidth = 2; g.strokeRect(px, TOP - 2, pw, this.h);
    g.strokeStyle = col('bg'); g.lineWidth = 4; this.curve(g);
    g.strokeStyle = col('live'); g.lineWidth = 1.6; this.curve(g);
    g.strokeStyle = col('bound'); g.lineWidth = 2; g.setLineDash([7, 4]);
    const across = b => { g.beginPath(); g.moveTo(LEFT, this.y(b)); g.lineTo(this.w, this.y(b)); g.stroke(); };
    across(p.bound);
    if (p.capacity !== null) { g.strokeStyle = col('limit'); g.setLineDash([2, 3]); across(p.capacity); }
    g.setLineDash([]);
    const mark = (i, width, colour) => {
      if (i < 0) return;
      const s = p.spans[i], y0 = this.y(p.offset[i] + p.size[i]), hh = Math.max(3, this.y(p.offset[i]) - y0);
      for (let k = 0; k < s.length; k += 2) { const x0 = this.x(s[k]); g.lineWidth = width; g.strokeStyle = colour; g.strokeRect(x0, y0, Math.max(3, this.x(s[k + 1] + 1) - x0), hh); }
    };
    if (this.hits.size <= 200) for (const i of this.hits) mark(i, 2, col('fg'));
    mark(this.hover, 2, col('fg'));
    mark(this.chosen, 5, col('bg')); mark(this.chosen, 3, col('accent'));
  }
  curve(g) {
    const p = this.plan, live = p.live, v = this.view;
    let k = 0, last = 0;
    // From the change before the view on.
    let lo = 0, hi = live.length;
    while (lo < hi) { const m = (lo + hi) >> 1; if (live[m][0] <= v.x0) lo = m + 1; else hi = m; }
    k = Math.max(0, lo - 1);
    if (k > 0) last = live[k - 1][1];
    g.beginPath(); g.moveTo(this.x(Math.max(p.first, v.x0)), this.y(last));
    if ((v.x1 - v.x0) > 2 * this.w) {
      // Several steps a pixel: the most alive at any of them, or the line would be a black band.
      for (let px = LEFT; px <= this.w - RIGHT; px++) {
        const end = this.time(px + 1);
        let most = last;
        for (; k < live.length && live[k][0] < end; k++) { last = live[k][1]; most = Math.max(most, last); }
        g.lineTo(px + .5, this.y(most));
      }
      g.stroke();
      return;
    }
    for (; k < live.length && live[k][0] <= v.x1; k++) { const x = this.x(live[k][0]); g.lineTo(x, this.y(last)); last = live[k][1]; g.lineTo(x, this.y(last)); }
    g.lineTo(this.x(Math.min(v.x1, p.last + 1)), this.y(last)); g.stroke();
  }
  // Above the map: the mark of the peak, and a stripe per called subgraph.
  bands(g, col) {
    const p = this.plan, x = this.x(p.peak[0] + .5);
    if (p.stepSub) {
      g.textBaseline = 'middle'; g.textAlign = 'left';
      for (let t = p.first; t <= p.last;) {
        let e = t; while (e <= p.last && p.stepSub[e] === p.stepSub[t]) e++;
        const a = Math.max(LEFT, this.x(t)), b = Math.min(this.w - RIGHT, this.x(e)), k = p.stepSub[t];
        if (b > a) { g.fillStyle = k === p.stepSub[0] ? col('panel') : HUES[k % HUES.length]; g.fillRect(a, 1, b - a, 13); if (b - a > 24 && k !== p.stepSub[0]) { g.fillStyle = '#000'; g.fillText('subgraph ' + k, a + 3, 8, b - a - 4); } }
        t = e;
      }
    }
    if (x >= LEFT && x <= this.w - RIGHT) {
      g.fillStyle = col('peak'); g.beginPath(); g.moveTo(x - 7, 16); g.lineTo(x + 7, 16); g.lineTo(x, TOP - 2); g.fill();
      g.fillStyle = col('fg'); g.textBaseline = 'middle'; g.textAlign = x > this.w / 2 ? 'right' : 'left';
      g.fillText('peak ' + human(p.peak[1]), x + (x > this.w / 2 ? -11 : 11), 21);
    }
  }
  listen() {
    const c = this.canvas, spot = e => { const r = c.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
    const down = new Map();
    let moved = false, apart = 0;
    c.addEventListener('wheel', e => { e.preventDefault(); const [x, y] = spot(e); this.zoom(Math.exp(Math.sign(e.deltaY) * Math.min(.5, Math.abs(e.deltaY) / 400)), x, y); }, { passive: false });
    c.addEventListener('pointerdown', e => { down.set(e.pointerId, spot(e)); moved = false; apart = 0; c.setPointerCapture(e.pointerId); });
    c.addEventListener('pointermove', e => {
      const [x, y] = spot(e), from = down.get(e.pointerId);
      if (!from) { this.page.point(this, this.at(x, y), e); return; }
      if (Math.hypot(x - from[0], y - from[1]) > 3) moved = true;
      if (!moved) return;
      if (down.size === 1) this.pan((from[0] - x) / (this.w - LEFT - RIGHT), (y - from[1]) / (this.h - TOP - BOTTOM));
      down.set(e.pointerId, [x, y]);
      if (down.size === 2) {
        const [a, b] = [...down.values()], d = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (apart > 0 && d > 0) this.zoom(apart / d, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        apart = d;
      }
    });
    const up = e => { if (down.delete(e.pointerId) && !moved && e.type === 'pointerup') { const [x, y] = spot(e); this.page.choose(this, this.at(x, y), false); } };
    c.addEventListener('pointerup', up); c.addEventListener('pointercancel', up);
    c.addEventListener('pointerleave', () => this.page.point(this, -1));
    c.addEventListener('keydown', e => this.key(e));
  }
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }, by = arrows[e.key];
    if (by && e.shiftKey) this.pan(by[0] * .2, by[1] * .2);
    else if (by) this.page.choose(this, by[0] ? this.along(by[0]) : this.across(by[1]), true);
    else if (e.key === 'Home' || e.key === 'End') { const path = this.plan.path.filter(i => this.visible(i)); this.page.choose(this, path.length ? path[e.key === 'Home' ? 0 : path.length - 1] : -1, true); }
    else if (e.key === '+' || e.key === '=') this.zoom(.7, this.w / 2, this.h / 2);
    else if (e.key === '-') this.zoom(1 / .7, this.w / 2, this.h / 2);
    else if (e.key === '0') { this.fit(); this.later(); }
    else if (e.key === 'p' || e.key === 'P') this.peak();
    else if (e.key === 'Enter' || e.key === ' ') this.page.choose(this, this.chosen < 0 ? this.plan.peakRows[0] ?? -1 : this.chosen, true);
    else if (e.key === 'Escape') this.page.choose(this, -1, true);
    else return;
    e.preventDefault();
  }
  along(d) {
    const p = this.plan;
    for (let k = this.chosen < 0 ? (d > 0 ? 0 : p.path.length - 1) : p.place.get(this.chosen) + d; k >= 0 && k < p.path.length; k += d) if (this.visible(p.path[k])) return p.path[k];
    return this.chosen;
  }
  // The next block above or below among those alive when the chosen one begins.
  across(d) {
    const p = this.plan, i = this.chosen;
    if (i < 0) return this.along(1);
    let best = -1;
    for (const j of p.placed) {
      if (j === i || !this.visible(j) || !p.alive(j, p.from[i]) || (p.offset[j] - p.offset[i]) * d <= 0) continue;
      if (best < 0 || (p.offset[j] - p.offset[best]) * d < 0) best = j;
    }
    return best < 0 ? i : best;
  }
  peak() {
    const p = this.plan, w = Math.min(p.last + 1 - p.first, Math.max(12, (p.last - p.first) / 20));
    this.show(p.peak[0] + .5 - w / 2, p.peak[0] + .5 + w / 2, 0, this.top() * 1.04);
    this.page.choose(this, p.peakRows[0] ?? -1, true);
  }
}
