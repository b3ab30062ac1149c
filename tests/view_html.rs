//! The memory map in a real browser: pointer, keyboard, search, zoom, comparison, and what assistive technology sees.
#![cfg(feature = "cli")]

mod browser;
mod common;

use std::io::Write as _;

use browser::Browser;
use common::{arenite, Rng, Temp};

/// A chain with skip connections.
fn problem(n: u64) -> String {
    let (mut rng, mut text) = (Rng(7), String::from("id,lower,upper,size,name\n"));
    for i in 0..n {
        let life = if rng.below(5) > 0 { 2 } else { 3 + rng.below((n / 10).clamp(2, 300)) };
        let size = [4096, 8192, 16384, 65536, 100_352, 401_408][rng.below(6) as usize];
        text += &format!("{i},{i},{},{size},block{}/layer{i}/conv\n", i + life, i / 10);
    }
    text
}

/// A place of the page where the block of `row` (an expression) of map `k` is.
fn spot(b: &mut Browser, k: usize, row: &str) -> (f64, f64) {
    let at = b.eval(&format!(
        "(() => {{ const m = arenite.maps[{k}], p = m.plan, i = {row}; m.canvas.scrollIntoView({{block: 'center'}}); const r = \
         m.canvas.getBoundingClientRect(); return [r.left + m.x((p.from[i] + p.to[i] + 1) / 2), r.top + m.y(p.offset[i] + \
         p.size[i] / 2)]; }})()"
    ));
    (at[0].as_f64().expect("x"), at[1].as_f64().expect("y"))
}

fn width(b: &mut Browser) -> f64 {
    b.eval("arenite.maps[0].view.x1 - arenite.maps[0].view.x0").as_f64().expect("a width")
}

fn pointer(b: &mut Browser) {
    let at = spot(b, 0, "p.peakRows[0]");
    b.mouse("mouseMoved", at, false);
    b.frame();
    let tip = b.eval("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent");
    let tip = tip.as_str().expect("text");
    assert!(
        tip.contains(" at offset ")
            && (tip.contains("bytes before: ") || tip.contains("bytes after: "))
            && tip.contains("layer")
            && tip.contains(" to "),
        "{tip:?}"
    );
    b.click(at);
    let detail = b.eval("document.getElementById('detail').textContent");
    for part in ["name", "shape, type", "bytes", "offset", "alive", "idle bytes above"] {
        assert!(detail.as_str().expect("text").contains(part), "{part} in {detail}");
    }
    let all = width(b);
    b.wheel(at, -400.0);
    let near = width(b);
    assert!(near < all * 0.8, "{near} of {all}");
    let before = b.eval("arenite.maps[0].view.x0").as_f64();
    b.mouse("mousePressed", at, true);
    for step in 1..=5 {
        b.mouse("mouseMoved", (at.0 - 20.0 * f64::from(step), at.1), true);
    }
    b.mouse("mouseReleased", (at.0 - 100.0, at.1), false);
    b.frame();
    assert!(b.eval("arenite.maps[0].view.x0").as_f64() >= before, "a drag pans");
    let fit = b.middle("#fit");
    b.click(fit);
    assert_eq!(width(b), all);
    let plus = b.middle("#zin");
    b.click(plus);
    assert!(width(b) < all);
    b.click(fit);
}

fn keyboard(b: &mut Browser) {
    // From the top of the page to the map by Tab alone.
    b.eval("document.activeElement.blur(); window.scrollTo(0, 0); document.body.tabIndex = -1; document.body.focus()");
    let on_map = "document.activeElement.tagName === 'CANVAS'";
    let tabs = (0..20).position(|_| {
        b.key("Tab", 9);
        b.eval(on_map) == true
    });
    assert!(tabs.is_some(), "the map is in the tab order");
    b.key("Home", 36);
    let first = b.eval("arenite.maps[0].chosen");
    assert_eq!(first, b.eval("arenite.plans[0].path[0]"));
    b.key("ArrowRight", 39);
    assert_eq!(b.eval("arenite.maps[0].chosen"), b.eval("arenite.plans[0].path[1]"));
    let said = b.eval("document.getElementById('say').textContent");
    assert!(said.as_str().expect("text").contains("offset "), "{said}");
    b.key("ArrowUp", 38);
    b.text("+");
    assert!(width(b) < b.eval("arenite.plans[0].last + 1").as_f64().expect("steps"));
    b.text("0");
    b.text("p");
    assert_eq!(b.eval("arenite.maps[0].chosen"), b.eval("arenite.plans[0].peakRows[0]"));
    b.key("Escape", 27);
    assert_eq!(b.eval("arenite.maps[0].chosen"), -1);
    b.text("0");
}

fn search(b: &mut Browser, n: u64) {
    let at = b.middle("#search");
    b.click(at);
    b.text(&format!("layer{}/", n / 2));
    assert_eq!(b.eval("document.getElementById('found').textContent"), "1 found");
    b.key("Enter", 13);
    assert_eq!(b.eval("arenite.maps[0].chosen"), n / 2);
    assert_eq!(b.eval("document.querySelectorAll('#table tbody tr').length"), 1, "the table follows the search");
    b.eval(
        "(() => { const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input')); })()",
    );
}

fn accessible(b: &mut Browser) {
    b.call("Accessibility.enable", serde_json::json!({}));
    let tree = b.call("Accessibility.getFullAXTree", serde_json::json!({}));
    let nodes = tree["nodes"].as_array().expect("nodes");
    let of =
        |role: &str| nodes.iter().filter(|n| n["role"]["value"] == role && n["ignored"] != true).collect::<Vec<_>>();
    for role in ["button", "searchbox", "combobox", "application"] {
        let list = of(role);
        assert!(!list.is_empty(), "{role}");
        for n in list {
            assert!(n["name"]["value"].as_str().is_some_and(|s| !s.is_empty()), "a {role} without a name: {n}");
        }
    }
    assert!(of("columnheader").len() >= 8 && !of("heading").is_empty() && of("main").len() == 1);
    assert_eq!(b.eval("document.documentElement.lang + document.querySelectorAll('h1').length"), "en1");
    // Text stands out from what is behind it, in light and dark: WCAG AA.
    let contrast = "(() => { const lum = c => { const v = c.match(/\\w\\w/g).map(x => parseInt(x, 16) / 255).map(x => x <= \
        .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; }; const hex = n => \
        { let c = getComputedStyle(document.documentElement).getPropertyValue('--' + n).trim().slice(1); return c.length === 3 ? \
        [...c].map(x => x + x).join('') : c; }; const bg = lum(hex('bg')); return Math.min(...['fg', 'soft', 'accent', \
        'bound'].map(n => { const l = lum(hex(n)); return (Math.max(l, bg) + .05) / (Math.min(l, bg) + .05); })); })()";
    for theme in ["light", "dark"] {
        b.eval(&format!("document.documentElement.dataset.theme = '{theme}'"));
        let least = b.eval(contrast).as_f64().expect("a ratio");
        assert!(least >= 4.5, "{theme}: {least}");
    }
    b.eval("document.documentElement.dataset.theme = 'light'");
    axe(b);
    b.call("Emulation.setEmulatedMedia", serde_json::json!({"media": "print"}));
    assert_eq!(b.eval("getComputedStyle(document.getElementById('controls')).display"), "none", "no controls on paper");
    b.call("Emulation.setEmulatedMedia", serde_json::json!({"media": ""}));
}

/// The rules of axe-core, where it was installed: `ARENITE_AXE` names its axe.min.js.
fn axe(b: &mut Browser) {
    let Some(path) = std::env::var_os("ARENITE_AXE") else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: ARENITE_AXE names no axe.min.js; only our own accessibility checks were made"
        );
        return;
    };
    b.eval(&std::fs::read_to_string(path).expect("axe-core"));
    for theme in ["light", "dark"] {
        b.eval(&format!("document.documentElement.dataset.theme = '{theme}'"));
        let found = b.eval(
            "axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html).slice(0, 3)])) + r.passes.length)",
        );
        let found = found.as_str().expect("text").to_string();
        let passed: u32 = found.trim_start_matches("[]").parse().unwrap_or(0);
        assert!(found.starts_with("[]") && passed > 30, "{theme}: {found}");
    }
    b.eval("document.documentElement.dataset.theme = 'light'");
}

fn drive(n: u64) {
    let Some(mut b) = Browser::start(1300, 1000) else { return };
    let temp = Temp::new(&format!("view{n}"));
    let (csv, page) = (temp.file("p.csv", problem(n)), temp.path("p.html"));
    assert_eq!(arenite(&["view", &csv, "--align", "64", "-o", &page]).code, 0);
    let paint = b.open(&page);
    let bytes = std::fs::metadata(&page).expect("the page").len();
    let drawn = b.eval("document.documentElement.dataset.drawn");
    println!("{n} tensors: {bytes} bytes, first paint after {paint:.0} ms, the map is there after {drawn} ms");
    assert_eq!(b.eval("performance.getEntriesByType('resource').length"), 0, "nothing is loaded");
    assert_eq!(b.eval("arenite.plans[0].placed.length"), n);
    pointer(&mut b);
    keyboard(&mut b);
    search(&mut b, n);
    for by in ["op", "size", "waste", "life", "kind"] {
        b.eval(&format!("(() => {{ const s = document.getElementById('colour'); s.value = '{by}'; s.dispatchEvent(new Event('change')); }})()"));
        b.frame();
        assert!(b.eval("document.querySelectorAll('#legend span').length").as_u64() >= Some(4), "{by}");
    }
    accessible(&mut b);
    assert!(b.errors.is_empty(), "{:?}", b.errors);
}

#[test]
fn thirty_tensors() {
    drive(30);
}

#[test]
fn five_hundred_tensors() {
    drive(500);
}

#[test]
fn ten_thousand_tensors() {
    drive(10_000);
}

#[test]
fn two_plans_side_by_side() {
    let Some(mut b) = Browser::start(1300, 1000) else { return };
    let temp = Temp::new("view-two");
    let (a, page) = (temp.file("a.csv", problem(40)), temp.path("p.html"));
    let other = temp.file("b.csv", problem(40).replace("\n7,7,", "\n7,5,").replace("\n9,9,", "\nx9,9,"));
    assert_eq!(arenite(&["view", &a, "--compare", &other, "-o", &page]).code, 0);
    b.open(&page);
    assert_eq!(b.eval("document.querySelectorAll('canvas').length"), 2);
    let at = spot(&mut b, 0, "p.peakRows[0]");
    b.mouse("mouseMoved", at, false);
    b.frame();
    assert!(b.eval("arenite.maps[1].hover").as_i64() >= Some(0), "the same tensor is marked in the other plan");
    let tensors = b.eval("document.getElementById('difftable').textContent");
    assert!(tensors.as_str().expect("text").contains("layer7/conv"), "{tensors}");
    assert!(b.errors.is_empty(), "{:?}", b.errors);
}

/// Two versions: the pointer finds the same tensor in both, and search, zoom and the tables serve either.
#[test]
fn a_comparison_without_a_mouse() {
    let Some(mut b) = Browser::start(1300, 1000) else { return };
    let temp = Temp::new("view-keys");
    let (a, page) = (temp.file("a.csv", problem(60)), temp.path("p.html"));
    let other = temp.file("b.csv", problem(60).replace(",401408,", ",200704,"));
    assert_eq!(arenite(&["view", &a, "--compare", &other, "-o", &page]).code, 0);
    b.open(&page);
    assert_eq!(b.eval("[...document.querySelectorAll('.map h2')].map(h => h.textContent[0]).join('')"), "AB");
    // Tab goes through every control, both maps and the tables, each time with a visible focus.
    b.eval("document.body.tabIndex = -1; document.body.focus()");
    let mut seen = Vec::new();
    for _ in 0..16 {
        b.key("Tab", 9);
        let now = b.eval(
            "(() => { const e = document.activeElement, s = getComputedStyle(e); return [e.id || e.dataset.map || e.className, s.outlineStyle !== 'none']; })()",
        );
        assert_eq!(now[1], true, "no focus ring on {now}");
        seen.push(now[0].as_str().expect("an id").to_string());
    }
    for wanted in ["skip", "search", "next", "colour", "of", "zin", "zout", "fit", "topeak", "theme", "0", "1"] {
        assert!(seen.iter().any(|s| s == wanted), "{wanted} in {seen:?}");
    }
    b.eval("arenite.maps[0].canvas.focus()");
    b.text("p");
    let same =
        b.eval("arenite.plans[0].name[arenite.maps[0].chosen] === arenite.plans[1].name[arenite.maps[1].chosen]");
    assert_eq!(same, true, "what is chosen in one map is marked in the other");
    b.eval(
        "(() => { const s = document.getElementById('of'); s.value = '1'; s.dispatchEvent(new Event('change')); })()",
    );
    assert!(b.eval("document.querySelector('#table caption').textContent").as_str().expect("text").contains("of B"));
    b.call("Emulation.setEmulatedMedia", serde_json::json!({"media": "print"}));
    assert_eq!(b.eval("document.querySelectorAll('canvas').length"), 2, "both are on paper");
    assert!(b.errors.is_empty(), "{:?}", b.errors);
}

#[test]
fn regions_stand_side_by_side() {
    let Some(mut b) = Browser::start(1300, 1000) else { return };
    let temp = Temp::new("view-regions");
    let (a, page) = (temp.file("a.csv", problem(40)), temp.path("p.html"));
    let args = ["view", &a, "--region", "fast=512KiB", "--region", "slow", "-o", &page];
    assert_eq!(arenite(&args).code, 0);
    b.open(&page);
    let lead = b.eval("document.getElementById('lead').textContent");
    assert!(lead.as_str().expect("text").contains(" of 524\u{202f}288"), "{lead}");
    let counts = b.eval("arenite.plans.map(p => p.placed.length)");
    assert_eq!(counts[0].as_u64().unwrap() + counts[1].as_u64().unwrap(), 40);
    assert_eq!(b.eval("document.getElementById('changes').hidden"), true, "regions are not versions");
    assert_eq!(b.eval("arenite.plans[0].last === arenite.plans[1].last"), true, "one time axis");
    for k in 0..2 {
        let at = spot(&mut b, k, "p.placed[p.placed.length - 1]");
        b.click(at);
        let detail = b.eval("document.getElementById('detail').textContent");
        assert!(detail.as_str().expect("text").contains("layer"), "{detail}");
    }
    assert_eq!(b.eval("arenite.maps[0].chosen"), -1, "one tensor is chosen at a time");
    assert!(b.errors.is_empty(), "{:?}", b.errors);
}

#[test]
fn a_name_cannot_break_out_of_the_page() {
    let temp = Temp::new("view-names");
    let evil = "</script><img src=x onerror=alert(1)>&<!--";
    let csv = temp.file("p.csv", format!("id,lower,upper,size,name\n0,0,2,64,{evil}\n"));
    let page = arenite(&["view", &csv, "-o", "-"]).out;
    assert!(!page.contains("<img") && page.matches("</script>").count() == 2, "two script elements and no more");
    assert!(!page.contains("http://") && !page.contains("https://"), "no address is loaded");
}
