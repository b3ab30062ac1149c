"""Exports real networks to ExecuTorch programs, each twice: as its own planner lays them out, and as arenite does.

    python export_models.py --planner "run plan" --out DIRECTORY [--side 96]

Needs PyTorch, torchvision and executorch (some 3 GB). Prints the bytes of both plans; then

    run alone OUTPUTS NAME.own.pte NAME.arenite.pte      and the same with `arenite` for `alone`

runs both, and fails where their outputs differ.
"""
import argparse
import os
import shlex

import torch
import torchvision
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
from executorch.exir.passes import MemoryPlanningPass

from planning import arenite


class Encoder(torch.nn.Module):
    """Two transformer layers written out, as phones run them."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.layers = torch.nn.ModuleList(torch.nn.ModuleList([
            torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width), torch.nn.Linear(width, 4 * width),
            torch.nn.Linear(4 * width, width), torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)]) for _ in range(2))

    def forward(self, x):
        b, n, w = x.shape
        for qkv, out, up, down, before, after in self.layers:
            q, k, v = (t.reshape(b, n, self.heads, w // self.heads).transpose(1, 2) for t in qkv(before(x)).chunk(3, -1))
            scores = torch.softmax(q @ k.transpose(2, 3) / (w // self.heads) ** 0.5, -1)
            x = x + out((scores @ v).transpose(1, 2).reshape(b, n, w))
            x = x + down(torch.nn.functional.gelu(up(after(x))))
        return x


def networks(side):
    image = (torch.zeros(1, 3, side, side),)
    for name in ["mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "resnet18", "mnasnet0_5"]:
        yield name, getattr(torchvision.models, name)(weights=None), image
    yield "encoder", Encoder(), (torch.zeros(1, 48, 64),)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--planner", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--side", type=int, default=96)
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    command = shlex.split(a.planner)
    for name, network, inputs in networks(a.side):
        torch.manual_seed(1)
        for parameter in network.parameters():
            torch.nn.init.uniform_(parameter, -0.05, 0.05)
        bytes_ = {}
        for planner, suite in [("own", MemoryPlanningAlgorithmSuite()),
                               ("arenite", MemoryPlanningAlgorithmSuite([arenite(command)]))]:
            edge = to_edge(torch.export.export(network.eval(), inputs), compile_config=EdgeCompileConfig(_check_ir_validity=False))
            config = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(suite, alignment=128))
            program = edge.to_executorch(config)
            bytes_[planner] = sum(program.executorch_program.execution_plan[0].non_const_buffer_sizes)
            with open(os.path.join(a.out, f"{name}.{planner}.pte"), "wb") as f:
                f.write(program.buffer)
        print(f"{name:<20} {bytes_['own']:>12} its own planner {bytes_['arenite']:>12} arenite "
              f"{bytes_['arenite'] / bytes_['own']:.4f}", flush=True)


if __name__ == "__main__":
    main()
