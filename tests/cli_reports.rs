//! Lifetimes and placement as reported by users of other engines, through the command line. BR numbers are those of
//! the project's list of public reports.
#![cfg(feature = "cli")]

mod common;

use common::{arenite, row, tgt, Table, Temp};
use serde_json::Value;

fn arena(plan: &Value) -> u64 {
    plan["arena_bytes"].as_u64().unwrap()
}

fn apart(a: &Value, b: &Value) -> bool {
    let range =
        |r: &Value| (r["offset"].as_u64().unwrap(), r["offset"].as_u64().unwrap() + r["size"].as_u64().unwrap());
    let (a, b) = (range(a), range(b));
    a.1 <= b.0 || b.1 <= a.0
}

/// A graph table file in a directory that lives as long.
struct Graph {
    path: String,
    _dir: Temp,
}

impl Graph {
    fn new(name: &str, graphs: &[Table]) -> Graph {
        let temp = Temp::new(name);
        let path = temp.file("m.tgt", tgt(graphs));
        Graph { path, _dir: temp }
    }

    fn plan(&self, options: &[&str]) -> Value {
        arenite(&[&["plan", &self.path, "--json"], options].concat()).json_with(0)
    }

    fn text(&self, options: &[&str]) -> String {
        arenite(&[&["plan", &self.path], options].concat()).out
    }
}

/// `n` tensors, each written by its node and read by the next.
fn chain(n: usize, bytes: u64, inputs: &str, outputs: &str) -> Table {
    let mut table = Table::new(&vec![("inter", bytes); n], inputs, outputs);
    for i in 0..n {
        let from = if i == 0 { "-".into() } else { (i - 1).to_string() };
        table = table.node("CONV_2D", &from, &i.to_string(), "-");
    }
    table.node("CONV_2D", &(n - 1).to_string(), "-", "-")
}

#[test]
fn br_01_space_before_the_first_live_block_is_used() {
    let temp = Temp::new("br01");
    let path = temp.file("p.csv", "id,lower,upper,size\nA,0,2,12800\nB,1,3,10240\nC,2,4,7680\n");
    for strategy in ["auto", "first-fit", "greedy-by-size", "tflm-greedy", "exact"] {
        let plan = arenite(&["plan", &path, "--align", "128", "--json", "--strategy", strategy]).json_with(0);
        assert_eq!(arena(&plan), 23040, "{strategy}");
        assert_eq!(plan["optimal"], true);
    }
}

#[test]
fn br_02_an_input_is_shared_only_when_asked_and_the_sharer_is_named() {
    let table = Table::new(&[("input", 2048), ("inter", 2048), ("inter", 2048)], "0", "2")
        .node("CONV_2D", "0", "1", "-")
        .node("CONV_2D", "1", "2", "-")
        .node("CONV_2D", "2", "-", "-");
    let g = Graph::new("br02", &[table]);
    assert_eq!(arena(&g.plan(&[])), 6144);
    for options in [&["--reuse-inputs"][..], &["--policy", "tflm"]] {
        let plan = g.plan(options);
        assert_eq!((arena(&plan), &row(&plan, 0, 0)["offset"]), (4096, &row(&plan, 0, 2)["offset"]));
        let text = g.text(options);
        assert!(text.contains("shares with 0 \"t0\" because 0 ends at 0, before 1"), "{text}");
    }
}

#[test]
fn br_03_pinning_one_tensor_costs_one_tensor() {
    let g = Graph::new("br03", &[chain(5, 4096, "-", "-")]);
    assert_eq!(arena(&g.plan(&[])), 8192);
    for pin in ["1=5", "t1=5", "1=end", "0:t1=end"] {
        assert_eq!(arena(&g.plan(&["--pin", pin])), 12288, "{pin}");
    }
    assert_eq!(arena(&g.plan(&["--keep-all"])), 20480);
}

#[test]
fn br_05_a_tensor_that_is_input_and_output_is_kept() {
    let table = Table::new(&[("input", 1024), ("inter", 1024), ("inter", 1024)], "0", "0")
        .node("CONV_2D", "0", "1", "-")
        .node("CONV_2D", "1", "2", "-")
        .node("CONV_2D", "2", "-", "-");
    let g = Graph::new("br05", &[table]);
    let plan = g.plan(&["--reuse-inputs"]);
    assert_eq!(arena(&plan), 3072);
    assert!(apart(row(&plan, 0, 0), row(&plan, 0, 2)));
    assert_eq!(row(&plan, 0, 0)["last"], 2);
}

#[test]
fn br_06_a_loop_gives_unread_inputs_bytes() {
    let outer = Table::new(&[("input", 4), ("input", 48), ("inter", 4), ("inter", 48)], "0,1", "2,3")
        .node("WHILE", "0,1", "2,3", "1,2");
    let cond = Table::new(&[("input", 4), ("input", 48), ("inter", 1)], "0,1", "2").node("LESS", "0", "2", "-");
    let body = Table::new(&[("input", 4), ("input", 48), ("inter", 4), ("inter", 48)], "0,1", "2,3")
        .node("FILL", "-", "2", "-")
        .node("CONV_2D", "1", "3", "-");
    let g = Graph::new("br06", &[outer, cond, body]);
    let plan = g.plan(&[]);
    let (counter, data) = (row(&plan, 2, 0), row(&plan, 2, 1));
    assert!(counter["offset"].is_u64() && apart(counter, data));
    assert_eq!((&counter["first"], &counter["last"]), (&0.into(), &3.into()));
    for k in [0, 1, 2] {
        for t in [0, 1] {
            assert!((k, t) == (2, 0) || apart(counter, row(&plan, k, t)), "{k}:{t}");
        }
    }
    assert!(g.text(&["--all"]).contains("2:0 \"t0\""), "tensors of called subgraphs are told apart");
}

#[test]
fn br_08_a_branch_does_not_overwrite_what_an_earlier_one_returned() {
    let temp = Temp::new("br08");
    let path = temp.file("p.csv", "id,lower,upper,size\np,0,6,512\nr1,1,5,1024\ntemp,2,3,1024\nr2,3,5,1024\n");
    assert_eq!(arena(&arenite(&["plan", &path, "--align", "128", "--json"]).json_with(0)), 2560);
}

#[test]
fn br_09_reads_inside_a_called_subgraph_count() {
    let temp = Temp::new("br09");
    let path = temp.file("p.csv", "id,lower,upper,size\nx,0,4,1024\ny,1,3,1024\nz,2,4,1024\n");
    assert_eq!(arena(&arenite(&["plan", &path, "--align", "128", "--json"]).json_with(0)), 3072);
}

#[test]
fn br_12_constants_get_no_arena_bytes_but_are_in_the_report() {
    let k = 256 << 10;
    let table =
        Table::new(&[("const", 1 << 20), ("const", 1 << 20), ("inter", k), ("inter", k), ("inter", k)], "-", "-")
            .node("CONV_2D", "0", "2", "-")
            .node("CONV_2D", "2,1", "3", "-")
            .node("CONV_2D", "3", "4", "-");
    let g = Graph::new("br12", &[table]);
    let plan = g.plan(&[]);
    assert_eq!((arena(&plan), &plan["buffers"]), (524_288, &3.into()));
    for t in [0, 1] {
        let r = row(&plan, 0, t);
        assert!(r["offset"].is_null() && r["size"] == 1 << 20 && r["kind"] == "constant", "{r}");
    }
    let text = g.text(&["--all"]);
    assert!(text.contains("2 constant") && text.contains("2 097 152 B") && text.contains("0 \"t0\""), "{text}");
}

#[test]
fn br_14_the_report_says_why_two_tensors_share_an_address() {
    let g = Graph::new("br14", &[chain(4, 4096, "-", "-")]);
    let text = g.text(&[]);
    assert!(text.contains("shares with 0 \"t0\" because 0 ends at 1, before 2 (bytes "), "{text}");
    let plan = g.plan(&["--keep-all"]);
    let mut offsets: Vec<_> = (0..4).map(|t| row(&plan, 0, t)["offset"].as_u64().unwrap()).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 4096, 8192, 12288]);
}

#[test]
fn br_15_kernel_scratch_is_apart_from_what_its_node_touches() {
    let table = Table::new(&[("inter", 1024), ("inter", 1024)], "-", "-")
        .node("CONV_2D", "-", "0", "-")
        .node("CONV_2D", "0", "1", "-")
        .node("CONV_2D", "1", "-", "-");
    let g = Graph::new("br15", &[table]);
    assert!(g.plan(&[])["scratch_bytes"].is_null());
    let plan = g.plan(&["--scratch", "1=2KiB"]);
    assert_eq!((arena(&plan), &plan["scratch_bytes"]), (4096, &2048.into()));
    let scratch = row(&plan, 0, 2);
    assert_eq!((&scratch["kind"], &scratch["first"], &scratch["last"]), (&"scratch".into(), &1.into(), &1.into()));
    assert!(apart(scratch, row(&plan, 0, 0)) && apart(scratch, row(&plan, 0, 1)));
}

#[test]
fn br_19_fixed_offsets_are_honoured_and_collisions_name_both() {
    let temp = Temp::new("br19");
    let path = temp.file("p.csv", "id,lower,upper,size,offset\na,0,2,1024,1024\nb,0,2,1024,\nc,1,2,512,\n");
    for strategy in ["auto", "first-fit", "greedy-by-size", "tflm-greedy", "exact"] {
        let plan = arenite(&["plan", &path, "--align", "128", "--json", "--strategy", strategy]).json_with(0);
        assert_eq!((arena(&plan), &plan["offsets"][0]["offset"]), (2560, &1024.into()), "{strategy}");
    }
    let path = temp.file("q.csv", "id,lower,upper,size,offset\nleft,0,2,1024,0\nright,1,2,1024,512\n");
    let run = arenite(&["plan", &path]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("\"left\", line 2") && run.err.contains("\"right\", line 3"), "{}", run.err);
    let hard = "id,lower,upper,size\n".to_string()
        + &(0..60).map(|i| format!("{i},{},{},{}\n", i % 17, i % 17 + 5 + i % 7, 100 + 37 * i)).collect::<String>();
    let path = temp.file("hard.csv", hard);
    assert_eq!(arenite(&["plan", &path, "--strategy", "exact", "--effort", "1"]).code, 0, "the best plan, no error");
    assert_eq!(arenite(&["plan", &path, "--strategy", "exact", "--deadline", "0"]).code, 0);
}

#[test]
fn in_place_operators_take_over_their_input_unless_told_not_to() {
    let table = Table::new(&[("input", 256), ("inter", 256), ("inter", 256), ("inter", 256)], "0", "3")
        .node("CONV_2D", "0", "1", "-")
        .node("ADD", "1,0", "2", "-")
        .node("CONV_2D", "2", "3", "-");
    let g = Graph::new("inplace", &[table]);
    let plan = g.plan(&[]);
    assert_eq!(row(&plan, 0, 1)["offset"], row(&plan, 0, 2)["offset"]);
    assert_eq!((&row(&plan, 0, 2)["root"], &plan["in_place"]), (&1.into(), &true.into()));
    assert!(g.text(&[]).contains("in place: the same bytes as 1 \"t1\""));
    let off = g.plan(&["--no-in-place"]);
    assert!(apart(row(&off, 0, 1), row(&off, 0, 2)) && off["in_place"] == false);
}
