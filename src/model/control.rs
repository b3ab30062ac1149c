//! The metadata entry `model_control_dependencies`: extra order constraints between the nodes of each subgraph.
//!
//! A version (1), then the number of subgraphs, then per subgraph the number of pairs and the pairs `(before, after)` of
//! node indices. Numbers are little-endian base-128 with a continuation bit (protobuf's); indices are signed, with the
//! sign in the lowest bit. The runtime refuses an entry that does not end exactly where the last number does.

use std::ops::Range;

use super::error::{Position, ReadError};
use super::metadata::CONTROL_DEPENDENCIES;
use super::Model;

/// The pairs of each subgraph.
pub(crate) type Pairs = Vec<Vec<(u32, u32)>>;

const VERSION: u32 = 1;

struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
    start: u64,
}

impl Numbers<'_> {
    fn refuse<T>(&self, what: &str) -> Result<T, ReadError> {
        Err(ReadError::new(Position::Byte(self.start + self.at as u64), format!("{CONTROL_DEPENDENCIES}: {what}")))
    }

    fn next(&mut self) -> Result<u32, ReadError> {
        let mut value = 0u64;
        for shift in (0..).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else { return self.refuse("it ends within a number") };
            self.at += 1;
            if shift < 35 {
                value |= u64::from(byte & 127) << shift;
            } else if byte & 127 != 0 {
                return self.refuse("a number does not fit 32 bits");
            }
            if byte & 128 == 0 {
                break;
            }
        }
        u32::try_from(value).or_else(|_| self.refuse("a number does not fit 32 bits"))
    }

    fn index(&mut self, nodes: usize) -> Result<u32, ReadError> {
        let number = self.next()?;
        let index = number / 2;
        if number % 2 == 1 || index as usize >= nodes {
            return self.refuse("a pair names a node that does not exist");
        }
        Ok(index)
    }
}

impl Model {
    /// The same as rules for [`order`](crate::graph::order::order): `(subgraph, before, after)`.
    pub fn control_rules(&self, file: &[u8]) -> Result<Vec<(u32, u32, u32)>, ReadError> {
        let pairs = self.control_pairs(file)?;
        Ok((0u32..).zip(pairs).flat_map(|(k, list)| list.into_iter().map(move |(a, b)| (k, a, b))).collect())
    }

    /// The pairs in the file's control dependencies entry, each in the present order; empty where there is no entry.
    pub(crate) fn control_pairs(&self, file: &[u8]) -> Result<Pairs, ReadError> {
        let Some(range) = self.control_dependencies.clone().filter(|r| !r.is_empty()) else { return Ok(Vec::new()) };
        let bytes = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let Some(bytes) = bytes.and_then(|(a, b)| file.get(a..b)) else {
            return Err(ReadError::new(Position::Whole, format!("{CONTROL_DEPENDENCIES}: not in the file")));
        };
        let mut numbers = Numbers { bytes, at: 0, start: range.start };
        let version = numbers.next()?;
        if version != VERSION {
            return numbers.refuse(&format!("expected version {VERSION}, got {version}"));
        }
        let graphs = numbers.next()? as usize;
        if graphs != self.subgraphs.len() {
            return numbers.refuse(&format!("{graphs} subgraphs, the model has {}", self.subgraphs.len()));
        }
        let mut all = Vec::with_capacity(graphs);
        for graph in &self.subgraphs {
            let count = numbers.next()?;
            let mut pairs = Vec::new(); // counted as they come
            for _ in 0..count {
                let (before, after) = (numbers.index(graph.nodes.len())?, numbers.index(graph.nodes.len())?);
                if before >= after {
                    return numbers.refuse("a pair is not in the order of the file");
                }
                pairs.push((before, after));
            }
            all.push(pairs);
        }
        if numbers.at < bytes.len() {
            return numbers.refuse("more bytes follow");
        }
        Ok(all)
    }
}

/// `pairs` after their nodes went to the places in `places`, at least `least` bytes long.
pub(crate) fn encode(pairs: &Pairs, places: &[Vec<u32>], least: usize) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, VERSION);
    push(&mut out, pairs.len() as u32);
    let mut last: Range<usize> = 0..out.len();
    for (pairs, places) in pairs.iter().zip(places) {
        last = out.len()..out.len();
        push(&mut out, pairs.len() as u32);
        for &(before, after) in pairs {
            for node in [before, after] {
                last.start = out.len();
                push(&mut out, places[node as usize] * 2);
            }
        }
    }
    // A longer form of the last number fills what the file has room for: continued by zeros.
    if out.len() < least && last.start < out.len() {
        let end = out.len() - 1;
        out[end] |= 128;
        out.resize(least - 1, 128);
        out.push(0);
    }
    out
}

fn push(out: &mut Vec<u8>, mut value: u32) {
    while value >= 128 {
        out.push((value % 128) as u8 | 128);
        value /= 128;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::super::tensor::{Node, Subgraph};
    use super::*;

    fn model(nodes: usize, blob: &[u8]) -> Model {
        let graph = Subgraph { nodes: vec![Node::default(); nodes], ..Subgraph::default() };
        Model { subgraphs: vec![graph], control_dependencies: Some(0..blob.len() as u64), ..Model::default() }
    }

    #[test]
    fn pairs_go_there_and_back_in_any_length() {
        let identity: Vec<u32> = (0..200).collect();
        let pairs = vec![vec![(0, 1), (5, 150)]];
        for least in 0..20 {
            let blob = encode(&pairs, std::slice::from_ref(&identity), least);
            assert_eq!(blob.len(), least.max(8));
            assert_eq!(model(200, &blob).control_pairs(&blob).unwrap(), pairs);
        }
        let swapped: Vec<u32> = (0..200).map(|v| (v + 10) % 200).collect();
        let blob = encode(&pairs, &[swapped], 0);
        assert_eq!(model(200, &blob).control_pairs(&blob).unwrap(), [[(10, 11), (15, 160)]]);
    }

    #[test]
    fn what_is_not_such_an_entry_is_refused_where_it_breaks() {
        let good = [1, 1, 1, 0, 2];
        assert_eq!(model(2, &good).control_pairs(&good).unwrap(), [[(0, 1)]]);
        let bad: [&[u8]; 8] = [
            &[2, 1, 0],
            &[1, 2, 0, 0],
            &[1, 1, 1, 0],
            &[1, 1, 1, 0, 4],
            &[1, 1, 1, 1, 2],
            &[1, 1, 1, 2, 0],
            &[1, 1, 0, 0],
            &[1, 1, 255, 255, 255, 255, 255, 255],
        ];
        for blob in bad {
            assert!(model(2, blob).control_pairs(blob).is_err(), "{blob:?}");
        }
    }
}
