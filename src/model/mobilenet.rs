//! The built-in network: MobileNetV2 1.0, single precision, as TFLite's converter lays it out.

use super::ops::builtin_code;
use super::tensor::{Node, Subgraph, Tensor, TensorKind};
use super::{DType, Model, Signature};
use crate::error::Error;

/// The inverted residual blocks: expansion, output channels, repetitions, stride of the first.
const BLOCKS: [(i64, i64, u32, i64); 7] =
    [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)];

const CLASSES: i64 = 1001;

impl Model {
    /// MobileNetV2 1.0 for square images of `resolution` pixels a side (224 in its paper), batch 1. Activations are
    /// fused into their convolutions. Weights have sizes but no data.
    ///
    /// `Argument` for a resolution of 0, `Overflow` for one whose tensors' sizes do not fit.
    pub fn mobilenet_v2(resolution: u32) -> Result<Model, Error> {
        if resolution == 0 {
            return Err(Error::argument("the resolution is 0"));
        }
        let mut net = Net { graph: Subgraph { name: "main".into(), ..Subgraph::default() } };
        let side = i64::from(resolution);
        let input = net.tensor("input".into(), vec![1, side, side, 3], TensorKind::Input)?;
        let mut at = net.conv("Conv", Image { tensor: input, side, channels: 3 }, 32, 3, 2)?;
        let mut number = 0;
        for (expansion, channels, repeat, stride) in BLOCKS {
            for i in 0..repeat {
                let name = format!("expanded_conv_{number}");
                at = net.block(&name, at, expansion, channels, if i == 0 { stride } else { 1 })?;
                number += 1;
            }
        }
        at = net.conv("Conv_1", at, 1280, 1, 1)?;
        let pooled = net.tensor("AvgPool".into(), vec![1, 1, 1, 1280], TensorKind::Inter)?;
        net.node("AVERAGE_POOL_2D", vec![at.tensor], pooled);
        let logits = net.conv("Logits", Image { tensor: pooled, side: 1, channels: 1280 }, CLASSES, 1, 1)?;
        let shape = net.constant("Squeeze_shape".into(), DType::Int32, vec![2])?;
        let flat = net.tensor("Squeeze".into(), vec![1, CLASSES], TensorKind::Inter)?;
        net.node("RESHAPE", vec![logits.tensor, shape], flat);
        let output = net.tensor("output".into(), vec![1, CLASSES], TensorKind::Inter)?;
        net.node("SOFTMAX", vec![flat], output);
        net.graph.inputs = vec![input];
        net.graph.outputs = vec![output];
        let signature = Signature {
            key: "serving_default".into(),
            subgraph: 0,
            inputs: vec![("input".into(), input as u32)],
            outputs: vec![("output".into(), output as u32)],
        };
        Ok(Model {
            name: format!("mobilenet_v2_1.0_{resolution}"),
            constant_bytes: net.graph.constant_bytes,
            subgraphs: vec![net.graph],
            signatures: vec![signature],
            ..Model::default()
        })
    }
}

/// A square image in the making of the network.
#[derive(Clone, Copy)]
struct Image {
    tensor: i32,
    side: i64,
    channels: i64,
}

struct Net {
    graph: Subgraph,
}

impl Net {
    /// Expand, filter each channel, project; the input is added back where the shapes agree.
    fn block(&mut self, name: &str, from: Image, expansion: i64, channels: i64, stride: i64) -> Result<Image, Error> {
        let mut at = from;
        if expansion > 1 {
            at = self.conv(&format!("{name}/expand"), at, expansion * from.channels, 1, 1)?;
        }
        at = self.depthwise(&format!("{name}/depthwise"), at, stride)?;
        at = self.conv(&format!("{name}/project"), at, channels, 1, 1)?;
        if stride == 1 && from.channels == channels {
            let sum = self.image(&format!("{name}/add"), at.side, channels)?;
            self.node("ADD", vec![at.tensor, from.tensor], sum.tensor);
            at = sum;
        }
        Ok(at)
    }

    fn conv(&mut self, name: &str, from: Image, channels: i64, kernel: i64, stride: i64) -> Result<Image, Error> {
        self.weighted("CONV_2D", name, from, channels, vec![channels, kernel, kernel, from.channels], stride)
    }

    fn depthwise(&mut self, name: &str, from: Image, stride: i64) -> Result<Image, Error> {
        self.weighted("DEPTHWISE_CONV_2D", name, from, from.channels, vec![1, 3, 3, from.channels], stride)
    }

    fn weighted(
        &mut self,
        op: &str,
        name: &str,
        from: Image,
        channels: i64,
        weights: Vec<i64>,
        stride: i64,
    ) -> Result<Image, Error> {
        let weights = self.constant(format!("{name}/weights"), DType::Float32, weights)?;
        let bias = self.constant(format!("{name}/bias"), DType::Float32, vec![channels])?;
        // "Same" padding: every stride begins a pixel.
        let out = self.image(name, (from.side + stride - 1) / stride, channels)?;
        self.node(op, vec![from.tensor, weights, bias], out.tensor);
        Ok(out)
    }

    fn image(&mut self, name: &str, side: i64, channels: i64) -> Result<Image, Error> {
        let tensor = self.tensor(name.into(), vec![1, side, side, channels], TensorKind::Inter)?;
        Ok(Image { tensor, side, channels })
    }

    fn constant(&mut self, name: String, dtype: DType, shape: Vec<i64>) -> Result<i32, Error> {
        let index = self.add(name, dtype, shape, TensorKind::Const)?;
        let bytes = self.graph.tensors[index as usize].bytes.unwrap_or(0);
        self.graph.constant_bytes = crate::units::add(self.graph.constant_bytes, bytes)?;
        Ok(index)
    }

    fn tensor(&mut self, name: String, shape: Vec<i64>, kind: TensorKind) -> Result<i32, Error> {
        self.add(name, DType::Float32, shape, kind)
    }

    fn add(&mut self, name: String, dtype: DType, shape: Vec<i64>, kind: TensorKind) -> Result<i32, Error> {
        let index = self.graph.tensors.len();
        let bytes = dtype.tensor_bytes(&shape).map_err(|e| e.tensor(index))?;
        let tensor = Tensor { name, dtype, shape: Some(shape), bytes, file_bytes: bytes, kind, ..Tensor::default() };
        self.graph.tensors.push(tensor);
        Ok(index as i32)
    }

    fn node(&mut self, op: &str, inputs: Vec<i32>, output: i32) {
        let builtin = builtin_code(op);
        self.graph.nodes.push(Node { op: op.into(), builtin, inputs, outputs: vec![output], ..Node::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tables::validate;

    #[test]
    fn layers_and_sizes_are_those_of_the_paper() {
        let m = Model::mobilenet_v2(224).unwrap();
        let g = &m.subgraphs[0];
        validate(g).unwrap();
        let count = |op: &str| g.nodes.iter().filter(|n| &*n.op == op).count();
        assert_eq!((count("CONV_2D"), count("DEPTHWISE_CONV_2D"), count("ADD"), g.nodes.len()), (36, 17, 10, 66));
        // Keras counts 3,504,872 trainable parameters for 1000 classes. Folding turns the two per normalised channel
        // (17,056 of them) into one bias; class 1001 adds 1281; the RESHAPE's target is 8 bytes.
        assert_eq!(m.constant_bytes, (3_504_872 - 17_056 + 1281) * 4 + 8);
        let planned: Vec<&Tensor> = g.tensors.iter().filter(|t| t.kind != TensorKind::Const).collect();
        let inner: Vec<u64> = planned.iter().filter(|t| t.kind == TensorKind::Inter).filter_map(|t| t.bytes).collect();
        let peak = g.nodes.iter().map(|n| {
            let touched = n.inputs.iter().chain(&n.outputs).map(|&t| &g.tensors[t as usize]);
            touched.filter(|t| t.kind == TensorKind::Inter).filter_map(|t| t.bytes).sum::<u64>()
        });
        assert_eq!(peak.max(), Some((112 * 112 * 96 + 56 * 56 * 96) * 4));
        assert_eq!((planned.len(), inner.len(), inner.iter().sum::<u64>()), (67, 66, 27_595_116));
    }

    #[test]
    fn odd_and_absurd_resolutions() {
        assert!(Model::mobilenet_v2(0).is_err());
        assert_eq!(Model::mobilenet_v2(1).unwrap().subgraphs[0].nodes.len(), 66);
        let odd = Model::mobilenet_v2(225).unwrap();
        assert_eq!(odd.subgraphs[0].tensors[3].shape.as_deref(), Some(&[1, 113, 113, 32][..]));
        let big = Model::mobilenet_v2(u32::MAX).unwrap_err();
        assert_eq!(big.kind, crate::error::Kind::Overflow);
    }
}
