//! Reading a `.tflite` file.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::error::{quoted, Position, ReadError};
use super::metadata::{offline_plan, Metadata, CONTROL_DEPENDENCIES, OFFLINE_PLAN};
use super::schema;
use super::tflite_graph::GraphReader;
use super::{ops, Model, Signature};

/// FlatBuffer offsets are signed 32-bit numbers; a larger file keeps its weights behind the FlatBuffer.
const FLATBUFFER_LIMIT: usize = i32::MAX as usize;

impl Model {
    /// Reads a `.tflite` file. The bytes may be a mapped file: data ranges refer to it.
    pub fn from_tflite(file: &[u8], name: &str) -> Result<Model, ReadError> {
        if file.len() < 8 || &file[4..8] != b"TFL3" {
            let at = Position::Byte(4.min(file.len() as u64));
            return Err(ReadError::new(at, "expected the identifier TFL3 of a .tflite file"));
        }
        let root = schema::root(&file[..file.len().min(FLATBUFFER_LIMIT)])?;
        let mut model = Model { name: name.to_string(), file_bytes: file.len() as u64, ..Model::default() };

        let buffers = buffers(root, file)?;
        let operators = operator_names(root);
        let mut resources = HashMap::new();
        let mut used = vec![false; buffers.len()];
        let mut name_budget = (file.len() as u64).saturating_mul(4);
        for (k, graph) in root.subgraphs().into_iter().flat_map(|v| v.iter()).enumerate() {
            let mut reader = GraphReader {
                file,
                buffers: &buffers,
                operators: &operators,
                used: &mut used,
                resources: &mut resources,
                name_budget: &mut name_budget,
                warnings: &mut model.warnings,
                index: k,
            };
            model.subgraphs.push(reader.read(graph)?);
        }
        if model.subgraphs.is_empty() {
            return Err(ReadError::new(root.position(), "the model has no subgraph"));
        }
        let mut named: Vec<_> = resources.into_values().collect();
        named.sort_unstable_by_key(|r: &(u32, _)| r.0);
        model.resources = named.into_iter().map(|r| r.1).collect();
        for (range, _) in buffers.iter().zip(&used).filter(|(_, &u)| u) {
            // Ranges may overlap in a hostile file, so even this sum is checked.
            model.constant_bytes = model.constant_bytes.saturating_add(range.end - range.start);
        }
        model.read_signatures(root)?;
        model.read_metadata(root, file, &buffers)?;
        let order = model.call_order()?;
        model.spread_effects(&order);
        model.trace_resources();
        model.warn_unknown_dims();
        Ok(model)
    }

    fn read_signatures(&mut self, root: schema::Model<'_>) -> Result<(), ReadError> {
        for s in root.signatures().into_iter().flat_map(|v| v.iter()) {
            let key = text(s.key());
            let subgraph = s.subgraph().unwrap_or(0);
            let Some(graph) = self.subgraphs.get(subgraph as usize) else {
                let what = format!("signature {}: there is no subgraph {subgraph}", quoted(&key));
                return Err(ReadError::new(s.position(), what));
            };
            let tensors = graph.tensors.len();
            let names = |list: Option<flatbuffers::Vector<'_, flatbuffers::ForwardsUOffset<schema::TensorMap<'_>>>>| {
                let maps = list.into_iter().flat_map(|v| v.iter());
                maps.map(|m| match m.tensor().unwrap_or(0) {
                    t if (t as usize) < tensors => Ok((text(m.name()), t)),
                    t => {
                        let what = format!("signature {}: there is no tensor {t}, of {tensors}", quoted(&key));
                        Err(ReadError::new(m.position(), what))
                    }
                })
                .collect::<Result<Vec<_>, _>>()
            };
            let (inputs, outputs) = (names(s.inputs())?, names(s.outputs())?);
            self.signatures.push(Signature { key, subgraph, inputs, outputs });
        }
        Ok(())
    }

    fn read_metadata(&mut self, root: schema::Model<'_>, file: &[u8], buffers: &[Range<u64>]) -> Result<(), ReadError> {
        let tensors: usize = self.subgraphs.iter().map(|g| g.tensors.len()).sum();
        for m in root.metadata().into_iter().flat_map(|v| v.iter()) {
            let (name, buffer) = (text(m.name()), m.buffer().unwrap_or(0));
            let Some(data) = buffers.get(buffer as usize).cloned() else {
                let what = format!("metadata {}: there is no buffer {buffer}, of {}", quoted(&name), buffers.len());
                return Err(ReadError::new(m.position(), what));
            };
            if name == OFFLINE_PLAN {
                // Buffers lie in the file, so the range fits.
                let blob = &file[data.start as usize..data.end as usize];
                self.offline_plan = Some(offline_plan(blob, data.start, tensors)?);
            } else if name == CONTROL_DEPENDENCIES {
                self.control_dependencies = Some(data.clone());
            }
            self.metadata.push(Metadata { name, buffer, data });
        }
        Ok(())
    }
}

/// Where each buffer's bytes are in the file; `0..0` for one without.
pub(super) fn buffers(root: schema::Model<'_>, file: &[u8]) -> Result<Vec<Range<u64>>, ReadError> {
    let mut list = Vec::new();
    for (i, b) in root.buffers().into_iter().flat_map(|v| v.iter()).enumerate() {
        let inside = b.data().map(|d| d.bytes()).unwrap_or_default();
        list.push(if !inside.is_empty() {
            let start = position_in(file, inside);
            start..start + inside.len() as u64
        } else {
            match (b.offset().unwrap_or(0), b.size().unwrap_or(0)) {
                (0 | 1, _) | (_, 0) => 0..0, // 1 is what a writer puts in before it knows the offset
                (offset, size) => match offset.checked_add(size) {
                    Some(end) if end <= file.len() as u64 => offset..end,
                    _ => {
                        let what = format!(
                            "buffer {i}: {size} bytes at byte {offset} reach past the file's end at {}",
                            file.len()
                        );
                        return Err(ReadError::new(b.position(), what));
                    }
                },
            }
        });
    }
    Ok(list)
}

/// The name and code of every operator kind.
fn operator_names(root: schema::Model<'_>) -> Vec<(Arc<str>, i32)> {
    let codes = root.operator_codes().into_iter().flat_map(|v| v.iter());
    codes
        .map(|c| {
            let code = c.builtin_code().unwrap_or(0).max(i32::from(c.deprecated_code().unwrap_or(0)));
            let name = match ops::builtin_name(code) {
                _ if code == ops::CUSTOM => match text(c.custom_code()) {
                    name if name.is_empty() => "CUSTOM:?".to_string(),
                    name => format!("CUSTOM:{name}"),
                },
                Some(name) => name.to_string(),
                None => format!("BUILTIN_{code}"),
            };
            (name.into(), code)
        })
        .collect()
}

/// A string of the file; what is not UTF-8 is replaced.
pub(super) fn text(bytes: Option<flatbuffers::Vector<'_, u8>>) -> String {
    bytes.map(|b| String::from_utf8_lossy(b.bytes()).into_owned()).unwrap_or_default()
}

/// The byte of `file` at which its part `slice` begins.
pub(super) fn position_in(file: &[u8], slice: &[u8]) -> u64 {
    (slice.as_ptr() as usize).saturating_sub(file.as_ptr() as usize) as u64
}

/// Adds a warning; past a number nobody would read, one last says that there are more.
pub(super) fn warn(warnings: &mut Vec<String>, text: impl FnOnce() -> String) {
    const LIMIT: usize = 32;
    if warnings.len() < LIMIT {
        warnings.push(text());
    } else if warnings.len() == LIMIT {
        warnings.push("and more of these".into());
    }
}
