//! Chromium without a window, driven over its DevTools pipe: real pointer and key events, no driver to install.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{json, Value};

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Value,
    next: u64,
    /// Uncaught exceptions of the page.
    pub errors: Vec<String>,
    profile: std::path::PathBuf,
}

impl Browser {
    /// Starts it; `None`, said loudly, where there is none.
    pub fn start(width: u32, height: u32) -> Option<Browser> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        // Some systems have a program of that name that only says how to get the browser.
        let works = |n: &&str| Command::new(n).arg("--version").output().is_ok_and(|o| o.status.success());
        let found = names.into_iter().find(works);
        let Some(name) = found.filter(|_| cfg!(unix)) else {
            let _ = writeln!(std::io::stderr(), "SKIPPED: no chromium; the page is not driven");
            return None;
        };
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("arenite-chromium-{}-{number}", std::process::id()));
        // The pipe is descriptors 3 and 4 of the browser; a shell puts our two there.
        // Containers have little shared memory, which a browser would rather use than files.
        let script = format!(
            "exec {name} --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
             --window-size={width},{height} --user-data-dir=\"$0\" --remote-debugging-pipe about:blank \
             3<&0 4>&1 </dev/null >/dev/null 2>&1"
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(&profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take().expect("a pipe");
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut browser = Browser { child, to, from, session: Value::Null, next: 0, errors: Vec::new(), profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].clone();
        browser.call("Page.enable", json!({}));
        browser.call("Runtime.enable", json!({}));
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", size);
        Some(browser)
    }

    /// One command and its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.to.write_all(message.to_string().as_bytes()).expect("the browser listens");
        self.to.write_all(b"\0").expect("the browser listens");
        self.to.flush().expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).expect("the browser answers");
            assert!(!bytes.is_empty(), "the browser went away during {method}");
            bytes.pop();
            let answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            if answer["method"] == "Runtime.exceptionThrown" {
                self.errors.push(answer["params"]["exceptionDetails"].to_string());
            }
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Opens a file and waits until the page says that it is ready. Returns the time to the first paint in milliseconds.
    pub fn open(&mut self, path: &str) -> f64 {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._".contains(&b);
        let url: String =
            path.bytes().map(|b| if plain(b) { char::from(b).into() } else { format!("%{b:02X}") }).collect();
        self.call("Page.navigate", json!({"url": format!("file://{url}")}));
        // Minutes, which only a page that never comes takes.
        let ready =
            "(async () => { for (let i = 0; i < 6000 && document.documentElement.dataset.ready !== 'yes'; i++) \
                     await new Promise(r => setTimeout(r, 50)); return document.documentElement.dataset.ready; })()";
        for _ in 0..2000 {
            let here = self.eval("location.protocol === 'file:' && document.readyState !== 'loading'");
            if here == json!(true) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(self.eval(ready), "yes", "{:?}", self.errors);
        self.frame();
        // The entry comes a little after the paint.
        let paint = "(async () => { for (let i = 0; i < 40; i++) { const p = performance.getEntriesByName('first-contentful-paint')[0]; \
                     if (p) return p.startTime; await new Promise(r => setTimeout(r, 50)); } return -1; })()";
        self.eval(paint).as_f64().unwrap_or(-1.0)
    }

    /// Waits for two frames, so that what was asked for is drawn.
    pub fn frame(&mut self) {
        self.eval("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))");
    }

    /// Moves the pointer, with or without the button down.
    pub fn mouse(&mut self, kind: &str, (x, y): (f64, f64), down: bool) {
        let button = if kind == "mouseMoved" && !down { "none" } else { "left" };
        let clicks = u32::from(kind != "mouseMoved");
        let params =
            json!({"type": kind, "x": x, "y": y, "button": button, "buttons": u32::from(down), "clickCount": clicks});
        self.call("Input.dispatchMouseEvent", params);
    }

    /// A click.
    pub fn click(&mut self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, false);
        self.mouse("mousePressed", at, true);
        self.mouse("mouseReleased", at, false);
        self.frame();
    }

    /// The middle of what a selector finds, scrolled into view.
    pub fn middle(&mut self, selector: &str) -> (f64, f64) {
        let script = format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center'}}); const r = \
             e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; }})()",
            json!(selector)
        );
        let at = self.eval(&script);
        (at[0].as_f64().expect("x"), at[1].as_f64().expect("y"))
    }

    /// Turns the wheel.
    pub fn wheel(&mut self, (x, y): (f64, f64), by: f64) {
        self.call("Input.dispatchMouseEvent", json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": by}));
        self.frame();
    }

    /// Presses a key that has a name.
    pub fn key(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "keyUp"] {
            let params = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", params);
        }
        self.frame();
    }

    /// Types text.
    pub fn text(&mut self, text: &str) {
        for c in text.chars() {
            let c = c.to_string();
            self.call("Input.dispatchKeyEvent", json!({"type": "keyDown", "key": c, "text": c}));
            self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": c}));
        }
        self.frame();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
