"""Writes small models that real ones do not cover: loops, branches, shapes that change while the model runs, variables.

    python make_models.py DIRECTORY

Needs the packages `tflite` (the schema) and `flatbuffers`.
"""
import os
import sys

import flatbuffers
import numpy as np
import tflite as s

TYPES = {np.dtype(np.float32): s.TensorType.FLOAT32, np.dtype(np.int32): s.TensorType.INT32, np.dtype(bool): s.TensorType.BOOL}


class Graph:
    def __init__(self, model):
        self.model, self.tensors, self.ops, self.inputs, self.outputs = model, [], [], [], []

    def tensor(self, shape, dtype=np.float32, data=None, variable=False, name=""):
        buffer = 0
        if data is not None:
            self.model.buffers.append(np.asarray(data, dtype).tobytes())
            buffer = len(self.model.buffers) - 1
        self.tensors.append((list(shape), np.dtype(dtype), buffer, variable, name or f"t{len(self.tensors)}"))
        return len(self.tensors) - 1

    def op(self, code, inputs, outputs, options=None):
        self.ops.append((code, list(inputs), list(outputs), options))
        return outputs[0]


class Model:
    def __init__(self):
        self.buffers, self.graphs, self.signatures = [b""], [], {}

    def graph(self):
        self.graphs.append(Graph(self))
        return self.graphs[-1]

    def write(self, path):
        b = flatbuffers.Builder(1024)

        def ints(values):
            return b.CreateNumpyVector(np.asarray(values, np.int32))

        def offsets(values):
            b.StartVector(4, len(values), 4)
            for v in reversed(values):
                b.PrependUOffsetTRelative(v)
            return b.EndVector()

        codes = sorted({o[0] for g in self.graphs for o in g.ops})
        graphs = []
        for g in self.graphs:
            tensors = []
            for shape, dtype, buffer, variable, name in g.tensors:
                shape, name = ints(shape), b.CreateString(name)
                s.TensorStart(b)
                s.TensorAddShape(b, shape)
                s.TensorAddType(b, TYPES[dtype])
                s.TensorAddBuffer(b, buffer)
                s.TensorAddName(b, name)
                s.TensorAddIsVariable(b, variable)
                tensors.append(s.TensorEnd(b))
            ops = []
            for code, inputs, outputs, options in g.ops:
                table = None
                if options:
                    kind, start, fields, end = options
                    start(b)
                    for add, value in fields:
                        add(b, value)
                    table = end(b)
                inputs, outputs = ints(inputs), ints(outputs)
                s.OperatorStart(b)
                s.OperatorAddOpcodeIndex(b, codes.index(code))
                s.OperatorAddInputs(b, inputs)
                s.OperatorAddOutputs(b, outputs)
                if table is not None:
                    s.OperatorAddBuiltinOptionsType(b, kind)
                    s.OperatorAddBuiltinOptions(b, table)
                ops.append(s.OperatorEnd(b))
            tensors, ops = offsets(tensors), offsets(ops)
            inputs, outputs = ints(g.inputs), ints(g.outputs)
            s.SubGraphStart(b)
            s.SubGraphAddTensors(b, tensors)
            s.SubGraphAddInputs(b, inputs)
            s.SubGraphAddOutputs(b, outputs)
            s.SubGraphAddOperators(b, ops)
            graphs.append(s.SubGraphEnd(b))
        buffers = []
        for data in self.buffers:
            vector = b.CreateByteVector(data) if data else None
            s.BufferStart(b)
            if vector is not None:
                s.BufferAddData(b, vector)
            buffers.append(s.BufferEnd(b))
        operators = []
        for code in codes:
            s.OperatorCodeStart(b)
            s.OperatorCodeAddBuiltinCode(b, code)
            s.OperatorCodeAddDeprecatedBuiltinCode(b, min(code, 127))
            s.OperatorCodeAddVersion(b, 1)
            operators.append(s.OperatorCodeEnd(b))
        signatures = []
        for key, (graph, inputs, outputs) in self.signatures.items():
            maps = []
            for named in (inputs, outputs):
                pairs = []
                for name, tensor in named.items():
                    name = b.CreateString(name)
                    s.TensorMapStart(b)
                    s.TensorMapAddName(b, name)
                    s.TensorMapAddTensorIndex(b, tensor)
                    pairs.append(s.TensorMapEnd(b))
                maps.append(offsets(pairs))
            key = b.CreateString(key)
            s.SignatureDefStart(b)
            s.SignatureDefAddInputs(b, maps[0])
            s.SignatureDefAddOutputs(b, maps[1])
            s.SignatureDefAddSignatureKey(b, key)
            s.SignatureDefAddSubgraphIndex(b, self.graphs.index(graph))
            signatures.append(s.SignatureDefEnd(b))
        operators, graphs, buffers = offsets(operators), offsets(graphs), offsets(buffers)
        signatures = offsets(signatures)
        s.ModelStart(b)
        s.ModelAddVersion(b, 3)
        s.ModelAddOperatorCodes(b, operators)
        s.ModelAddSignatureDefs(b, signatures)
        s.ModelAddSubgraphs(b, graphs)
        s.ModelAddBuffers(b, buffers)
        b.Finish(s.ModelEnd(b), b"TFL3")
        with open(path, "wb") as f:
            f.write(b.Output())


OP = s.BuiltinOperator


def chain(g, x, shape, length, width):
    """Elementwise ops in place and not, with a tensor of another size alive across them."""
    side = g.op(OP.MUL, [x, x], [g.tensor(shape)])
    y = x
    for i in range(length):
        y = g.op(OP.ADD if i % 2 else OP.MUL, [y, g.tensor([1], data=[1.0 + i / width])], [g.tensor(shape)])
        if i % 3 == 2:
            y = g.op(OP.LOGISTIC, [y], [g.tensor(shape)])
    return g.op(OP.SUB, [y, side], [g.tensor(shape)])


def tiled(path):
    """Its first output has a shape that an input decides, and a second one comes further down."""
    m = Model()
    g = m.graph()
    x, times = g.tensor([2, 8]), g.tensor([2], np.int32)
    a = chain(g, x, [2, 8], 4, 8)
    t = g.op(OP.TILE, [a, times], [g.tensor([2, 8])])
    b = chain(g, t, [2, 8], 6, 4)
    total = g.op(OP.SUM, [b, g.tensor([1], np.int32, data=[1])], [g.tensor([2])])
    t2 = g.op(OP.TILE, [b, times], [g.tensor([2, 8])])
    c = chain(g, t2, [2, 8], 5, 2)
    g.inputs, g.outputs = [x, times], [c, total, a]
    m.write(path)


def looped(path):
    """WHILE i < n: x grows by concatenation when `i` is odd, so the body is planned anew again and again."""
    m = Model()
    g, cond, body = m.graph(), m.graph(), m.graph()
    options = (s.BuiltinOptions.WhileOptions, s.WhileOptionsStart,
               [(s.WhileOptionsAddCondSubgraphIndex, 1), (s.WhileOptionsAddBodySubgraphIndex, 2)], s.WhileOptionsEnd)
    i, n, x = g.tensor([], np.int32), g.tensor([], np.int32), g.tensor([1, 4])
    outs = [g.tensor([], np.int32), g.tensor([], np.int32), g.tensor([1, 4])]
    g.op(OP.WHILE, [i, n, x], outs, options)
    y = chain(g, outs[2], [1, 4], 4, 8)
    g.inputs, g.outputs = [i, n, x], [outs[0], y]

    i, n, x = cond.tensor([], np.int32), cond.tensor([], np.int32), cond.tensor([1, 4])
    less = cond.op(OP.LESS, [i, n], [cond.tensor([], bool)])
    cond.inputs, cond.outputs = [i, n, x], [less]

    i, n, x = body.tensor([], np.int32), body.tensor([], np.int32), body.tensor([1, 4])
    j = body.op(OP.ADD, [i, body.tensor([], np.int32, data=1)], [body.tensor([], np.int32)])
    y = chain(body, x, [1, 4], 3, 8)
    axis = (s.BuiltinOptions.ConcatenationOptions, s.ConcatenationOptionsStart,
            [(s.ConcatenationOptionsAddAxis, 0)], s.ConcatenationOptionsEnd)
    z = body.op(OP.CONCATENATION, [y, x], [body.tensor([2, 4])], axis)
    body.inputs, body.outputs = [i, n, x], [j, n, z]
    m.write(path)


def branched(path):
    """IF with branches of different sizes."""
    m = Model()
    g, then, other = m.graph(), m.graph(), m.graph()
    options = (s.BuiltinOptions.IfOptions, s.IfOptionsStart,
               [(s.IfOptionsAddThenSubgraphIndex, 1), (s.IfOptionsAddElseSubgraphIndex, 2)], s.IfOptionsEnd)
    flag, x = g.tensor([1], bool), g.tensor([4, 16])
    a = chain(g, x, [4, 16], 3, 8)
    y = g.op(OP.IF, [flag, a], [g.tensor([4, 16])], options)
    z = chain(g, y, [4, 16], 3, 4)
    g.inputs, g.outputs = [flag, x], [z]
    for branch, length in [(then, 2), (other, 7)]:
        x = branch.tensor([4, 16])
        branch.inputs, branch.outputs = [x], [chain(branch, x, [4, 16], length, 3)]
    m.write(path)


def stateful(path):
    """SVDF: a variable kept between runs, scratch, and an absent optional input."""
    rng = np.random.default_rng(5)
    m = Model()
    g = m.graph()
    x, units, memory = g.tensor([1, 8]), 16, 6
    feature = g.tensor([units, 8], data=rng.standard_normal((units, 8)))
    time = g.tensor([units, memory], data=rng.standard_normal((units, memory)))
    state = g.tensor([1, units * memory], variable=True)
    options = (s.BuiltinOptions.SVDFOptions, s.SVDFOptionsStart, [(s.SVDFOptionsAddRank, 1)], s.SVDFOptionsEnd)
    y = g.op(OP.SVDF, [x, feature, time, -1, state], [g.tensor([1, units])], options)
    g.inputs, g.outputs = [x], [chain(g, y, [1, units], 4, 8)]
    m.write(path)


def two_inputs(path):
    """Two independent inputs, for values set before another input is resized; and one that is an output too."""
    m = Model()
    g = m.graph()
    a, b = g.tensor([3, 5]), g.tensor([1, 7])
    ya, yb = chain(g, a, [3, 5], 4, 4), chain(g, b, [1, 7], 5, 4)
    g.inputs, g.outputs = [a, b], [yb, ya, a]
    m.write(path)


def signed(path):
    """Two entry points, each a graph of its own, of other sizes."""
    m = Model()
    for key, width, length in [("wide", 24, 5), ("long", 8, 9)]:
        g = m.graph()
        x = g.tensor([2, width])
        y = chain(g, x, [2, width], length, width)
        g.inputs, g.outputs = [x], [y]
        m.signatures[key] = (g, {"x": x}, {"y": y})
    m.write(path)


def views(path):
    """Reshapes of one tensor, some of them modified in place: sharing must not run one into the other."""
    m = Model()
    g = m.graph()
    x = g.tensor([4, 8])
    a = g.op(OP.LOGISTIC, [x], [g.tensor([4, 8])])
    flat = g.op(OP.RESHAPE, [a, g.tensor([1], np.int32, data=[32])], [g.tensor([32])])
    wide = g.op(OP.RESHAPE, [flat, g.tensor([2], np.int32, data=[2, 16])], [g.tensor([2, 16])])
    b = g.op(OP.MUL, [wide, g.tensor([1], data=[3.0])], [g.tensor([2, 16])])
    c = g.op(OP.SOFTMAX, [b], [g.tensor([2, 16])],
             (s.BuiltinOptions.SoftmaxOptions, s.SoftmaxOptionsStart, [(s.SoftmaxOptionsAddBeta, 1.0)], s.SoftmaxOptionsEnd))
    d = g.op(OP.EXPAND_DIMS, [c, g.tensor([], np.int32, data=0)], [g.tensor([1, 2, 16])])
    g.inputs, g.outputs = [x], [g.op(OP.ADD, [d, d], [g.tensor([1, 2, 16])])]
    m.write(path)


ALL = {f.__name__: f for f in [tiled, looped, branched, stateful, two_inputs, signed, views]}

if __name__ == "__main__":
    for name, make in ALL.items():
        make(os.path.join(sys.argv[1], f"{name}.tflite"))
