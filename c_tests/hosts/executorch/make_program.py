"""Makes two ExecuTorch programs of one small network, which differ only in where the planned tensors lie: each in bytes of its
own, and as arenite plans them.

    python make_program.py --flatc FLATC --schema program.fbs --planner "run plan" --out DIRECTORY

Making a program the usual way needs PyTorch. This one is written as JSON by the format's published schema, and the compiler
for such schemas, which comes with the runtime's package, turns it into a program file.
"""
import argparse
import json
import os
import shlex
import struct
import subprocess

ROWS, WIDTH, HIDDEN, BLOCKS = 24, 96, 384, 4
FLOAT = 6


class Network:
    def __init__(self):
        self.values, self.instructions, self.operators, self.tensors, self.constants = [], [], [], [], [b""]

    def value(self, kind, value):
        self.values.append({"val_type": kind, "val": value})
        return len(self.values) - 1

    def tensor(self, sizes, data=None):
        constant = data is not None
        if constant:
            self.constants.append(data)
        bytes_ = 4
        for size in sizes:
            bytes_ *= size
        index = self.value("Tensor", {
            "scalar_type": FLOAT, "storage_offset": 0, "sizes": sizes, "dim_order": list(range(len(sizes))),
            "requires_grad": False, "data_buffer_idx": len(self.constants) - 1 if constant else 0, "layout": 0,
            "shape_dynamism": 0})
        if not constant:
            self.tensors.append({"value": index, "bytes": bytes_, "first": None, "last": None})
        return index

    def weight(self, *sizes):
        count = 1
        for size in sizes:
            count *= size
        scale = 1.0 / sizes[0]
        return self.tensor(list(sizes), struct.pack(f"<{count}f", *(scale * ((i * 29) % 83 - 40) / 40 for i in range(count))))

    def call(self, name, arguments, output):
        base, _, overload = name.partition(".")
        operator = {"name": "aten::" + base, "overload": overload}
        if operator not in self.operators:
            self.operators.append(operator)
        step = len(self.instructions)
        for row in self.tensors:
            if row["value"] == output and row["first"] is None:
                row["first"] = row["last"] = step
            elif row["value"] in arguments or row["value"] == output:
                row["last"] = step
        # The output is also what the operator returns.
        self.instructions.append({"instr_args_type": "KernelCall", "instr_args": {
            "op_index": self.operators.index(operator), "args": arguments + [output, output]}})
        return output


def build():
    """Blocks of a two-layer net with a softmax in between, each added to its own input."""
    n = Network()
    one = n.value("Int", {"int_val": 1})
    last = n.value("Int", {"int_val": -1})
    no = n.value("Bool", {"bool_val": False})
    x = source = n.tensor([ROWS, WIDTH])
    for _ in range(BLOCKS):
        h = n.call("mm.out", [x, n.weight(WIDTH, HIDDEN)], n.tensor([ROWS, HIDDEN]))
        gate = n.call("sigmoid.out", [h], n.tensor([ROWS, HIDDEN]))
        h = n.call("mul.out", [h, gate], n.tensor([ROWS, HIDDEN]))
        h = n.call("_softmax.out", [h, last, no], n.tensor([ROWS, HIDDEN]))
        y = n.call("mm.out", [h, n.weight(HIDDEN, WIDTH)], n.tensor([ROWS, WIDTH]))
        x = n.call("add.out", [x, y, one], n.tensor([ROWS, WIDTH]))
    n.tensors[0]["first"] = 0
    for row in n.tensors:
        if row["value"] in (source, x):
            row["last"] = len(n.instructions)
    return n, source, x


def program(n, source, output, offsets, total):
    values = []
    at = {row["value"]: offset for row, offset in zip(n.tensors, offsets)}
    for i, value in enumerate(n.values):
        if i in at:
            value = {**value, "val": {**value["val"], "allocation_info": {
                "memory_id": 1, "memory_offset_low": at[i], "memory_offset_high": 0}}}
        values.append(value)
    return {
        "version": 0,
        "execution_plan": [{
            "name": "forward", "container_meta_type": {"encoded_inp_str": "place", "encoded_out_str": "place"},
            "values": values, "inputs": [source], "outputs": [output],
            "chains": [{"inputs": [], "outputs": [], "instructions": n.instructions, "stacktrace": []}],
            "operators": n.operators, "delegates": [], "non_const_buffer_sizes": [0, total]}],
        "constant_buffer": [], "backend_delegate_data": [],
        "segments": [{"offset": 0, "size": len(segment(n)[0])}],
        "constant_segment": {"segment_index": 0, "offsets": segment(n)[1]}}


def segment(n):
    """All constants behind each other, aligned to 16, and where each begins. Number 0 stands for no constant."""
    data, offsets = b"", []
    for constant in n.constants:
        offsets.append(len(data))
        data += constant + bytes(-len(constant) % 16)
    return data, offsets


def with_segment(table, data):
    """The program's table with the header that says where the segment is, and the segment itself.

    The header goes between the table's first eight bytes and the rest, so the root's offset, the first four, grows by as
    much; all others are relative. A multiple of 64 bytes keeps every alignment of the table.
    """
    room = 64
    size = len(table) + room
    base = size + -size % 4096
    header = b"eh00" + struct.pack("<IQQQ", 32, size, base, len(data))
    root = struct.pack("<I", struct.unpack("<I", table[:4])[0] + room)
    whole = root + table[4:8] + header + bytes(room - len(header)) + table[8:]
    return whole + bytes(base - size) + data


def main():
    p = argparse.ArgumentParser()
    for name in ("flatc", "schema", "planner", "out"):
        p.add_argument("--" + name, required=True)
    a = p.parse_args()
    n, source, output = build()
    apart, total = [], 0
    for row in n.tensors:
        apart.append(total)
        total += (row["bytes"] + 127) // 128 * 128
    rows = "".join(f"{row['bytes']} {row['first']} {row['last']}\n" for row in n.tensors)
    done = subprocess.run(shlex.split(a.planner), input=rows, stdout=subprocess.PIPE, text=True, check=True)
    arena, *planned = map(int, done.stdout.split())
    os.chmod(a.flatc, 0o755)
    for name, offsets, size in (("apart", apart, total), ("planned", planned, arena)):
        text = os.path.join(a.out, name + ".json")
        with open(text, "w") as out:
            json.dump(program(n, source, output, offsets, size), out)
        subprocess.run([a.flatc, "--binary", "-o", a.out, a.schema, text], check=True)
        path = os.path.join(a.out, name + ".pte")
        with open(path, "rb") as table:
            whole = with_segment(table.read(), segment(n)[0])
        with open(path, "wb") as out:
            out.write(whole)


if __name__ == "__main__":
    main()
